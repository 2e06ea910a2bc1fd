// Expert parallelism against tensor parallelism for the same experts.
#pragma once

#include "sim/base/units.h"
#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Parameters per GPU if everything divided by every degree: total / PP / (TP x EP). It is exact for
// TP alone in a dense model; EP divides routed experts only, so with EP it is a lower bound.
[[nodiscard]] ParameterCount DividedEvenly(ParameterCount total, std::int64_t pipeline,
                                           std::int64_t degree);

// What one GPU sends of one all-to-all of `tokens` local tokens: (EP-1)/EP x tokens x top_k x
// hidden x `bytes_per_element`, every copy counted (DeepEP's deduplication per node sends fewer).
[[nodiscard]] Bytes AllToAllSent(std::int64_t tokens, std::int64_t top_k, std::int64_t hidden,
                                 std::int64_t expert, double bytes_per_element);

[[nodiscard]] Account DescribeExpertParallel(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
