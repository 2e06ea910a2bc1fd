// The GPUs that tables of measurements name, however they spell them.
#pragma once

#include <string>
#include <string_view>

namespace quadrille::tools {

struct GpuName {
  std::string_view measured;     // as tables of steps have it: "A100-80GB"
  std::string_view description;  // of scenarios/gpus: "a100-sxm-80gb"
};

// The GPU that `text` means: "H100", "h100-sxm", "NVIDIA H100 80GB SXM5?" are one. Case, a trailing
// '?', the maker's name and the order of memory and form factor do not matter. nullptr: none known.
[[nodiscard]] const GpuName* FindGpu(std::string_view text);

// For an error about `text`, which is none: "; nearest: 'H100'", or all that are known.
[[nodiscard]] std::string KnownGpus(std::string_view text);

}  // namespace quadrille::tools
