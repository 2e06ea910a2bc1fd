// Imperfection is an input: slow GPUs, thin links, jitter. Each perturbation names what it touches
// and, where it does not last all the while, when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/result.h"
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
  kLinkLatency,      // `delay` added to every collective of `ranks`
  kLaunchJitter,     // the host begins each action |normal| x `delay` late and never catches up
  kExpertImbalance,  // in each layer the tokens of an expert-parallel rank are 1 + normal x `sigma`
                     // of the mean
  // The rest speaks of the cluster and not of ranks; ResolvePerturbations turns what it can into
  // the kinds above and leaves the others to the loads of the fabric.
  kNicDown,            // the NICs of `ranks` carry nothing, the node's others take their traffic
  kRailDown,           // the NICs at positions `rails` of every node, likewise
  kFabricBandwidth,    // `links` between switches run at `factor`
  kFabricDown,         // `links` carry nothing, traffic takes the ways that remain
  kSwitchDown,         // `switches`, likewise
  kBackgroundTraffic,  // others' traffic takes the share `factor` of the links of `tier`
};

// Links between switches.
enum class FabricTier : std::uint8_t { kAll, kLeafSpine, kSpineCore };

// When a perturbation holds, in time since the step began.
struct Window {
  Duration begin{0};
  Duration end{Duration::max()};  // max: for ever
  Duration period{0};             // flapping: on for the first `on` of each; 0: all the while
  Duration on{0};                 // REQUIRES: 0 < on < period where there is a period

  [[nodiscard]] bool always() const {
    return begin.count() == 0 && end == Duration::max() && period.count() == 0;
  }
  [[nodiscard]] bool On(TimePoint time) const;
  // The first change of On() after `time`, if there is one.
  [[nodiscard]] std::optional<TimePoint> NextChange(TimePoint time) const;
};

struct Perturbation {
  PerturbationKind kind = PerturbationKind::kGpuSpeed;
  std::vector<RankId> ranks{};  // ascending; empty: all
  Ratio factor{1.0};
  Ratio sigma{0.0};
  Duration delay{0};
  std::uint64_t seed = 0;
  Window window{};
  // As written, until they are resolved to ranks or links.
  std::vector<std::int32_t> nodes{};
  std::vector<std::int32_t> rails{};
  std::vector<std::string> links{};     // "leaf3 -> spine1", both directions
  std::vector<std::string> switches{};  // "spine1"
  FabricTier tier = FabricTier::kAll;
  // kExpertImbalance, once resolved: which of how many expert-parallel ranks `ranks` are.
  std::int32_t expert_index = 0;
  std::int32_t expert_count = 0;
  SourcePosition place{};  // where it is written; no part of what it does

  // It begins or ends within the step, so that only the event-driven executor can follow it.
  [[nodiscard]] bool timed() const { return !window.always(); }
};

}  // namespace quadrille::runtime
