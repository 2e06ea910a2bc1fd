#include "tools/validate/step_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/program/program.h"

namespace quadrille::tools {
namespace {

// PyTorch's allocator holds more than it has given out at the peak: 1.03 to 1.09 times as much,
// 1.056 in the median of the eleven configurations of which SimuMax prints both
// (MooreThreads/SimuMax:docs/b200/b200_release_v1.2_summary.json).
constexpr double kReservedOverAllocated = 1.056;

bool Says(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// Logs of MLPerf print a number without a unit. It is taken as GiB: from 64 replicas to 4 of one
// layout (mlcommons/training_results_v5.0, Llama 3.1 405B on H100) it grows by 7.9, where the
// optimizer states of the first stage, 12 bytes a parameter, grow by 8.7e9 bytes.
bool InBinaryUnits(const std::string& kind) { return Says(kind, "GiB") || Says(kind, "logged"); }

MemorySummary SummaryOf(std::string source, const std::vector<const StepOutcome*>& rows) {
  MemorySummary summary;
  summary.source = std::move(source);
  std::vector<double> errors;
  for (const StepOutcome* row : rows) {
    const double error = row->predicted_memory_gb / row->measured_memory_gb - 1.0;
    errors.push_back(error);
    if (!summary.worst.empty() && std::abs(error) <= std::abs(summary.worst_error)) continue;
    summary.worst = row->step->id;
    summary.worst_error = error;
  }
  summary.errors = Summarise(errors);
  return summary;
}

}  // namespace

std::optional<MemoryReading> ReadingOf(const MeasuredStep& step) {
  if (step.memory_gb <= 0.0) return std::nullopt;
  constexpr double kGB = 1e9;
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  MemoryReading reading;
  reading.bytes =
      Bytes(std::llround(step.memory_gb * (InBinaryUnits(step.memory_kind) ? kGiB : kGB)));
  reading.whole_process = Says(step.memory_kind, "nvidia-smi");
  reading.reserved = reading.whole_process ||
                     (Says(step.memory_kind, "reserved") && !Says(step.memory_kind, "allocated"));
  reading.first_stage = Says(step.memory_kind, "logged");
  reading.end_stages = Says(step.memory_kind, "first") || Says(step.memory_kind, "last");
  return reading;
}

Bytes PredictedReading(const MemoryReading& reading, const metrics::StepReport& report) {
  Bytes largest{0};
  const auto last = static_cast<std::int32_t>(report.stages.size()) - 1;
  for (const metrics::StageReport& stage : report.stages) {
    const bool end = stage.pipeline_rank == 0 || stage.pipeline_rank == last;
    if (reading.end_stages && !end) continue;
    if (reading.first_stage && stage.pipeline_rank != 0) continue;
    Bytes bytes = stage.peak_memory;
    Bytes outside_allocator{0};
    for (const metrics::MemoryComponent& component : stage.components) {
      const bool outside = component.name == program::kContextMemory ||
                           component.name == program::kCommunicationMemory;
      if (outside) outside_allocator += component.bytes;
    }
    bytes -= outside_allocator;
    if (reading.reserved) {
      bytes = Bytes(std::llround(static_cast<double>(bytes.value()) * kReservedOverAllocated));
    }
    if (reading.whole_process) bytes += outside_allocator;
    largest = std::max(largest, bytes);
  }
  return largest;
}

std::vector<MemorySummary> SummariseMemory(const std::vector<StepOutcome>& outcomes) {
  std::vector<const StepOutcome*> all;
  std::map<std::string, std::vector<const StepOutcome*>> by_source;
  for (const StepOutcome& row : outcomes) {
    if (row.status != RowStatus::kOk || row.predicted_memory_gb <= 0.0 ||
        row.measured_memory_gb <= 0.0) {
      continue;
    }
    all.push_back(&row);
    by_source[row.step->source_id].push_back(&row);
  }
  if (all.empty()) return {};
  std::vector<MemorySummary> summaries = {SummaryOf("all", all)};
  for (const auto& [source, rows] : by_source) summaries.push_back(SummaryOf(source, rows));
  return summaries;
}

}  // namespace quadrille::tools
