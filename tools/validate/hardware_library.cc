#include "tools/validate/hardware_library.h"

#include <fmt/format.h>

namespace quadrille::tools {

const scenario::Scenario* HardwareLibrary::Find(const std::string& cluster, const std::string& gpu,
                                                const std::string& collectives) {
  const std::array<std::string, 3> key = {cluster, gpu, collectives};
  auto found = loaded_.find(key);
  if (found == loaded_.end()) {
    // FP16 without a fused attention kernel runs on every GPU.
    const std::string text = fmt::format(
        "model: {{layers: 1, hidden: 64, ffn_hidden: 256, heads: 1, vocabulary: 128}}\n"
        "cluster: {}\ngpus: 1\n"
        "training: {{sequence_length: 128, global_batch: 1, precision: fp16}}\n"
        "kernels: {{attention: unfused}}\n",
        cluster);
    scenario::LoadOptions options = options_;
    if (!gpu.empty()) options.overrides.push_back("cluster.gpu=" + gpu);
    if (!collectives.empty()) options.overrides.push_back("cluster.collectives=" + collectives);
    found = loaded_.emplace(key, scenario::LoadScenarioText(text, "hardware.yaml", options)).first;
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace quadrille::tools
