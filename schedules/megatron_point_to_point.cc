// The step functions receive one ahead: while a rank computes virtual microbatch k, the input of k
// + 1 is on its way. A rank in the middle simply receives before each action. The rank that leads
// the ring (the first for forwards, the last for backwards) gets its inputs from the other end of
// the ring, P - 1 virtual microbatches behind, and receives only if what arrives there is not of
// the last chunk, whose output leaves the pipeline.
//
// Invariants:
// 1. Virtual microbatch k of a direction is the k-th entry of the interleaved table, on every rank.
// 2. Each rank posts as many receives as its neighbour posts sends, in the same order; the tests
// replay them.

#include "schedules/megatron_point_to_point.h"

#include <algorithm>
#include <utility>

#include "schedules/order_builder.h"
#include "schedules/refusals.h"
#include "schedules/registry.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

class InterleavedLowering {
 public:
  InterleavedLowering(const ScheduleRequest& request, std::int32_t virtual_stages,
                      std::int32_t group, bool fused, MegatronTransfers transfers,
                      std::int32_t rank)
      : forwards_(InterleavedForwards(request.microbatches, virtual_stages, group)),
        backwards_(InterleavedBackwards(request.microbatches, virtual_stages, group,
                                        ActionKind::kBackward)),
        total_(static_cast<std::int64_t>(forwards_.size())),
        p_(request.pipeline),
        v_(virtual_stages),
        fused_(fused),
        transfers_(transfers),
        first_(rank == 0),
        last_(rank == request.pipeline - 1) {
    const std::int64_t warm_up =
        std::int64_t{v_ - 1} * group + 2 * std::int64_t{p_ - 1 - rank} + (fused ? 1 : 0);
    warm_up_ = std::min(total_, warm_up);
  }

  std::vector<LoweredStep> Build() {
    Call({.receive_forward = !first_});
    for (std::int64_t k = 0; k < warm_up_; ++k) WarmUp(k);
    for (std::int64_t k = 0; k < total_ - warm_up_; ++k) Steady(k);
    if (warm_up_ == total_) Call({.receive_backward = !last_});
    for (std::int64_t k = total_ - warm_up_; k < total_; ++k) Flush(k);
    return std::move(steps_);
  }

 private:
  void Compute(const Slot& slot) { steps_.push_back({slot, {}}); }
  void Call(const TransferCall& call) {
    if (!call.empty()) steps_.push_back({std::nullopt, call});
  }
  [[nodiscard]] static const Action& At(const std::vector<Action>& table, std::int64_t k) {
    return table[static_cast<std::size_t>(k)];
  }

  // Output of forward k goes to another rank: all but the model's last stage.
  [[nodiscard]] bool SendsForward(std::int64_t k) const {
    return !(last_ && At(forwards_, k).chunk.value() == v_ - 1);
  }
  [[nodiscard]] bool SendsBackward(std::int64_t k) const {
    return !(first_ && At(backwards_, k).chunk.value() == 0);
  }
  // The call after action k takes in the input of a later one (recv_tensor_from_previous_stage).
  [[nodiscard]] bool ReceivesAfter(std::int64_t k, const std::vector<Action>& table, bool leads,
                                   std::int32_t last_chunk) const {
    if (k == total_ - 1) return false;
    if (!leads) return true;
    if (k < p_ - 1) return false;  // the far end of the ring has not started
    return At(table, k - (p_ - 1)).chunk.value() != last_chunk;
  }
  [[nodiscard]] bool ReceivesForwardAfter(std::int64_t k) const {
    return ReceivesAfter(k, forwards_, first_, v_ - 1);
  }
  [[nodiscard]] bool ReceivesBackwardAfter(std::int64_t k) const {
    return ReceivesAfter(k, backwards_, last_, 0);
  }

  void WarmUp(std::int64_t k) {
    const bool ahead = transfers_ == MegatronTransfers::kOverlappedEverywhere && !first_;
    const bool receives = ReceivesForwardAfter(k);
    if (ahead) Call({.receive_forward = receives});
    Compute({At(forwards_, k), std::nullopt});
    const bool first_gradient = k == warm_up_ - 1 && warm_up_ < total_ && !last_;
    const bool batched = transfers_ == MegatronTransfers::kBatched;
    Call({.send_forward = SendsForward(k),
          .receive_forward = receives && !ahead,
          .receive_backward = first_gradient && batched});
    if (!batched) Call({.receive_backward = first_gradient});
  }

  void Steady(std::int64_t k) {
    const std::int64_t forward = k + warm_up_;
    const TransferCall after_forward{.send_forward = SendsForward(forward),
                                     .receive_forward = ReceivesForwardAfter(forward)};
    const TransferCall after_backward{.send_backward = SendsBackward(k),
                                      .receive_backward = ReceivesBackwardAfter(k)};
    if (fused_) {
      Compute({At(forwards_, forward), At(backwards_, k)});
      Call(after_forward);
      Call(after_backward);
    } else if (transfers_ == MegatronTransfers::kBatched) {
      Compute({At(forwards_, forward), std::nullopt});
      Compute({At(backwards_, k), std::nullopt});
      Call({.send_forward = after_forward.send_forward,
            .send_backward = after_backward.send_backward,
            .receive_forward = after_forward.receive_forward,
            .receive_backward = after_backward.receive_backward});
    } else {
      Compute({At(forwards_, forward), std::nullopt});
      Call(after_forward);
      Compute({At(backwards_, k), std::nullopt});
      Call(after_backward);
    }
  }

  void Flush(std::int64_t k) {
    const bool ahead = transfers_ == MegatronTransfers::kOverlappedEverywhere && !last_;
    const bool receives = ReceivesBackwardAfter(k);
    if (ahead) Call({.receive_backward = receives});
    Compute({At(backwards_, k), std::nullopt});
    Call({.send_backward = SendsBackward(k), .receive_backward = receives && !ahead});
  }

  std::vector<Action> forwards_;
  std::vector<Action> backwards_;
  std::int64_t total_;
  std::int64_t warm_up_ = 0;
  std::int32_t p_;
  std::int32_t v_;
  bool fused_;
  MegatronTransfers transfers_;
  bool first_;
  bool last_;
  std::vector<LoweredStep> steps_;
};

// forward_backward_pipelining_without_interleaving: the pairs of the steady state exchange with one
// neighbour at a time.
std::vector<LoweredStep> LowerOneForwardOneBackward(std::int32_t pipeline,
                                                    std::int32_t microbatches, std::int32_t rank) {
  std::vector<LoweredStep> steps;
  const bool first = rank == 0;
  const bool last = rank == pipeline - 1;
  const auto compute = [&](const Action& action) {
    steps.push_back({Slot{action, std::nullopt}, {}});
  };
  const auto call = [&](const TransferCall& transfers) {
    if (!transfers.empty()) steps.push_back({std::nullopt, transfers});
  };
  const std::int32_t warm_up = std::min(microbatches, pipeline - 1 - rank);
  for (std::int32_t i = 0; i < warm_up; ++i) {
    call({.receive_forward = !first});
    compute(Forward(i, 0));
    call({.send_forward = !last});
  }
  if (warm_up < microbatches) call({.receive_forward = !first});
  for (std::int32_t i = 0; i < microbatches - warm_up; ++i) {
    compute(Forward(warm_up + i, 0));
    call({.send_forward = !last, .receive_backward = !last});
    compute(Backward(i, 0));
    const bool more = i + 1 < microbatches - warm_up;
    call({.send_backward = !first, .receive_forward = !first && more});
  }
  for (std::int32_t i = microbatches - warm_up; i < microbatches; ++i) {
    call({.receive_backward = !last});
    compute(Backward(i, 0));
    call({.send_backward = !first});
  }
  return steps;
}

}  // namespace

bool IsMegatrons(std::string_view name) {
  return name == "1f1b" || name == "interleaved" || name == "combined";
}

Result<LoweredSchedule> LowerToMegatron(std::string_view name, const ScheduleRequest& request,
                                        MegatronTransfers transfers) {
  const bool plain = name == "1f1b";
  const bool fused = name == "combined";
  if (!IsMegatrons(name)) {
    return Error("Megatron-LM's calls are known for 1f1b, interleaved and combined only, not " +
                 std::string(name));
  }
  if (plain && transfers != MegatronTransfers::kBatched) {
    return Error("1f1b: Megatron-LM does not overlap point-to-point without virtual stages");
  }
  if (fused && transfers == MegatronTransfers::kBatched) {
    return Error("combined: Megatron-LM needs overlapped point-to-point beside the all-to-all");
  }
  if (!plain && request.pipeline == 1) {
    return Error(std::string(name) + ": a pipeline of one rank has no point-to-point calls");
  }
  const auto schedule = BuildSchedule(name, request);  // refuses what is illegal
  if (!schedule) return tl::unexpected<Diagnostics>(schedule.error());
  LoweredSchedule lowered;
  lowered.pipeline = request.pipeline;
  Refusals unused(name, request, {.group = true});
  const std::int32_t group = plain ? request.microbatches : ResolveGroup(request, unused);
  for (std::int32_t r = 0; r < request.pipeline; ++r) {
    lowered.ranks.push_back(
        plain ? LowerOneForwardOneBackward(request.pipeline, request.microbatches, r)
              : InterleavedLowering(request, schedule->virtual_stages, group, fused, transfers, r)
                    .Build());
  }
  return lowered;
}

std::string ToString(const LoweredStep& step) {
  if (step.compute) {
    std::string text = ToString(step.compute->first, false);
    if (step.compute->second) text += '&' + ToString(*step.compute->second, false);
    return text;
  }
  std::string text;
  const auto add = [&](bool present, const char* name) {
    if (!present) return;
    if (!text.empty()) text += '|';
    text += name;
  };
  add(step.call.send_forward, "sf");
  add(step.call.send_backward, "sb");
  add(step.call.receive_forward, "rf");
  add(step.call.receive_backward, "rb");
  return text;
}

std::string PrintLowered(const LoweredSchedule& lowered) {
  std::string text;
  for (const std::vector<LoweredStep>& steps : lowered.ranks) {
    bool first = true;
    for (const LoweredStep& step : steps) {
      if (!first) text += ' ';
      first = false;
      text += ToString(step);
    }
    text += '\n';
  }
  return text;
}

}  // namespace quadrille::schedules
