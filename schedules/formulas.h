// Closed forms of schedules: what papers and their authors state, as far as it is exact, with the
// sizes and costs for which it holds. Approximate ones are left out; what differs is told beside
// each.
//
// All are for equal chunks, in the time of one chunk's (one slice's) actions, without latency, and
// for a fused pair that costs F + B.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

struct ClosedForms {
  // Makespan minus own busy time, equal on every rank, between two global barriers. Empty when no
  // closed form holds for this request's sizes and costs.
  std::optional<Duration> idle;
  // The largest idle inside a rank's own span, which the zero-bubble papers call bubble.
  std::optional<Duration> idle_inside_span;
  // Per rank, in chunk (slice) activations, released at B or W. Empty when none is known.
  std::vector<std::int32_t> peak_activations;
  bool peak_is_exact = false;  // otherwise no rank exceeds it
  // Between different ranks, both directions: 2M(S - 1) less the hops that stay on a rank where a V
  // turns.
  std::int64_t messages = 0;
  // Makespan's growth over the latency of a hop, eager sends, small latency; for F=1, B=2.
  std::optional<std::int64_t> exposed_hops;
  std::string_view idle_formula;  // as written, empty when there is none for this schedule
  std::string_view peak_formula;
};

// REQUIRES: a request that BuildSchedule accepts. Errors: an unknown name.
[[nodiscard]] Result<ClosedForms> ClosedFormsOf(std::string_view name,
                                                const ScheduleRequest& request);

}  // namespace quadrille::schedules
