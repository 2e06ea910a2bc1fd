// DualPipe and DualPipeV (DeepSeek-AI, arXiv 2412.19437, section 3.2.1; deepseek-ai/DualPipe,
// dualpipe/dualpipe.py and dualpipe/dualpipev.py).
//
// DualPipe feeds two replicas of the model from both ends of the pipeline: each rank holds stage r
// of one and stage P - 1 - r of the other, at twice the parameters. Microbatches of opposite
// directions meet, and the forward of one is fused with the backward of the other, so that the
// communication of each hides behind the computation of the other. DualPipeV cuts that in half: one
// replica in a V, chunk 0 going down and chunk 1 coming back up, at the ordinary parameters.
//
// Both are the same eight steps. Call phase 0 the direction that enters nearer this rank's half
// (chunk 0 in the V) and phase 1 the other; h is the rank's distance from its end, H the number of
// ranks per half (h = r, H = P in the V). The counts, with n the microbatches of a phase and s = 2H
// the stages that a microbatch passes:
//   1. 2(H - h - 1) x F0          2. (h + 1) x [F0, F1]         3. (H - h - 1) x [I1, W, F1]
//   4. (n - s + h + 1) x [F0&B1, F1&B0]; on the innermost ranks the very first pair is run as
//   separate F0, B1
//   5. (H - h - 1) x [B1, F1&B0]  6. (h + 1) x [B1, B0]         7. (H - h - 1) x [W, I0]        8.
//   (h + 1) x W
//
// Invariants:
// 1. A full backward is B; a split one is I with its W queued. The W queue is first-in first-out
// over both phases.
// 2. In step 6 the backward is whole up to iteration (h + 1) div 2 and split from there on,
// starting before that
//    iteration's B1 when h is odd and after it when h is even.
// 3. DualPipe needs P even, M even and M >= 2P; DualPipeV needs M >= 2P.

#include <fmt/format.h>

#include <array>
#include <deque>

#include "schedules/generators.h"
#include "schedules/order_builder.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

struct Shape {
  std::int32_t half = 0;          // H
  std::int32_t distance = 0;      // h
  std::int32_t microbatches = 0;  // n, of one phase
  std::int32_t first_chunk = 0;   // the chunk of phase 0
};

class EightSteps {
 public:
  explicit EightSteps(const Shape& shape) : shape_(shape) {}

  std::vector<Slot> Build() {
    const std::int32_t outer = shape_.half - shape_.distance - 1;
    const std::int32_t inner = shape_.distance + 1;
    for (std::int32_t i = 0; i < 2 * outer; ++i) Append(order_, NextForward(0));
    for (std::int32_t i = 0; i < inner; ++i) {
      Append(order_, NextForward(0));
      Append(order_, NextForward(1));
    }
    for (std::int32_t i = 0; i < outer; ++i) {
      SplitBackward(1);
      OldestWeight();
      Append(order_, NextForward(1));
    }
    MainPairs();
    for (std::int32_t i = 0; i < outer; ++i) {
      Append(order_, NextBackward(1));
      FusedPair(1, 0);
    }
    DrainBothPhases(inner);
    for (std::int32_t i = 0; i < outer; ++i) {
      OldestWeight();
      SplitBackward(0);
    }
    for (std::int32_t i = 0; i < inner; ++i) OldestWeight();
    return std::move(order_);
  }

 private:
  [[nodiscard]] std::int32_t Chunk(std::size_t phase) const {
    return phase == 0 ? shape_.first_chunk : 1 - shape_.first_chunk;
  }
  [[nodiscard]] Action NextForward(std::size_t phase) {
    return Forward(forwards_[phase]++, Chunk(phase));
  }
  [[nodiscard]] Action NextBackward(std::size_t phase) {
    return Backward(backwards_[phase]++, Chunk(phase));
  }
  void FusedPair(std::size_t forward_phase, std::size_t backward_phase) {
    const Action forward = NextForward(forward_phase);
    AppendPair(order_, forward, NextBackward(backward_phase));
  }
  void SplitBackward(std::size_t phase) {
    const Action input = As(ActionKind::kBackwardInput, NextBackward(phase));
    Append(order_, input);
    pending_weights_.push_back(As(ActionKind::kBackwardWeight, input));
  }
  void OldestWeight() {
    Append(order_, pending_weights_.front());
    pending_weights_.pop_front();
  }

  void MainPairs() {
    const std::int32_t count = shape_.microbatches - 2 * shape_.half + shape_.distance + 1;
    const bool innermost = shape_.distance == shape_.half - 1;
    for (std::int32_t i = 0; i < count; ++i) {
      if (i == 0 && innermost) {
        Append(order_, NextForward(0));
        Append(order_, NextBackward(1));
      } else {
        FusedPair(0, 1);
      }
      FusedPair(1, 0);
    }
  }

  void DrainBothPhases(std::int32_t count) {
    bool split = false;
    const auto backward = [&](std::size_t phase) {
      if (split) {
        SplitBackward(phase);
      } else {
        Append(order_, NextBackward(phase));
      }
    };
    for (std::int32_t i = 0; i < count; ++i) {
      if (i == count / 2 && shape_.distance % 2 == 1) split = true;
      backward(1);
      if (i == count / 2 && shape_.distance % 2 == 0) split = true;
      backward(0);
    }
  }

  Shape shape_;
  std::array<std::int32_t, 2> forwards_{};
  std::array<std::int32_t, 2> backwards_{};
  std::deque<Action> pending_weights_;
  std::vector<Slot> order_;
};

void RequireTwoPerRank(const ScheduleRequest& request, Refusals& refusals) {
  const std::int64_t least = 2 * std::int64_t{request.pipeline};
  if (request.microbatches < least) {
    refusals.Add(fmt::format("needs at least 2 microbatches per pipeline rank, {} in all, not {}",
                             least, request.microbatches));
  }
}

}  // namespace

Result<PipelineSchedule> GenerateDualPipe(const ScheduleRequest& request) {
  ScheduleRequest checked = request;
  if (checked.virtual_stages == 2) checked.virtual_stages = 1;  // one chunk of each replica
  Refusals refusals("dualpipe", checked, {.fixed_virtual_stages = 1});
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  if (p % 2 != 0) {
    refusals.Add(fmt::format("needs an even number of pipeline ranks, not {}", p));
  }
  if (m % 2 != 0) {
    refusals.Add(
        fmt::format("needs an even number of microbatches, half for each direction, not {}", m));
  }
  RequireTwoPerRank(request, refusals);
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("dualpipe", request, Placement::kBidirectional, 2);
  for (std::int32_t r = 0; r < p; ++r) {
    const bool second_half = r >= p / 2;
    const Shape shape{.half = p / 2,
                      .distance = second_half ? p - 1 - r : r,
                      .microbatches = m / 2,
                      .first_chunk = second_half ? 1 : 0};
    schedule.ranks[static_cast<std::size_t>(r)] = EightSteps(shape).Build();
  }
  return schedule;
}

Result<PipelineSchedule> GenerateDualPipeV(const ScheduleRequest& request) {
  Refusals refusals("dualpipev", request, {.fixed_virtual_stages = 2});
  RequireTwoPerRank(request, refusals);
  if (!refusals.empty()) return refusals.Take();
  PipelineSchedule schedule = EmptySchedule("dualpipev", request, Placement::kV, 2);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    const Shape shape{.half = request.pipeline,
                      .distance = r,
                      .microbatches = request.microbatches,
                      .first_chunk = 0};
    schedule.ranks[static_cast<std::size_t>(r)] = EightSteps(shape).Build();
  }
  return schedule;
}

}  // namespace quadrille::schedules
