#include "tools/validate/hardware_choice.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/validate/gpu_names.h"

namespace quadrille::tools {
namespace {

// The first rule whose GPU is the row's, without a trailing '?', and whose words are in the
// interconnect column.
struct Rule {
  std::string_view gpu;
  std::string_view words;
  std::string_view cluster;
  std::string_view override_gpu;
};
constexpr Rule kRules[] = {
    {"A100-80GB", "Omni-Path", "jean-zay-a100", ""},
    {"A100-80GB", "4x100", "internevo-a100", ""},
    {"A100-80GB", "Selene", "selene-a100", ""},
    {"A100-80GB", "4x HDR", "vtrain-a100", ""},
    {"A100-80GB", "1600 Gbps", "mosaic-a100", ""},
    {"A100-80GB", "", "dgx-a100-superpod", ""},
    {"A100-40GB", "1600 Gbps", "mosaic-a100", "a100-sxm-40gb"},
    {"A100-40GB", "", "dgx-a100-superpod", "a100-sxm-40gb"},
    {"A100-PCIe", "", "a100-pcie-node", ""},
    {"A100-40GB-PCIe", "", "a100-pcie-node", "a100-pcie-40gb"},
    {"V100-32GB", "", "dgx2-v100", ""},
    {"V100", "", "dgx1-v100", ""},
    {"V100-PCIe", "", "v100-pcie-node", ""},
    {"H100-96GB-500W", "", "torchtitan-h100", ""},
    {"H100", "", "dgx-h100-superpod", ""},
    {"H200", "", "dgx-h200-superpod", ""},
    {"H800", "", "h800-deepseek", ""},
    {"B200", "single 8-GPU", "simumax-b200-node", ""},
    {"B200", "", "dgx-b200-superpod", ""},
    {"B300", "", "dgx-b300-superpod", ""},
    {"GB200", "", "gb200-nvl72", ""},
    {"GB300", "", "gb300-nvl72", ""},
};

std::string_view WithoutMark(std::string_view name) {
  while (!name.empty() && (name.back() == '?' || name.back() == ' ')) name.remove_suffix(1);
  return name;
}

}  // namespace

Result<HardwareChoice> ChooseHardware(const MeasuredStep& step) {
  if (!step.cluster.empty()) return HardwareChoice{step.cluster, "", "stated"};
  for (const Rule& rule : kRules) {
    if (rule.gpu != WithoutMark(step.gpu)) continue;
    if (step.interconnect.find(rule.words) == std::string::npos) continue;
    return HardwareChoice{
        std::string(rule.cluster), std::string(rule.override_gpu),
        rule.words.empty() ? fmt::format("the usual cluster of {}", step.gpu)
                           : fmt::format("{} with '{}' in its interconnect", step.gpu, rule.words)};
  }
  return Error(
      fmt::format("no cluster description for GPU '{}'{}; or name a cluster in a column 'cluster'",
                  step.gpu, KnownGpus(step.gpu)));
}

std::string GenerationOf(const std::string& gpu) {
  const std::string_view name = WithoutMark(gpu);
  const auto starts = [&](std::string_view head) { return name.substr(0, head.size()) == head; };
  if (starts("V100")) return "volta";
  if (starts("A100") || starts("A800")) return "ampere";
  if (starts("H")) return "hopper";
  if (starts("B") || starts("GB")) return "blackwell";
  return "other";
}

}  // namespace quadrille::tools
