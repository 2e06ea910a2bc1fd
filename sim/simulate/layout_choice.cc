#include "sim/simulate/layout_choice.h"

#include <fmt/format.h>

#include <array>

#include "sim/program/layout.h"

namespace quadrille::simulate {
namespace {

std::string EvenLayout(const model::TransformerConfig& model, std::int32_t stages) {
  std::string pieces = "E";
  pieces.append(static_cast<std::size_t>(model.layers), 't');
  pieces.append(static_cast<std::size_t>(model.multi_token_prediction_layers), 'm');
  pieces += 'L';
  std::string text;
  const auto total = static_cast<std::int64_t>(pieces.size());
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t begin = s * total / stages;
    const std::int64_t end = (s + 1) * total / stages;
    if (s > 0) text += '|';
    text += pieces.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
  return text;
}

}  // namespace

Result<LayoutChoice> ChooseLayout(const scenario::Scenario& run, std::int32_t pipeline,
                                  std::int32_t chunks) {
  const auto legal = [&](const program::LayoutOptions& options) {
    return program::BuildLayout(run.model, options, pipeline, chunks).has_value();
  };
  if (legal(run.layout)) return LayoutChoice{run.layout, ""};
  struct Rule {
    bool embedding;
    bool loss;
    const char* words;
  };
  constexpr std::array<Rule, 4> kRules = {{
      {true, true, "embedding and loss count as a layer each"},
      {false, false, "neither embedding nor loss counts as a layer"},
      {true, false, "the embedding counts as a layer, the loss does not"},
      {false, true, "the loss counts as a layer, the embedding does not"},
  }};
  LayoutChoice choice;
  for (const Rule& rule : kRules) {
    choice.options.embedding_counts_as_layer = rule.embedding;
    choice.options.loss_counts_as_layer = rule.loss;
    if (!legal(choice.options)) continue;
    choice.difference = std::string("layers dealt otherwise than in the run: ") + rule.words;
    return choice;
  }
  const std::int32_t stages = pipeline * chunks;
  const std::int32_t slots = run.model.layers + run.model.multi_token_prediction_layers + 2;
  if (slots < stages) {
    return Error(
        fmt::format("{} layers, embedding and loss cannot fill {} chunks", slots - 2, stages));
  }
  choice.options = {};
  choice.options.pipeline_layout = EvenLayout(run.model, stages);
  choice.difference = fmt::format(
      "layers dealt otherwise than in the run: {} slots over {} chunks, {} or {} each, embedding "
      "and loss counted",
      slots, stages, slots / stages, (slots + stages - 1) / stages);
  return choice;
}

}  // namespace quadrille::simulate
