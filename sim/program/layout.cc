#include "sim/program/layout.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

namespace quadrille::program {
namespace {

using model::Piece;
using model::PieceKind;

constexpr std::size_t kMaxLayoutSymbols = 100'000;

// Expands `x*n` and parentheses of a layout string into its plain form; nullopt when it does not
// parse.
class LayoutExpander {
 public:
  explicit LayoutExpander(const std::string& text) : text_(text) {}

  std::optional<std::string> Expand() {
    std::optional<std::string> result = Sequence();
    if (position_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  std::optional<std::string> Sequence() {
    std::string result;
    while (position_ < text_.size() && text_[position_] != ')') {
      std::optional<std::string> item = Item();
      if (!item || result.size() + item->size() > kMaxLayoutSymbols) return std::nullopt;
      result += *item;
    }
    return result;
  }

  std::optional<std::string> Item() {
    std::string item;
    const char c = text_[position_++];
    if (c == '(') {
      if (++depth_ > 32) return std::nullopt;
      std::optional<std::string> inner = Sequence();
      --depth_;
      if (!inner || position_ >= text_.size() || text_[position_] != ')') return std::nullopt;
      ++position_;
      item = *inner;
    } else if (std::string("EtmL|").find(c) != std::string::npos) {
      item = c;
    } else if (c == ' ' || c == ',') {
      return item;
    } else {
      return std::nullopt;
    }
    if (position_ < text_.size() && text_[position_] == '*') {
      ++position_;
      const std::size_t digits = position_;
      std::size_t count = 0;
      while (position_ < text_.size() &&
             std::isdigit(static_cast<unsigned char>(text_[position_]))) {
        count = count * 10 + static_cast<std::size_t>(text_[position_++] - '0');
        if (count * item.size() > kMaxLayoutSymbols) return std::nullopt;
      }
      if (position_ == digits) return std::nullopt;
      std::string repeated;
      for (std::size_t i = 0; i < count; ++i) repeated += item;
      item = repeated;
    }
    return item;
  }

  const std::string& text_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

Result<StageLayout> FromString(const model::TransformerConfig& config, const std::string& text,
                               std::int32_t stages) {
  const std::optional<std::string> plain = LayoutExpander(text).Expand();
  if (!plain) {
    return Error(
        fmt::format("pipeline layout '{}' does not parse: use E, t, m, L, '|', '(...)' and "
                    "'x*n' (example: Ett|(tt|)*6tL)",
                    text));
  }
  StageLayout layout(1);
  std::int32_t layers = 0;
  std::int32_t modules = 0;
  std::int32_t embeddings = 0;
  std::int32_t losses = 0;
  for (char c : *plain) {
    switch (c) {
      case '|': layout.emplace_back(); break;
      case 'E':
        layout.back().push_back({PieceKind::kEmbedding, 0});
        ++embeddings;
        break;
      case 't': layout.back().push_back({PieceKind::kLayer, layers++}); break;
      case 'm': layout.back().push_back({PieceKind::kMultiTokenPrediction, modules++}); break;
      default: layout.back().push_back({PieceKind::kHead, 0}); ++losses;
    }
  }
  Diagnostics problems;
  const auto expect = [&](std::int64_t have, std::int64_t want, const char* what) {
    if (have == want) return;
    problems.push_back(
        {{}, fmt::format("pipeline layout '{}' has {} {}; {} needed", text, have, what, want)});
  };
  expect(static_cast<std::int64_t>(layout.size()), stages, "stages");
  expect(layers, config.layers, "decoder layers (t)");
  expect(modules, config.multi_token_prediction_layers, "prediction modules (m)");
  expect(embeddings, 1, "embeddings (E)");
  expect(losses, 1, "losses (L)");
  if (problems.empty() &&
      (layout.front().empty() || layout.front().front().kind != PieceKind::kEmbedding)) {
    problems.push_back({{}, fmt::format("pipeline layout '{}' must begin with E", text)});
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(problems);
  return layout;
}

// Decoder layers of each global stage; slots of embedding and loss already taken off.
Result<std::vector<std::int32_t>> LayersPerStage(const model::TransformerConfig& config,
                                                 const LayoutOptions& options,
                                                 std::int32_t pipeline,
                                                 std::int32_t virtual_stages) {
  const std::int32_t stages = pipeline * virtual_stages;
  const bool stated = options.first_stage_layers || options.last_stage_layers;
  std::vector<std::int32_t> layers(static_cast<std::size_t>(stages));
  if (!stated) {
    const std::int32_t slots = config.layers + (options.embedding_counts_as_layer ? 1 : 0) +
                               (options.loss_counts_as_layer ? 1 : 0);
    if (slots % stages != 0) {
      return Error(fmt::format(
          "{} decoder layers{} do not divide over pipeline {} x virtual_stages {} = {} chunks; "
          "count "
          "the embedding or the loss as a layer, state first_stage_layers or last_stage_layers, or "
          "give a pipeline_layout",
          config.layers,
          slots == config.layers ? "" : fmt::format(" (+{} counted slots)", slots - config.layers),
          pipeline, virtual_stages, stages));
    }
    layers.assign(layers.size(), slots / stages);
    if (options.embedding_counts_as_layer) --layers.front();
    if (options.loss_counts_as_layer) --layers.back();
    return layers;
  }
  std::int32_t rest = config.layers;
  std::int32_t middle = pipeline;
  for (const auto& stage_layers : {options.first_stage_layers, options.last_stage_layers}) {
    if (!stage_layers) continue;
    rest -= *stage_layers;
    --middle;
    if (*stage_layers % virtual_stages != 0) {
      return Error(fmt::format("{} layers of a stated stage do not divide over {} virtual stages",
                               *stage_layers, virtual_stages));
    }
  }
  if (rest < 0 || (middle == 0 && rest != 0) ||
      (middle > 0 && rest % (middle * virtual_stages) != 0)) {
    return Error(
        fmt::format("{} decoder layers left after the stated stages do not divide over {} "
                    "other pipeline ranks x {} virtual stages",
                    rest, middle, virtual_stages));
  }
  for (std::int32_t s = 0; s < stages; ++s) {
    const std::int32_t rank = s % pipeline;
    std::int32_t count = middle > 0 ? rest / middle : 0;
    if (rank == 0 && options.first_stage_layers) count = *options.first_stage_layers;
    if (rank == pipeline - 1 && options.last_stage_layers) count = *options.last_stage_layers;
    layers[static_cast<std::size_t>(s)] = count / virtual_stages;
  }
  return layers;
}

}  // namespace

Result<StageLayout> BuildLayout(const model::TransformerConfig& config,
                                const LayoutOptions& options, std::int32_t pipeline,
                                std::int32_t virtual_stages) {
  const std::int32_t stages = pipeline * virtual_stages;
  if (!options.pipeline_layout.empty()) return FromString(config, options.pipeline_layout, stages);
  const Result<std::vector<std::int32_t>> layers =
      LayersPerStage(config, options, pipeline, virtual_stages);
  if (!layers) return tl::unexpected<Diagnostics>(layers.error());
  StageLayout layout(static_cast<std::size_t>(stages));
  std::int32_t next = 0;
  layout.front().push_back({PieceKind::kEmbedding, 0});
  for (std::size_t s = 0; s < layout.size(); ++s) {
    for (std::int32_t i = 0; i < (*layers)[s]; ++i) {
      layout[s].push_back({PieceKind::kLayer, next++});
    }
  }
  for (std::int32_t i = 0; i < config.multi_token_prediction_layers; ++i) {
    layout.back().push_back({PieceKind::kMultiTokenPrediction, i});
  }
  layout.back().push_back({PieceKind::kHead, 0});
  return layout;
}

std::string Describe(const std::vector<Piece>& pieces) {
  std::int32_t layers = 0;
  std::string others;
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case PieceKind::kLayer: ++layers; break;
      case PieceKind::kEmbedding: others += ", embedding"; break;
      case PieceKind::kHead: others += ", head and loss"; break;
      case PieceKind::kMultiTokenPrediction: others += ", prediction module"; break;
    }
  }
  return fmt::format("{} decoder layer{}{}", layers, layers == 1 ? "" : "s", others);
}

}  // namespace quadrille::program
