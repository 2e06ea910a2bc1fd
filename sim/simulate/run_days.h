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

// What a checkpoint holds, as the run keeps it in memory: weights in 16 bits with fp32 master
// weights, or in fp32, and the two moments of Adam in optimizer.moments_dtype.
[[nodiscard]] Bytes CheckpointBytes(const scenario::Scenario& scenario);

}  // namespace quadrille::simulate
