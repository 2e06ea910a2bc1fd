// Imperfection is an input: slow GPUs, thin links, jitter. Each perturbation names what it touches.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::runtime {

enum class PerturbationKind : std::uint8_t {
  kGpuSpeed,        // kernels of `ranks` (all when empty) run at `factor` of their speed
  kGpuSpeedSpread,  // each GPU draws its speed from a normal distribution around 1 with deviation
                    // `sigma`
  kKernelJitter,    // each kernel draws a factor 1 + |normal| x sigma
  kNicBandwidth,    // NICs of `ranks` run at `factor`
  kNvlinkBandwidth,
  kLinkLatency,  // `delay` added to every collective of `ranks`
};

struct Perturbation {
  PerturbationKind kind = PerturbationKind::kGpuSpeed;
  std::vector<RankId> ranks;
  Ratio factor{1.0};
  Ratio sigma{0.0};
  Duration delay{0};
  std::uint64_t seed = 0;
};

}  // namespace quadrille::runtime
