#include "tools/validate/shipped_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string>

#include "sim/base/nearest.h"
#include "sim/scenario/library.h"

namespace quadrille::tools {
namespace {
namespace fs = std::filesystem;

// Letters, digits and points in lower case.
std::string Squeezed(const std::string& text) {
  std::string squeezed;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '.') squeezed += static_cast<char>(std::tolower(byte));
  }
  return squeezed;
}

// Names of all model descriptions, the user's before the shipped ones, by their squeezed form.
std::map<std::string, std::string> ModelNames(const scenario::LoadOptions& load) {
  std::map<std::string, std::string> names;
  std::vector<std::string> directories = load.scenario_path;
  directories.push_back(load.shipped_directory);
  for (const std::string& directory : directories) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory + "/models", error)) {
      if (entry.path().extension() != ".yaml") continue;
      const std::string name = scenario::Stem(entry.path().string());
      names.emplace(Squeezed(name), name);
    }
  }
  return names;
}

Result<model::TransformerConfig> LoadModel(const std::string& name,
                                           const scenario::LoadOptions& options) {
  scenario::LoadOptions load;
  load.scenario_path = options.scenario_path;
  load.shipped_directory = options.shipped_directory;
  const std::string text = fmt::format(
      "model: {}\ncluster: dgx-h100-superpod\ngpus: 1\n"
      "training: {{sequence_length: 128, global_batch: 1, precision: bf16}}\n",
      name);
  const auto scenario = scenario::LoadScenarioText(text, "model.yaml", load);
  if (!scenario) return tl::unexpected(scenario.error());
  return scenario->model;
}

void Fill(const std::string& name, const model::TransformerConfig& model, MeasuredStep* step) {
  step->shipped_model = name;
  step->layers = model.layers;
  step->hidden = model.hidden;
  step->heads = model.heads;
  step->kv_heads = model.kv_heads;
  step->head_dim = model.head_dim;
  step->ffn_hidden = model.ffn_hidden;
  step->vocab = model.vocabulary;
  step->mtp_layers = model.multi_token_prediction_layers;
  step->experts = model.experts.experts;
  step->topk = model.experts.top_k;
  step->expert_ffn = model.experts.expert_ffn_hidden;
  step->shared_ffn = model.experts.shared_ffn_hidden;
  step->dense_layers = model.experts.enabled() ? model.experts.leading_dense_layers : 0;
  step->arch = model.experts.enabled() ? "moe" : "dense";
}

}  // namespace

void FillShippedModels(const scenario::LoadOptions& load, std::vector<MeasuredStep>* steps) {
  std::map<std::string, std::string> names;
  std::map<std::string, Result<model::TransformerConfig>> models;
  for (MeasuredStep& step : *steps) {
    const bool blank = step.layers == 0 && step.hidden == 0 && step.heads == 0 && step.vocab == 0;
    if (!blank || step.model.empty()) continue;
    if (names.empty()) names = ModelNames(load);
    const auto named = names.find(Squeezed(step.model));
    if (named == names.end()) {
      std::vector<std::string_view> known;
      known.reserve(names.size());
      for (const auto& [squeezed, name] : names) known.push_back(squeezed);
      const std::string word = Squeezed(step.model);
      const std::string_view nearest = Nearest(word, known);
      step.model_hint = fmt::format(
          "no model description is named '{}'{}", step.model,
          nearest.empty() ? "" : fmt::format("; nearest: '{}'", names[std::string(nearest)]));
      continue;
    }
    const std::string& name = named->second;
    if (!models.contains(name)) models.emplace(name, LoadModel(name, load));
    const Result<model::TransformerConfig>& model = models.at(name);
    if (model) {
      Fill(name, *model, &step);
    } else {
      step.model_hint = model.error().front().message;
    }
  }
}

}  // namespace quadrille::tools
