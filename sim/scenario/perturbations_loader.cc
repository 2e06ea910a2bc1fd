// The list `perturbations`: which keys each kind has, and the windows in which they hold.
#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/names.h"
#include "sim/scenario/run_sections.h"

namespace quadrille::scenario {
namespace {

using Kind = runtime::PerturbationKind;

// What a kind takes; keys of others stay unknown.
struct Form {
  bool factor = false;
  bool sigma = false;
  bool delay = false;
  bool seed = false;
  bool ranks = false;  // or nodes
  bool window = false;
};

Form FormOf(Kind kind) {
  switch (kind) {
    case Kind::kGpuSpeed:
    case Kind::kNicBandwidth:
    case Kind::kNvlinkBandwidth: return {.factor = true, .ranks = true, .window = true};
    case Kind::kLinkLatency: return {.delay = true, .ranks = true, .window = true};
    case Kind::kGpuSpeedSpread:
    case Kind::kKernelJitter: return {.sigma = true, .seed = true, .ranks = true};
    case Kind::kLaunchJitter: return {.delay = true, .seed = true, .ranks = true};
    case Kind::kExpertImbalance: return {.sigma = true, .seed = true};
    case Kind::kNicDown: return {.ranks = true, .window = true};
    case Kind::kFabricBandwidth: return {.factor = true, .window = true};
    case Kind::kRailDown:
    case Kind::kFabricDown:
    case Kind::kSwitchDown:
    case Kind::kBackgroundTraffic: return {.window = true};
  }
  return {};
}

void ReadWindow(MapReader& reader, runtime::Window* window) {
  reader.Read("from", &window->begin);
  const bool until = reader.Read("until", &window->end, Zero::kRefused);
  if (until && window->end <= window->begin) reader.Error("until", "is not after 'from'");
  Ratio duty{0.5};
  if (reader.Read("duty", &duty, Zero::kRefused) && duty.value() >= 1.0) {
    reader.Error("duty", "must be below 1; without 'period' the window holds all the while");
    duty = Ratio(0.5);
  }
  if (!reader.Read("period", &window->period, Zero::kRefused)) {
    if (reader.Has("duty")) reader.Error("duty", "needs a 'period'");
    return;
  }
  if (window->period < std::chrono::microseconds(1)) {
    return reader.Error("period", "is less than 1 us, millions of changes in a step");
  }
  window->on = quadrille::Scale(window->period, duty.value());
  if (window->on.count() == 0 || window->on >= window->period) {
    reader.Error("period", "is too short to be divided");
  }
}

void ReadRanks(MapReader& reader, runtime::Perturbation* perturbation) {
  std::vector<std::int32_t> ranks;
  reader.Read("ranks", &ranks, kNotNegative);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (std::int32_t rank : ranks) perturbation->ranks.push_back(RankId(rank));
  if (perturbation->kind == Kind::kNicDown) {
    reader.Require({"ranks"});
  } else if (reader.Read("nodes", &perturbation->nodes, kNotNegative) && reader.Has("ranks")) {
    reader.Error("nodes", "names ranks that 'ranks' names too; use one of them");
  }
}

// A resource that is gone for good leaves a run that cannot end.
void CheckFactor(MapReader& reader, const runtime::Perturbation& perturbation) {
  const double factor = perturbation.factor.value();
  if (factor > 100.0) reader.Error("factor", "more than 100 times nominal");
  if (factor > 0.0 && factor < 0.001) reader.Error("factor", "less than a thousandth of nominal");
  if (factor > 0.0) return;
  const bool gpu = perturbation.kind == Kind::kGpuSpeed;
  const bool returns = perturbation.timed() && (perturbation.window.end != Duration::max() ||
                                                perturbation.window.period.count() > 0);
  if (gpu || !returns) {
    reader.Error("factor",
                 gpu ? "must not be zero: nothing would be computed"
                     : "must not be zero but in a window that ends: nothing would arrive",
                 ProblemKind::kCannotRun);
  }
}

runtime::Perturbation LoadPerturbation(MapReader reader) {
  runtime::Perturbation perturbation;
  if (!reader.present()) return perturbation;
  reader.Require({"kind"});
  const bool known = reader.ReadName("kind", &perturbation.kind, kPerturbationKinds);
  // Of an unknown kind every key may be right.
  const Form form = known ? FormOf(perturbation.kind) : Form{true, true, true, true, true, true};
  const Kind kind = perturbation.kind;
  if (form.ranks) ReadRanks(reader, &perturbation);
  if (form.sigma) reader.Read("sigma", &perturbation.sigma, Zero::kRefused);
  if (form.seed) reader.Read("seed", &perturbation.seed);
  if (form.delay && reader.Read("delay", &perturbation.delay, Zero::kRefused) &&
      perturbation.delay > kLatency.maximum) {
    reader.Error("delay", "more than 1 s");
  }
  if (form.window) ReadWindow(reader, &perturbation.window);
  if (form.factor && reader.Read("factor", &perturbation.factor) && known) {
    CheckFactor(reader, perturbation);
  }
  if (!known || kind == Kind::kRailDown) reader.Read("rails", &perturbation.rails, kNotNegative);
  if (!known || kind == Kind::kFabricBandwidth || kind == Kind::kFabricDown ||
      kind == Kind::kBackgroundTraffic) {
    reader.Read("links", &perturbation.links, "[leaf0 -> spine1]");
  }
  if (!known || kind == Kind::kSwitchDown) {
    reader.Read("switches", &perturbation.switches, "[spine1]");
  }
  if (!known || kind == Kind::kBackgroundTraffic) {
    const bool read = reader.Read("share", &perturbation.factor, Zero::kRefused);
    if (reader.ReadName("tier", &perturbation.tier, kFabricTiers) && known && reader.Has("links")) {
      reader.Error("tier", "names links that 'links' names too; use one of them");
    }
    if (known && read && perturbation.factor.value() >= 1.0) {
      reader.Error("share", "must be below 1: nothing would arrive", ProblemKind::kCannotRun);
    }
  }
  if (known && form.factor) reader.Require({"factor"});
  if (known && form.sigma) reader.Require({"sigma"});
  if (known && form.delay) reader.Require({"delay"});
  if (known && kind == Kind::kRailDown) reader.Require({"rails"});
  if (known && (kind == Kind::kFabricBandwidth || kind == Kind::kFabricDown)) {
    reader.Require({"links"});
  }
  if (known && kind == Kind::kSwitchDown) reader.Require({"switches"});
  if (known && kind == Kind::kBackgroundTraffic) reader.Require({"share"});
  if (perturbation.sigma.value() > 1.0) reader.Error("sigma", "more than 100 % of the mean");
  reader.Finish();
  return perturbation;
}

}  // namespace

void LoadPerturbations(MapReader& root, Scenario* scenario) {
  const YamlValue* list = root.Find("perturbations");
  if (list == nullptr) return;
  if (!list->is_sequence()) return root.Error("perturbations", "expected a list");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string path = fmt::format("perturbations.{}", i);
    scenario->perturbations.push_back(
        LoadPerturbation(MapReader(&list->items[i], path, &root.findings())));
    scenario->perturbations.back().place = root.findings().Position(path);
  }
}

}  // namespace quadrille::scenario
