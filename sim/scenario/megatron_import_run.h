// One Megatron-LM job on its way to a run file: a function per section.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/megatron_import.h"
#include "sim/scenario/megatron_import_values.h"

namespace quadrille::scenario {

// Sections are written in the order of a run file. Import() calls all of them, once.
class MegatronImporter {
 public:
  MegatronImporter(MegatronArguments arguments, const std::string& file,
                   const MegatronImportOptions& options)
      : flags_(std::move(arguments.flags)),
        gpus_per_node_(arguments.gpus_per_node),
        nodes_(arguments.nodes),
        file_(file),
        options_(options) {
    passed_over_ = std::move(arguments.passed_over);
  }

  Result<MegatronImport> Import();

 private:
  void Section(const std::string& name) { body_ += name + ":\n"; }
  template <typename T>
  void Key(const std::string& key, const T& value) {
    body_ += fmt::format("  {}: {}\n", key, value);
  }
  void Inner(const std::string& key, std::int64_t value);
  // Once.
  void Assume(const std::string& text);

  void ReadDegrees();
  // Megatron keeps a gated MLP's parameters at those of a plain one.
  std::int64_t FeedForwardWidth();
  std::int64_t Vocabulary();
  std::int64_t PaddedVocabulary(std::int64_t size, std::int64_t divisor);
  void Model();
  void SlidingWindow();
  void KeysAndValues();
  void ActivationAndNorm();
  void Biases();
  void LatentAttention();
  void ModelExperts();
  // "2", or a list such as "([0]*3+[1]*58)" or "[0,1,1]": leading dense layers, then expert layers.
  void ExpertLayers(std::string text);
  // "[0]*3+[1,1]" as "00011".
  static std::optional<std::string> LayerPattern(std::string_view text);
  std::optional<std::int64_t> WindowPeriod(const std::string& text);
  void Cluster();
  void Parallel();
  // The fewest that hold both the dense and the expert grid.
  [[nodiscard]] std::int64_t OneReplica();
  void VirtualStages();
  std::int64_t StagesOfLayers(std::int64_t layers_per_stage);
  void Sharding();
  void Schedule();
  void Training();
  std::string Precision();
  void NarrowStorage();
  void Recompute();
  void Experts();
  void Layout();
  void Kernels();
  void Attention();
  void Fusions();
  void Optimizer();
  void Overlap();
  void Moments();
  void ExpertCapacity();
  void JudgeTheRest();
  void JudgePassedOver();
  // The comments above the sections.
  [[nodiscard]] std::string Header() const;

  MegatronFlagValues flags_;
  std::optional<std::int64_t> gpus_per_node_;
  std::optional<std::int64_t> nodes_;
  std::vector<ShellPassedOver> passed_over_;
  std::string file_;
  MegatronImportOptions options_;
  MegatronImport result_;
  std::string body_;
  std::int64_t tensor_ = 1;
  std::int64_t pipeline_ = 1;
  std::int64_t context_ = 1;
  std::int64_t data_ = 1;
  std::int64_t virtual_stages_ = 1;
  std::int64_t layers_ = 1;
  std::int64_t hidden_ = 1;
  std::int64_t heads_ = 1;
  std::int64_t experts_ = 0;
  std::int64_t expert_ = 1;
  std::optional<std::int64_t> expert_tensor_;
  std::string precision_ = "bf16";
  bool swiglu_ = false;
  bool latent_ = false;
  std::string layout_;
};

}  // namespace quadrille::scenario
