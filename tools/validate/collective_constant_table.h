// The constants of the collective cost law that measurements can determine, by the keys that
// scenarios/clusters/collectives/*.yaml gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/network/collective_constants.h"
#include "tools/validate/bounded_fit.h"

namespace quadrille::tools {

// One number of CollectiveConstants in base units: seconds, bytes/s, bytes, or a share of 1.
struct CollectiveConstant {
  enum class Unit : std::uint8_t { kTime, kBandwidth, kBytes, kShare };

  std::string_view key;  // "network_latency"; of a law with its field, "nvlink_all_reduce.alpha"
  Unit unit = Unit::kTime;
  double lower = 0.0;  // within which a fit keeps it
  double upper = 0.0;
  double (*get)(const network::CollectiveConstants&) = nullptr;
  void (*set)(network::CollectiveConstants*, double) = nullptr;

  // As a variable that starts at `value`, or at the nearer bound.
  [[nodiscard]] FitVariable Variable(double value) const;
  // "38.2 us", "479 GB/s", "200 MB", "0.957": four digits at most.
  [[nodiscard]] std::string Text(double value) const;
};

// All of them, those first that are tried first where few can be told.
[[nodiscard]] std::span<const CollectiveConstant> AllCollectiveConstants();

// What "--constants nvlink_all_reduce" means: the constant of that key, or the fields of that law.
[[nodiscard]] bool Names(std::string_view name, const CollectiveConstant& constant);

}  // namespace quadrille::tools
