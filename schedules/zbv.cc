// ZBV by rule: the V placement with a split backward (Qi et al., arXiv 2401.10241, section 6; the
// rule is PyTorch's ScheduleZBVZeroBubble, torch/distributed/pipelining/schedules.py).
//
// Rank r holds stages r and 2P - 1 - r, so the V turns on the last rank and ends on the first: rank
// 0 has both embedding and head, and a microbatch comes back to where it began. With F = I = W and
// M >= 2P - 1 no rank idles inside its own span, at a peak of 2P chunks, which is 1F1B's P stages.
// Between two barriers (P - 1) chunk forwards are idle.
//
// Invariants:
// 1. The order is built for n = max(M, 2P - 1) microbatches and microbatches >= M are dropped,
// which keeps it causal.
// 2. Phases of rank r: 2(P - r) - 1 x F(c0); r x [F(c1), F(c0)]; (P - r) x [F(c1), I(c1), W(c1)];
// while forwards remain
//    [F(c0) if left], I(c0), W(c0), F(c1), I(c1), W(c1); r x [I(c0), I(c1)]; (P - r) x [I(c0),
//    W(c0)]; the rest of W(c1), then of W(c0). Each kind and chunk counts its microbatches up from
//    0.

#include <algorithm>
#include <array>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

class ZbvRank {
 public:
  ZbvRank(std::int32_t pipeline, std::int32_t microbatches, std::int32_t rank)
      : p_(pipeline), m_(microbatches), n_(std::max(microbatches, 2 * pipeline - 1)), r_(rank) {}

  std::vector<Slot> Build() {
    for (std::int32_t i = 0; i < 2 * (p_ - r_) - 1; ++i) F(0);
    for (std::int32_t i = 0; i < r_; ++i) {
      F(1);
      F(0);
    }
    for (std::int32_t i = 0; i < p_ - r_; ++i) {
      F(1);
      I(1);
      W(1);
    }
    while (forward_[1] < n_ || forward_[0] < n_) {
      if (forward_[0] < n_) F(0);
      I(0);
      W(0);
      F(1);
      I(1);
      W(1);
    }
    for (std::int32_t i = 0; i < r_; ++i) {
      I(0);
      I(1);
    }
    for (std::int32_t i = 0; i < p_ - r_; ++i) {
      I(0);
      W(0);
    }
    while (weight_[1] < input_[1]) W(1);
    while (weight_[0] < input_[0]) W(0);
    return std::move(order_);
  }

 private:
  void Emit(const Action& action) {
    if (action.microbatch.value() < m_) Append(order_, action);
  }
  void F(std::int32_t chunk) { Emit(Forward(Next(forward_, chunk), chunk)); }
  void I(std::int32_t chunk) { Emit(BackwardInput(Next(input_, chunk), chunk)); }
  void W(std::int32_t chunk) { Emit(BackwardWeight(Next(weight_, chunk), chunk)); }
  static std::int32_t Next(std::array<std::int32_t, 2>& counters, std::int32_t chunk) {
    return counters[static_cast<std::size_t>(chunk)]++;
  }

  std::int32_t p_;
  std::int32_t m_;
  std::int32_t n_;
  std::int32_t r_;
  std::array<std::int32_t, 2> forward_{};
  std::array<std::int32_t, 2> input_{};
  std::array<std::int32_t, 2> weight_{};
  std::vector<Slot> order_;
};

}  // namespace

Result<PipelineSchedule> GenerateZbv(const ScheduleRequest& request) {
  // The work is that of the longer order, so its size is what the limit applies to.
  ScheduleRequest longer = request;
  if (request.microbatches >= 1 && request.pipeline <= kMaxActions / 2) {
    longer.microbatches = std::max(request.microbatches, 2 * request.pipeline - 1);
  }
  Refusals refusals("zbv", longer, {.fixed_virtual_stages = 2});
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("zbv", request, Placement::kV, 2);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    schedule.ranks[static_cast<std::size_t>(r)] =
        ZbvRank(request.pipeline, request.microbatches, r).Build();
  }
  return schedule;
}

}  // namespace quadrille::schedules
