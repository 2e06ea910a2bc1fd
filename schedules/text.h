// The text form of an order: a header line `# schedule=.. P=.. M=.. v=.. placement=..` and one line
// per rank.
//
// An action is its kind, microbatch, a dot and the chunk (`F3.0`), with `s` and the slice where
// there are slices
// (`F3.0s2`); a fused pair is `F3.0&B0.1`.
#pragma once

#include <string>
#include <string_view>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// One line per rank, each ending in a newline; `header` adds the line that ParseSchedule reads P,
// M, v, placement from.
[[nodiscard]] std::string PrintSchedule(const PipelineSchedule& schedule, bool header);

// Reads an order file, or a log of the step that Megatron-LM or DualPipe lower an order to (header
// key `lowered`), whose sends and receives (`sf`, `rb2.0`, joined by `|`) are passed over. All
// problems come with file, line and column. Completeness and causality are CheckSchedule's.
[[nodiscard]] Result<PipelineSchedule> ParseSchedule(std::string_view text,
                                                     const std::string& file);

// 'F', 'B', 'I' or 'W'.
[[nodiscard]] char LetterOf(ActionKind kind);

[[nodiscard]] std::string ToString(const Action& action, bool with_slice);

}  // namespace quadrille::schedules
