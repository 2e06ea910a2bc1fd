#include "schedules/cost_refusals.h"

#include <limits>

namespace quadrille::schedules {

void RefuseUnusableCosts(const ScheduleRequest& request, std::int32_t virtual_stages,
                         Refusals& refusals) {
  const TaskCosts& costs = request.costs;
  if (costs.forward <= Duration{0} || costs.backward_input <= Duration{0} ||
      costs.backward_weight <= Duration{0}) {
    refusals.Add("the costs of F, I and W must be positive");
    return;
  }
  if (costs.latency < Duration{0}) {
    refusals.Add("the latency must not be negative");
    return;
  }
  // In floating point, so that it cannot overflow; a factor of four keeps every sum in range.
  const double passes = 4.0 * request.pipeline * request.microbatches * virtual_stages;
  const double longest = static_cast<double>(costs.forward.count()) +
                         static_cast<double>(costs.backward_input.count()) +
                         static_cast<double>(costs.backward_weight.count()) +
                         2.0 * static_cast<double>(costs.latency.count());
  if (passes * longest > static_cast<double>(std::numeric_limits<Duration::rep>::max())) {
    refusals.Add("the costs are too large for this many actions");
  }
}

}  // namespace quadrille::schedules
