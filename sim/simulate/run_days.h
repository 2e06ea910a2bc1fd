// From a scenario to a run of many days: its step is simulated once, its interruptions many times.
#pragma once

#include <cstdint>

#include "sim/base/result.h"
#include "sim/reliability/goodput.h"
#include "sim/report/goodput_report.h"
#include "sim/scenario/scenario.h"

namespace quadrille::simulate {

struct RunDays {
  report::GoodputDescription description;
  reliability::GoodputReport report;
};

// Simulates `runs` seeds. Errors: the scenario says nothing of reliability; its step cannot be
// simulated; interruptions so frequent that counting them is pointless.
[[nodiscard]] Result<RunDays> SimulateDays(const scenario::Scenario& scenario, std::int64_t runs);

// What a checkpoint holds: bf16 weights, fp32 master weights and the two moments of Adam.
[[nodiscard]] Bytes CheckpointBytes(const scenario::Scenario& scenario);

}  // namespace quadrille::simulate
