#include "sim/report/step_csv.h"

#include <fmt/format.h>

#include "sim/metrics/step_metrics.h"
#include "sim/metrics/whole_run.h"
#include "sim/report/choice_text.h"
#include "sim/report/constant_list.h"
#include "sim/report/number_text.h"
#include "sim/report/published_text.h"
#include "sim/report/text_table.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

class Rows {
 public:
  void Text(const char* table, std::string row, std::string column, std::string value,
            const char* unit = "") {
    table_.AddRow({table, std::move(row), std::move(column), std::move(value), unit});
  }
  void Number(const char* table, std::string row, std::string column, double value,
              const char* unit) {
    Text(table, std::move(row), std::move(column), fmt::format("{}", value), unit);
  }
  void Integer(const char* table, std::string row, std::string column, std::int64_t value,
               const char* unit) {
    Text(table, std::move(row), std::move(column), fmt::format("{}", value), unit);
  }
  void Time(const char* table, std::string row, std::string column, Duration value) {
    Number(table, std::move(row), std::move(column), Seconds(value), "s");
  }
  [[nodiscard]] std::string Csv() const { return table_.RenderCsv(); }

 private:
  TextTable table_{{{"table"}, {"row"}, {"column"}, {"value"}, {"unit"}}};
};

void AddRun(const RunDescription& run, Rows& rows) {
  rows.Text("run", "scenario", "", run.name);
  rows.Text("run", "version", "", std::string(Version()));
  rows.Text("run", "scenario_hash", "", HexText(run.hash));
  rows.Text("run", "seed", "", fmt::format("{}", run.seed));
  rows.Text("run", "model", "", run.model.name);
  rows.Text("run", "cluster", "", run.cluster.name);
  rows.Text("run", "parallel", "", ParallelText(run.parallel));
  rows.Text("run", "schedule", "", run.schedule);
  rows.Text("run", "precision", "", std::string(NameOf(run.execution.recipe)));
}

void AddStep(const metrics::StepReport& report, Rows& rows) {
  rows.Time("step", "step_time", "", report.step_time);
  rows.Number("step", "tokens_per_second_per_gpu", "", report.tokens_per_second_per_gpu,
              "tokens/s");
  rows.Number("step", "model_flops_per_gpu", "causal", report.model_flops_per_gpu_causal.value(),
              "FLOP/s");
  rows.Number("step", "model_flops_per_gpu", "full", report.model_flops_per_gpu_full.value(),
              "FLOP/s");
  rows.Number("step", "peak_flops", "", report.peak_flops.value(), "FLOP/s");
  rows.Number("step", "mfu", "causal", report.mfu_causal.value(), "ratio");
  rows.Number("step", "mfu", "full", report.mfu_full.value(), "ratio");
  rows.Number("step", "mfu", "of_dropped_tokens", metrics::DroppedShare(report).value(), "ratio");
  rows.Number("step", "hfu", "", report.hfu.value(), "ratio");
  rows.Number("bubble", "of_makespan", "", report.bubble.of_makespan.value(), "ratio");
  rows.Number("bubble", "of_ideal", "", report.bubble.of_ideal.value(), "ratio");
  rows.Number("bubble", "of_span", "", report.bubble.of_span.value(), "ratio");
}

void AddStages(const metrics::StepReport& report, Rows& rows) {
  for (const metrics::StageReport& stage : report.stages) {
    const std::string row = fmt::format("{}", stage.pipeline_rank);
    rows.Text("stages", row, "layers", stage.layers);
    rows.Integer("stages", row, "parameters_per_gpu", stage.parameters.value(), "count");
    rows.Number("stages", row, "bubble_of_makespan", stage.bubble.value(), "ratio");
    rows.Integer("stages", row, "peak_activations", stage.peak_activations, "count");
    for (std::size_t s = 0; s < stage.states.size(); ++s) {
      rows.Time("states", row, KeyOf(static_cast<program::RankState>(s)), stage.states[s]);
    }
    if (stage.slowest) {
      rows.Text("stages", row, "slowest_rank", fmt::format("{}", stage.slowest->rank.value()));
      const std::string rank = fmt::format("{} rank {}", row, stage.slowest->rank.value());
      for (std::size_t s = 0; s < stage.slowest->states.size(); ++s) {
        rows.Time("states", rank, KeyOf(static_cast<program::RankState>(s)),
                  stage.slowest->states[s]);
      }
    }
    rows.Integer("memory", row, "peak", stage.peak_memory.value(), "bytes");
    rows.Time("memory", row, "peak_at", stage.peak_at.time_since_epoch());
    for (const metrics::MemoryComponent& component : stage.components) {
      rows.Integer("memory", row, component.name, component.bytes.value(), "bytes");
    }
  }
  for (std::size_t s = 0; s < report.states.size(); ++s) {
    rows.Time("states", "mean", KeyOf(static_cast<program::RankState>(s)), report.states[s]);
  }
}

void AddPublished(const RunDescription& run, const metrics::StepReport& report, Rows& rows) {
  for (const PublishedRow& row : PublishedRows(run, report)) {
    const std::string name(NameOf(row.figure.kind));
    rows.Number("published", name, "predicted", row.predicted, UnitOf(row.figure.kind));
    rows.Number("published", name, "published", row.figure.value, UnitOf(row.figure.kind));
    rows.Text("published", name, "source", row.figure.source);
  }
  if (!run.run_tokens) return;
  const metrics::WholeRun whole =
      metrics::ExtrapolateRun(run.size(), report.step_time, *run.run_tokens);
  rows.Integer("whole_run", "tokens", "", run.run_tokens->value(), "count");
  rows.Integer("whole_run", "steps", "", whole.steps, "count");
  rows.Number("whole_run", "time", "", whole.days, "days");
  rows.Number("whole_run", "gpu_hours", "", whole.gpu_hours, "GPU-hours");
  rows.Number("whole_run", "flops", "6nd", whole.flops_6nd.value(), "FLOPs");
  rows.Number("whole_run", "flops", "causal", whole.flops_causal.value(), "FLOPs");
  rows.Number("whole_run", "flops", "full", whole.flops_full.value(), "FLOPs");
}

}  // namespace

std::string RenderCsv(const RunDescription& run, const metrics::StepReport& report) {
  Rows rows;
  AddRun(run, rows);
  AddStep(report, rows);
  if (run.spread.rows > 0) {
    const double step = ToSeconds(report.step_time);
    rows.Number("step", "step_time_interval", "low", step * run.spread.low, "s");
    rows.Number("step", "step_time_interval", "high", step * run.spread.high, "s");
  }
  for (const metrics::CommunicationReport& kind : report.communication) {
    rows.Time("communication", kind.name, "total", kind.total);
    rows.Time("communication", kind.name, "overlapped", kind.overlapped);
    rows.Time("communication", kind.name, "exposed", kind.exposed);
    rows.Time("communication", kind.name, "exposed_max", kind.exposed_max);
    rows.Integer("communication", kind.name, "bytes", kind.bytes.value(), "bytes");
    rows.Number("communication", kind.name, "bus_bandwidth", kind.bus_bandwidth.value(), "bytes/s");
  }
  for (const metrics::LinkUse& link : report.links) {
    rows.Integer("busiest_link", link.tier, "bytes", link.bytes.value(), "bytes");
    rows.Number("busiest_link", link.tier, "utilisation", link.utilisation.value(), "ratio");
  }
  AddStages(report, rows);
  AddPublished(run, report, rows);
  for (const metrics::WaterfallStep& step : report.waterfall) {
    rows.Number("waterfall", step.cause, "", step.share.value(), "ratio");
  }
  for (std::size_t step = 0; step < report.steps.size(); ++step) {
    rows.Time("steps", fmt::format("{}", step), "", report.steps[step]);
  }
  for (const metrics::PathCause& cause : report.critical_path.causes) {
    rows.Time("critical_path", cause.cause, "", cause.time);
  }
  rows.Integer("memory", "gpu", "capacity", report.memory_capacity.value(), "bytes");
  rows.Text("memory", "gpu", "out_of_memory", report.out_of_memory ? "true" : "false");
  for (const UncertainConstant& constant : UncertainConstants(run)) {
    rows.Text("assumptions", constant.group, constant.constant,
              fmt::format("{}: {}", constant.kind, constant.source));
  }
  for (std::size_t i = 0; i < run.warnings.size(); ++i) {
    rows.Text("warnings", fmt::format("{}", i), "", run.warnings[i]);
  }
  rows.Integer("run", "world_size", "", report.world_size, "count");
  rows.Integer("run", "simulated_ranks", "", report.simulated_ranks, "count");
  rows.Integer("run", "operations", "", report.operations, "count");
  rows.Text("run", "fingerprint", "", HexText(report.fingerprint));
  return rows.Csv();
}

}  // namespace quadrille::report
