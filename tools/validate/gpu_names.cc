#include "tools/validate/gpu_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "sim/base/nearest.h"

namespace quadrille::tools {
namespace {

struct Spelling {
  std::string_view parts;  // in the order of PartsOf
  GpuName gpu;
};

// Of a GPU with one memory size its size need not be said, nor of one form its form.
constexpr Spelling kSpellings[] = {
    {"a100", {"A100-80GB", "a100-sxm-80gb"}},
    {"80gb a100", {"A100-80GB", "a100-sxm-80gb"}},
    {"a100 sxm", {"A100-80GB", "a100-sxm-80gb"}},
    {"80gb a100 sxm", {"A100-80GB", "a100-sxm-80gb"}},
    {"40gb a100", {"A100-40GB", "a100-sxm-40gb"}},
    {"40gb a100 sxm", {"A100-40GB", "a100-sxm-40gb"}},
    {"a100 pcie", {"A100-PCIe", "a100-pcie"}},
    {"80gb a100 pcie", {"A100-PCIe", "a100-pcie"}},
    {"40gb a100 pcie", {"A100-40GB-PCIe", "a100-pcie-40gb"}},
    {"v100", {"V100", "v100-sxm"}},
    {"sxm v100", {"V100", "v100-sxm"}},
    {"16gb v100", {"V100", "v100-sxm"}},
    {"16gb sxm v100", {"V100", "v100-sxm"}},
    {"pcie v100", {"V100-PCIe", "v100-pcie"}},
    {"16gb pcie v100", {"V100-PCIe", "v100-pcie"}},
    {"32gb v100", {"V100-32GB", "v100-sxm"}},
    {"32gb sxm v100", {"V100-32GB", "v100-sxm"}},
    {"h100", {"H100", "h100-sxm"}},
    {"h100 sxm", {"H100", "h100-sxm"}},
    {"80gb h100", {"H100", "h100-sxm"}},
    {"80gb h100 sxm", {"H100", "h100-sxm"}},
    {"500w 96gb h100", {"H100-96GB-500W", "h100-torchtitan"}},
    {"h100 torchtitan", {"H100-96GB-500W", "h100-torchtitan"}},
    {"h200", {"H200", "h200-sxm"}},
    {"h200 sxm", {"H200", "h200-sxm"}},
    {"141gb h200", {"H200", "h200-sxm"}},
    {"141gb h200 sxm", {"H200", "h200-sxm"}},
    {"h800", {"H800", "h800-sxm"}},
    {"h800 sxm", {"H800", "h800-sxm"}},
    {"80gb h800", {"H800", "h800-sxm"}},
    {"80gb h800 sxm", {"H800", "h800-sxm"}},
    {"b200", {"B200", "b200"}},
    {"b200 sxm", {"B200", "b200"}},
    {"b300", {"B300", "b300"}},
    {"b300 sxm", {"B300", "b300"}},
    {"gb200", {"GB200", "gb200"}},
    {"gb200 nvl72", {"GB200", "gb200"}},
    {"gb300", {"GB300", "gb300"}},
    {"gb300 nvl72", {"GB300", "gb300"}},
};

// The words of a name in lower case and alphabetical order, without the maker's: "h100 sxm".
std::string PartsOf(std::string_view text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  std::erase_if(parts, [](const std::string& part) {
    return part.empty() || part == "nvidia" || part.rfind("hbm", 0) == 0;
  });
  for (std::string& part : parts) {
    if (part.rfind("sxm", 0) == 0) part = "sxm";  // SXM2 to SXM5 follow from the GPU
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i + 1] != "gb") continue;  // "80 GB"
    parts[i] += "gb";
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::sort(parts.begin(), parts.end());
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : " ") + part;
  return joined;
}

}  // namespace

const GpuName* FindGpu(std::string_view text) {
  const std::string parts = PartsOf(text);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.parts == parts) return &spelling.gpu;
  }
  return nullptr;
}

std::string KnownGpus(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Spelling& spelling : kSpellings) {
    if (names.empty() || names.back() != spelling.gpu.measured) {
      names.push_back(spelling.gpu.measured);
    }
  }
  std::string upper;
  for (char c : text) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string_view nearest = Nearest(upper, names);
  if (!nearest.empty()) return fmt::format("; nearest: '{}'", nearest);
  return fmt::format("; known: {}", fmt::join(names, ", "));
}

}  // namespace quadrille::tools
