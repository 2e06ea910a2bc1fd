// What generators that are built from costs refuse in them.
#pragma once

#include <cstdint>

#include "schedules/pipeline_schedule.h"
#include "schedules/refusals.h"

namespace quadrille::schedules {

// Adds a refusal when F, I or W is not positive, the latency is negative, or all actions of
// `virtual_stages` chunks per rank and all their hops, one after the other, overflow Duration.
void RefuseUnusableCosts(const ScheduleRequest& request, std::int32_t virtual_stages,
                         Refusals& refusals);

}  // namespace quadrille::schedules
