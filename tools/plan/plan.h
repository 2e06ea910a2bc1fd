// All accounts of a run.
#pragma once

#include <vector>

#include "sim/scenario/scenario.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// The world size and where its groups lie, states, then data, tensor, pipeline, context and expert
// parallelism. They need no simulation. An account that
// does not apply says so in its remarks.
[[nodiscard]] std::vector<Account> Accounts(const scenario::Scenario& scenario);

}  // namespace quadrille::plan
