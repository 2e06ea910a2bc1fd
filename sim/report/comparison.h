// Several simulated steps side by side: schedules of one run, or runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/metrics/step_report.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

// One row of a comparison.
struct ComparedRun {
  std::string label;        // tells rows apart: "interleaved:vp=8:group=8", or the name of a run
  std::string schedule;     // its registered name, or the order file
  std::string description;  // of the schedule, one line; may be empty
  bool own = false;         // the schedule that the run file names
  std::string layout;       // how layers are dealt to stages when not as the run says; else empty
  std::string costs;        // what a schedule that is built from costs was given; else empty
  // By how many hops between ranks the order's makespan grows: its growth over the time of a hop,
  // at the action times of this run; under blocking calls where the run blocks, under
  // eager sends otherwise.
  double exposed_hops = 0.0;
  bool blocking_hops = false;
  // Of the peak: activations whose input gradient is done and whose weight gradient is not.
  Bytes waiting_for_weight_gradient;
  std::int32_t parameter_copies = 1;  // copies of the model in one pipeline
  double messages_per_microbatch = 0.0;
  RunDescription run;
  metrics::StepReport step;
  std::string timeline;  // for the report page (html_timeline.h); empty for the other formats
};

struct RefusedSchedule {
  std::string schedule;
  std::string reason;
};

// A key that is not the same in all runs.
struct DifferingKey {
  std::string key;                  // "parallel.tensor"
  std::vector<std::string> values;  // by run
};

struct Comparison {
  std::string title;
  bool of_schedules = true;  // of one run; else of runs
  // Ascending by step time once SortByStepTime has seen them.
  std::vector<ComparedRun> runs;
  std::vector<RefusedSchedule> refused;
};

// Why a trial was refused, in a line: the messages, without their places in the run file, which
// says what all trials have in common.
[[nodiscard]] std::string ReasonText(const Diagnostics& problems);

// Ascending by step time, then by label.
void SortByStepTime(Comparison& comparison);

// The keys that any of the runs writes itself (RunDescription::values) and that differ, each once.
// Where a run leaves one to a file that it names, to a software stack or to a default, the value is
// that; it is empty where there is none.
[[nodiscard]] std::vector<DifferingKey> DifferingKeys(const Comparison& comparison);

// What row `index` gives and takes against the fastest that fits in memory (that one: against the
// one that needs least memory), in a line: "2.1 % slower than interleaved, 14.2 GB less at the
// peak, 14 instead of 126 messages per microbatch". REQUIRES: sorted.
[[nodiscard]] std::string TradeText(const Comparison& comparison, std::size_t index);

// "v 8, group 8": the numbers that make a schedule concrete.
[[nodiscard]] std::string SizesText(const ComparedRun& run);

}  // namespace quadrille::report
