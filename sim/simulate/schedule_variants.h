// One run under other schedules: what of the scenario changes, and what does not.
//
// Everything but the schedule stays: model, cluster, degrees, batch, overlap, costs. A schedule
// brings its own virtual stages, and with them the layers are dealt out anew. The layout keeps the
// run's rule (whether the embedding and the loss count as a layer) when the layers divide by it;
// otherwise another legal one is chosen, and the variant says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"
#include "sim/scenario/scenario.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

// A schedule as the command line writes it: "interleaved:vp=2:group=12". Sizes that it leaves open
// are the run's own where the schedule takes them, else the schedule's default.
struct ScheduleSpec {
  std::string name;
  std::string label;  // as written
  std::optional<std::int32_t> virtual_stages;
  std::optional<std::int32_t> group;
  std::optional<std::int32_t> slices;
  std::optional<std::int32_t> waves;
  std::optional<std::int32_t> memory_limit;
};

// The parts of `text` between separators, empty ones included: one more than there are separators.
[[nodiscard]] std::vector<std::string> Split(const std::string& text, char separator);

// Items separated by commas, options of an item by colons: vp, group (a number or auto), slices,
// waves, memory-limit. Errors: every unknown schedule or option and every number that is none, at
// once.
[[nodiscard]] Result<std::vector<ScheduleSpec>> ParseScheduleList(const std::string& text);

// The run's own schedule, then every other built-in one.
[[nodiscard]] std::vector<ScheduleSpec> AllSchedules(const scenario::Scenario& run);

struct ScheduleVariant {
  std::string label;
  bool own = false;    // the schedule that the run names
  std::string layout;  // what is not as in the run; empty when nothing
  std::string costs;   // what the order was built from; filled by SimulateVariant
  scenario::Scenario scenario;
};

// `run` under the schedule of `spec`. Errors: why the schedule refuses the run's sizes, or why the
// layers cannot be dealt to its stages.
[[nodiscard]] Result<ScheduleVariant> MakeVariant(const scenario::Scenario& run,
                                                  const ScheduleSpec& spec);

// Simulates `variant`. A schedule that is built from costs is simulated twice: from equal costs,
// and then, in earnest, from the mean times of actions and hops that the first run showed. An error
// is a refusal of the sizes or a deadlock.
// `make_sink`, if any, gives the sink for the records of the run in earnest.
using MakeSink = std::function<program::RecordSink*(const program::Program&)>;
[[nodiscard]] Result<Simulation> SimulateVariant(ScheduleVariant& variant,
                                                 const SimulateOptions& options,
                                                 const MakeSink& make_sink = nullptr);

}  // namespace quadrille::simulate
