// One function per family. Each states its condition in code: a formula that is exact only for some
// sizes or costs is returned only there. The tests compare every one with the evaluator over a grid
// of sizes and costs.
//
// Sources: GPipe and 1F1B (P - 1)(F + B), interleaved / v: arXiv 2104.04473, section 2.2.
// Zero-bubble orders: arXiv 2401.10241, table 1 (published for W <= I; the maxima here are what the
// orders do beyond it). V placements: arXiv 2405.15362. DualPipe: deepseek-ai/DualPipe, README.
// Seq1F1B: arXiv 2406.03488. Peaks not published there, exposed hops, Chimera's and Hanayo's idle
// were fitted to evaluated orders and are checked so.

#include "schedules/formulas.h"

#include <algorithm>

#include "schedules/refusals.h"
#include "schedules/registry.h"

namespace quadrille::schedules {
namespace {

struct Sizes {
  std::int32_t p;
  std::int32_t m;
  std::int32_t v;
  std::int32_t group;
  std::int32_t slices;
  TaskCosts costs;

  [[nodiscard]] bool equal_thirds() const {
    return costs.forward == costs.backward_input && costs.forward == costs.backward_weight;
  }
  [[nodiscard]] bool pair_is_sum() const { return costs.pair_cost == PairCost::kSum; }
  [[nodiscard]] Duration fill_and_drain() const {
    return (p - 1) * (costs.forward + costs.backward);
  }
};

template <typename PeakOfRank>
void SetPeak(ClosedForms& forms, const Sizes& s, std::string_view formula, PeakOfRank peak) {
  forms.peak_formula = formula;
  forms.peak_is_exact = true;
  for (std::int32_t r = 0; r < s.p; ++r) {
    forms.peak_activations.push_back(static_cast<std::int32_t>(peak(std::int64_t{r})));
  }
}

void GpipeForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B)";
  forms.idle = s.fill_and_drain();
  forms.exposed_hops = 2 * std::int64_t{s.p - 1};
  SetPeak(forms, s, "M", [&](std::int64_t) { return s.m; });
}

void OneForwardOneBackwardForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B)";
  forms.idle = s.fill_and_drain();
  // At most P microbatches are in flight, so every P of them pay the round trip (Little's law).
  if (s.p > 1 && s.m % s.p == 0) {
    forms.exposed_hops = 2 * std::int64_t{s.p - 1} * (s.m / s.p) + 2 * std::int64_t{s.p - 2};
  }
  SetPeak(forms, s, "min(P-r, M)",
          [&](std::int64_t r) { return std::min<std::int64_t>(s.p - r, s.m); });
}

void EagerForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B)";
  forms.idle = s.fill_and_drain();
  forms.exposed_hops = 2 * std::int64_t{s.p - 1};
  SetPeak(forms, s, "min(2(P-r)-1, M)",
          [&](std::int64_t r) { return std::min<std::int64_t>(2 * (s.p - r) - 1, s.m); });
}

// `extra`: the additional warm-up forward of the combined order.
void InterleavedForms(const Sizes& s, std::int32_t extra, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B) of a chunk";
  if (s.m >= s.p && s.pair_is_sum()) forms.idle = s.fill_and_drain();
  if (extra == 0 && s.p > 1 && s.group >= s.p && s.m % s.group == 0) {
    // With N = P a microbatch comes round the ring just in time; a larger group gives it slack.
    forms.exposed_hops =
        s.group == s.p ? 2 * (std::int64_t{s.v} * s.p - 1) : 2 * std::int64_t{s.p - 1};
  }
  SetPeak(forms, s, extra == 0 ? "min(vM, (v-1)N+2(P-1-r)+1)" : "min(vM, (v-1)N+2(P-1-r)+2)",
          [&](std::int64_t r) {
            return std::min(std::int64_t{s.v} * s.m,
                            std::int64_t{s.v - 1} * s.group + 2 * (s.p - 1 - r) + 1 + extra);
          });
}

void LoopedForms(const Sizes& s, bool breadth_first, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B) of a chunk, M >= P";
  if (s.m >= s.p && (breadth_first || (s.group >= s.p && s.m % s.group == 0)))
    forms.idle = s.fill_and_drain();
  if (breadth_first && s.m > s.p) forms.exposed_hops = 2 * std::int64_t{s.p - 1};
  SetPeak(forms, s, "vM", [&](std::int64_t) { return std::int64_t{s.v} * s.m; });
}

void ZeroBubbleH1Forms(const Sizes& s, ClosedForms& forms) {
  const TaskCosts& c = s.costs;
  forms.idle_formula = "(P-1)max(F, F+I-W) of a chunk, M >= P";
  if (s.m >= s.p) {
    forms.idle = (s.p - 1) * std::max(c.forward, c.forward + c.backward_input - c.backward_weight);
  }
  SetPeak(forms, s, "min(vM, (v-1)N+P)", [&](std::int64_t) {
    return std::min(std::int64_t{s.v} * s.m, std::int64_t{s.v - 1} * s.group + s.p);
  });
}

void ZeroBubbleH2Forms(const Sizes& s, ClosedForms& forms) {
  const TaskCosts& c = s.costs;
  forms.idle_formula = "(P-1)max(F, F+I-2W); inside a span (P-1)max(0, F+I-2W)";
  const Duration bubble = c.forward + c.backward_input - 2 * c.backward_weight;
  forms.idle = (s.p - 1) * std::max(c.forward, bubble);
  forms.idle_inside_span = (s.p - 1) * std::max(Duration(0), bubble);
  SetPeak(forms, s, "2P-1", [&](std::int64_t) { return 2 * std::int64_t{s.p} - 1; });
}

void ZbvForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-1)F of a chunk, 0 inside a span, if F=I=W and M >= 2P-1";
  if (s.equal_thirds() && s.m >= 2 * std::int64_t{s.p} - 1) {
    forms.idle = (s.p - 1) * s.costs.forward;
    forms.idle_inside_span = Duration(0);
  }
  SetPeak(forms, s, "min(2M, 2P)",
          [&](std::int64_t) { return 2 * std::int64_t{std::min(s.p, s.m)}; });
  forms.peak_is_exact = s.m >= 2 * std::int64_t{s.p} - 1;
}

void VHalfForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "6*ceil(P/2)-7 chunk forwards, if F=I=W, P >= 3 and M >= 2P";
  if (s.equal_thirds() && s.p >= 3 && s.m >= 2 * s.p) {
    forms.idle = (6 * ((s.p + 1) / 2) - 7) * s.costs.forward;
  }
  SetPeak(forms, s, "at most 2*floor((P+2)/2)",
          [&](std::int64_t) { return 2 * ((std::int64_t{s.p} + 2) / 2); });
  forms.peak_is_exact = false;
}

void VMinForms(const Sizes& s, ClosedForms& forms) {
  SetPeak(forms, s, "at most 2*floor((P+4)/3)",
          [&](std::int64_t) { return 2 * ((std::int64_t{s.p} + 4) / 3); });
  forms.peak_is_exact = false;
}

void GroupInterleavedForms(const Sizes& s, ClosedForms& forms) {
  SetPeak(forms, s, "at most (v-1)g+P-r",
          [&](std::int64_t r) { return std::int64_t{s.v - 1} * s.group + s.p - r; });
  forms.peak_is_exact = false;
}

void DualPipeForms(const Sizes& s, std::int32_t half_stages, ClosedForms& forms) {
  forms.idle_formula =
      half_stages == s.p ? "(P-1)(F&B+B-3W) of a chunk, if F=I=W" : "(P/2-1)(F&B+B-3W), if F=I=W";
  const TaskCosts& c = s.costs;
  if (s.equal_thirds() && s.pair_is_sum()) {
    forms.idle = (half_stages - 1) * (c.forward + 2 * c.backward - 3 * c.backward_weight);
  }
  SetPeak(forms, s, half_stages == s.p ? "2P+1" : "P+1",
          [&](std::int64_t) { return 2 * std::int64_t{half_stages} + 1; });
}

void ChimeraForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-2)(1+M/P)F, if B=2F and P divides M";
  if (s.m % s.p != 0) return;
  if (s.costs.backward == 2 * s.costs.forward) {
    forms.idle = std::int64_t{s.p - 2} * (1 + s.m / s.p) * s.costs.forward;
  }
  SetPeak(forms, s, "P/2+1+min(r, P-1-r)",
          [&](std::int64_t r) { return s.p / 2 + 1 + std::min(r, s.p - 1 - r); });
}

// One wave is Chimera for 2P ranks and 2M microbatches, cut in half.
void HanayoForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "2(P-1)(1+M/P)F of a chunk, if B=2F and P divides M";
  if (s.m % s.p != 0) return;
  if (s.costs.backward == 2 * s.costs.forward) {
    forms.idle = 2 * std::int64_t{s.p - 1} * (1 + s.m / s.p) * s.costs.forward;
  }
  SetPeak(forms, s, "P+1+r", [&](std::int64_t r) { return s.p + 1 + r; });
}

void Seq1F1BForms(const Sizes& s, ClosedForms& forms) {
  forms.idle_formula = "(P-1)(F+B) of a slice";
  forms.idle = s.fill_and_drain();
  SetPeak(forms, s, "min(MQ, P-r+Q-1)", [&](std::int64_t r) {
    return std::min(std::int64_t{s.m} * s.slices, s.p - r + s.slices - 1);
  });
}

struct FormsOfSchedule {
  std::string_view name;
  void (*apply)(const Sizes&, ClosedForms&);
};

constexpr FormsOfSchedule kForms[] = {
    {"gpipe", GpipeForms},
    {"gpipe-lifo", GpipeForms},
    {"1f1b", OneForwardOneBackwardForms},
    {"eager-1f1b", EagerForms},
    {"interleaved", [](const Sizes& s, ClosedForms& f) { InterleavedForms(s, 0, f); }},
    {"combined", [](const Sizes& s, ClosedForms& f) { InterleavedForms(s, 1, f); }},
    {"breadth-first", [](const Sizes& s, ClosedForms& f) { LoopedForms(s, true, f); }},
    {"breadth-first-fifo", [](const Sizes& s, ClosedForms& f) { LoopedForms(s, true, f); }},
    {"depth-first", [](const Sizes& s, ClosedForms& f) { LoopedForms(s, false, f); }},
    {"zb-h1", ZeroBubbleH1Forms},
    {"zb-h2", ZeroBubbleH2Forms},
    {"interleaved-zb", ZeroBubbleH1Forms},
    {"group-interleaved", GroupInterleavedForms},
    {"zbv", ZbvForms},
    {"v-half", VHalfForms},
    {"v-min", VMinForms},
    {"dualpipe", [](const Sizes& s, ClosedForms& f) { DualPipeForms(s, s.p / 2, f); }},
    {"dualpipev", [](const Sizes& s, ClosedForms& f) { DualPipeForms(s, s.p, f); }},
    {"chimera", ChimeraForms},
    {"hanayo", HanayoForms},
    {"seq1f1b", Seq1F1BForms},
};

// Hops of one microbatch and pass between different ranks: S - 1, less where a V turns on a rank.
std::int64_t Hops(Placement placement, std::int64_t p, std::int64_t v) {
  if (p == 1) return 0;
  switch (placement) {
    case Placement::kLoop: return p * v - 1;
    case Placement::kV: return (p - 1) * v;
    case Placement::kBidirectional: return p - 1;
  }
  return 0;
}

Sizes Resolve(const ScheduleEntry& entry, const ScheduleRequest& request) {
  Sizes sizes{.p = request.pipeline,
              .m = request.microbatches,
              .v = VirtualStagesOr(request, entry.default_virtual_stages),
              .group = request.microbatches,
              .slices = 1,
              .costs = request.costs};
  ScheduleRequest grouped = request;
  if (entry.name == "interleaved-zb" && request.group == 0) grouped.group = kAutomaticGroup;
  if (entry.name == "combined" && request.pipeline == 1 && request.virtual_stages == 0) sizes.v = 1;
  if (entry.name == "interleaved" || entry.name == "combined" || entry.name == "interleaved-zb") {
    Refusals unused(entry.name, grouped, {.group = true});
    sizes.group = ResolveGroup(grouped, unused);
  }
  if (entry.name == "depth-first" || entry.name == "group-interleaved") {
    sizes.group = request.group > 0 ? request.group : request.pipeline;
  }
  if (entry.name == "seq1f1b") sizes.slices = request.slices > 0 ? request.slices : kDefaultSlices;
  return sizes;
}

}  // namespace

Result<ClosedForms> ClosedFormsOf(std::string_view name, const ScheduleRequest& request) {
  const ScheduleEntry* entry = FindSchedule(name);
  if (entry == nullptr) return tl::unexpected<Diagnostics>(BuildSchedule(name, request).error());
  const Sizes sizes = Resolve(*entry, request);
  ClosedForms forms;
  for (const FormsOfSchedule& row : kForms) {
    if (row.name == name) row.apply(sizes, forms);
  }
  forms.messages =
      2 * std::int64_t{sizes.m} * sizes.slices * Hops(entry->placement, sizes.p, sizes.v);
  return forms;
}

}  // namespace quadrille::schedules
