// The table of built-in schedules. A new schedule is one file with one generator and one row here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// Builds the orders, or says which rules of the schedule the request breaks (one Diagnostic without
// a position for each). A field that the schedule does not read must be at its default: a group
// given to GPipe is refused, not ignored.
using Generator = Result<PipelineSchedule> (*)(const ScheduleRequest&);

// Makes the value whose fields are zero ("default") in a request concrete for this schedule.
struct ScheduleEntry {
  std::string_view name;         // as written in scenarios and on the command line
  std::string_view description;  // one line
  std::string_view source;       // paper or repository
  Generator generate;
  std::int32_t default_virtual_stages;     // v when the request leaves it at 0
  bool needs_costs;                        // the order depends on TaskCosts
  Placement placement = Placement::kLoop;  // kBidirectional stores two copies of the parameters
};

// All built-in schedules in presentation order.
[[nodiscard]] std::span<const ScheduleEntry> BuiltInSchedules();

// nullptr when there is none of that name.
[[nodiscard]] const ScheduleEntry* FindSchedule(std::string_view name);

// Looks `name` up and generates; an unknown name is an error that quotes the nearest known one.
[[nodiscard]] Result<PipelineSchedule> BuildSchedule(std::string_view name,
                                                     const ScheduleRequest& request);

}  // namespace quadrille::schedules
