// Megatron-LM's point-to-point calls: in which order each rank's step function sends and receives
// between its actions, and how long a step lasts when every such call blocks.
//
// Source of the calls: NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py and
// combined_1f1b.py. The order of computation is the same in all modes; only the calls differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace quadrille::schedules {

enum class MegatronTransfers : std::uint8_t {
  kBatched,  // one blocking call per step: up to four operations after an F and B (overlap_p2p_comm
             // off)
  kOverlapped,  // separate calls after F and after B, receiving one ahead (overlap_p2p_comm)
  kOverlappedEverywhere  // the receives of warm-up and flush are posted ahead, too
                         // (overlap_p2p_comm_warmup_flush)
};

// The operations that one call posts at once. Forward goes to the next rank of the ring, backward
// to the previous one.
struct TransferCall {
  bool send_forward = false;
  bool send_backward = false;
  bool receive_forward = false;
  bool receive_backward = false;

  [[nodiscard]] bool empty() const {
    return !send_forward && !send_backward && !receive_forward && !receive_backward;
  }
};

// Either an action (or fused pair) or a call.
struct LoweredStep {
  std::optional<Slot> compute;
  TransferCall call;
};

struct LoweredSchedule {
  std::int32_t pipeline = 1;
  std::vector<std::vector<LoweredStep>> ranks;
};

// Whether Megatron-LM has the schedule, so that its calls are known.
[[nodiscard]] bool IsMegatrons(std::string_view name);

// The steps of `name`, one of 1f1b, interleaved and combined. Errors: another name; what the
// schedule itself refuses; 1f1b with overlapped calls and combined with batched ones, which
// Megatron-LM refuses; a ring of one rank.
[[nodiscard]] Result<LoweredSchedule> LowerToMegatron(std::string_view name,
                                                      const ScheduleRequest& request,
                                                      MegatronTransfers transfers);

// An action or pair as in an order file; a call as sf, sb, rf and rb joined by '|', in that order.
[[nodiscard]] std::string ToString(const LoweredStep& step);

// One line of steps per rank.
[[nodiscard]] std::string PrintLowered(const LoweredSchedule& lowered);

struct BlockingEvaluation {
  Duration makespan{0};
  Ratio bubble_of_makespan;  // time not computing over (P * makespan); a blocked rank is idle
};

// Every call blocks its rank until each partner has posted the matching operation, then for one
// latency. The k-th send on a connection meets the k-th receive. A step that cannot finish is an
// error naming each blocked rank and its call.
[[nodiscard]] Result<BlockingEvaluation> EvaluateBlocking(const LoweredSchedule& lowered,
                                                          const TaskCosts& costs);

}  // namespace quadrille::schedules
