// Activations and gradients between pipeline ranks: who sends what to whom, in which order, and
// when each end is posted.
//
// A channel is (source, destination, forward or backward). Messages cross it in the source's order,
// and the destination's receive lane follows that order too, so the k-th send always meets the k-th
// receive, whatever order the destination consumes them in. Semantics:
//   eager         receives are posted at once; a message leaves when its action ends
//   posted ahead  a receive is posted when the action before its consumer begins (Megatron's
//                 overlap_p2p)
//   blocking      Megatron's batches of its own schedules (schedules/megatron_point_to_point.h):
//                 the sends of an action and the receive of the next are one batch, and the rank
//                 waits for all of it; a call per message elsewhere (schedules/call_by_call.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/program/execution_options.h"

namespace quadrille::program {

struct Message {
  std::int32_t source = 0;  // pipeline ranks
  std::int32_t destination = 0;
  bool backward = false;
  std::int32_t source_slot = 0;       // index into the source's order
  std::int32_t destination_slot = 0;  // where it is consumed
};

struct Channel {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  bool backward = false;
  std::vector<Message> messages;  // in the source's order
};

// All channels, by (source, destination, direction). REQUIRES: a schedule that passes
// CheckSchedule.
[[nodiscard]] std::vector<Channel> PlanChannels(const schedules::PipelineSchedule& schedule);

// Of a schedule in which a rank needs a message before another that its peer sends first: which, in
// words. Empty when every rank consumes messages in the order in which each peer sends them. Such
// an order runs with eager sends. Posted ahead it deadlocks: the receive of the message sent first
// waits for the action before its consumer, and this one behind it for the other.
[[nodiscard]] std::string OvertakingMessage(const schedules::PipelineSchedule& schedule);

}  // namespace quadrille::program
