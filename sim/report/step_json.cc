#include "sim/report/step_json.h"

#include <nlohmann/json.hpp>

#include "sim/metrics/step_metrics.h"
#include "sim/report/choice_text.h"
#include "sim/report/constant_list.h"
#include "sim/report/critical_path_text.h"
#include "sim/report/link_text.h"
#include "sim/report/number_text.h"
#include "sim/report/published_text.h"
#include "sim/report/step_spread.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;
using metrics::StepReport;

constexpr int kIndent = 2;

Json StatesJson(const std::array<Duration, program::kRankStates>& states) {
  Json json = Json::object();
  for (std::size_t s = 0; s < states.size(); ++s) {
    json[KeyOf(static_cast<program::RankState>(s))] = Seconds(states[s]);
  }
  return json;
}

Json SlowestJson(const std::optional<metrics::RankReport>& slowest) {
  if (!slowest) return nullptr;
  return {{"rank", slowest->rank.value()},
          {"alike", slowest->alike},
          {"states_s", StatesJson(slowest->states)}};
}

Json ComponentsJson(const std::vector<metrics::MemoryComponent>& components) {
  Json json = Json::object();
  for (const metrics::MemoryComponent& component : components) {
    json[component.name] = component.bytes.value();
  }
  return json;
}

Json CommunicationJson(const StepReport& report) {
  Json json = Json::object();
  for (const metrics::CommunicationReport& kind : report.communication) {
    json[kind.name] = {{"total_s", Seconds(kind.total)},
                       {"overlapped_s", Seconds(kind.overlapped)},
                       {"exposed_s", Seconds(kind.exposed)},
                       {"exposed_max_s", Seconds(kind.exposed_max)},
                       {"bytes", kind.bytes.value()},
                       {"bus_bandwidth_bytes_per_s", kind.bus_bandwidth.value()}};
  }
  return json;
}

Json MemoryJson(const StepReport& report) {
  Json components = Json::object();
  for (const metrics::StageReport& stage : report.stages) {
    if (stage.pipeline_rank == report.peak_memory_stage)
      components = ComponentsJson(stage.components);
  }
  return {{"peak_bytes", report.peak_memory.value()},
          {"stage", report.peak_memory_stage},
          {"components", std::move(components)},
          {"capacity_bytes", report.memory_capacity.value()},
          {"out_of_memory", report.out_of_memory}};
}

Json StagesJson(const StepReport& report) {
  Json json = Json::array();
  for (const metrics::StageReport& stage : report.stages) {
    json.push_back({{"stage", stage.pipeline_rank},
                    {"layers", stage.layers},
                    {"parameters_per_gpu", stage.parameters.value()},
                    {"states_s", StatesJson(stage.states)},
                    {"slowest_rank", SlowestJson(stage.slowest)},
                    {"bubble_of_makespan", stage.bubble.value()},
                    {"peak_memory_bytes", stage.peak_memory.value()},
                    {"peak_memory_at_s", Seconds(stage.peak_at.time_since_epoch())},
                    {"peak_activations", stage.peak_activations},
                    {"components", ComponentsJson(stage.components)}});
  }
  return json;
}

Json WaterfallJson(const StepReport& report) {
  Json json = Json::array();
  for (const metrics::WaterfallStep& step : report.waterfall) {
    json.push_back({{"cause", step.cause}, {"share_of_peak", step.share.value()}});
  }
  return json;
}

Json ParallelJson(const parallel::ParallelConfig& parallel) {
  return {{"tensor", parallel.tensor},
          {"sequence", parallel.sequence_parallel},
          {"pipeline", parallel.pipeline},
          {"virtual_stages", parallel.virtual_stages},
          {"context", parallel.context},
          {"expert", parallel.expert},
          {"expert_tensor", parallel.expert_tensor},
          {"data", parallel.data},
          {"sharding", NameOf(parallel.sharding)},
          {"order", parallel::ToString(parallel.order)},
          {"world_size", parallel.world_size()}};
}

Json ExpertJson(const RunDescription& run) {
  if (!run.model.experts.enabled()) return nullptr;
  return {{"routing", NameOf(run.execution.expert_routing)},
          {"capacity_factor", run.execution.expert_capacity_factor},
          {"dispatch", NameOf(run.execution.expert_dispatch)},
          {"dispatch_dtype", NameOf(run.execution.expert_dispatch_type)}};
}

Json ScenarioJson(const RunDescription& run) {
  return {
      {"name", run.name},
      {"description", run.description},
      {"model",
       {{"name", run.model.name}, {"layers", run.model.layers}, {"hidden", run.model.hidden}}},
      {"cluster",
       {{"name", run.cluster.name},
        {"nodes", run.cluster.nodes},
        {"gpus_per_node", run.cluster.gpus_per_node},
        {"gpu", run.gpu.name}}},
      {"parallel", ParallelJson(run.parallel)},
      {"schedule",
       {{"name", run.schedule},
        {"microbatch_group", std::max(run.microbatch_group, 0)},
        {"pair", PairText(run)}}},
      {"training",
       {{"sequence_length", run.execution.sequence_length},
        {"micro_batch", run.execution.micro_batch},
        {"global_batch", run.global_batch},
        {"microbatches", run.microbatches},
        {"precision", NameOf(run.execution.recipe)},
        {"recompute", NameOf(run.execution.recomputation)}}},
      {"kernels",
       {{"attention", NameOf(run.execution.attention)},
        {"context_algorithm", NameOf(run.execution.context_algorithm)},
        {"fidelity", NameOf(run.compute_fidelity)}}},
      {"experts", ExpertJson(run)},
      {"optimizer",
       {{"name", run.optimizer.name},
        {"distributed", run.optimizer.distributed},
        {"gradient_dtype", NameOf(run.optimizer.gradient_dtype)},
        {"barrier", run.optimizer.gradient_norm && !run.optimizer.post_validation}}},
      {"layout", LayoutText(run.layout)},
      {"overlap",
       {{"gradient_reduce", run.overlap.gradient_reduce},
        {"parameter_gather", run.overlap.parameter_gather},
        {"parameter_gather_with_optimizer_step", run.overlap.parameter_gather_with_optimizer_step},
        {"tensor_parallel", run.overlap.tensor_parallel.name},
        {"p2p", NameOf(run.overlap.point_to_point)},
        {"expert_all_to_all", run.overlap.expert_all_to_all},
        {"delay_weight_gradient", run.overlap.delay_weight_gradient}}},
      {"network",
       {{"fidelity", NameOf(run.network.fidelity)},
        {"interference", run.network.interference},
        {"collectives", run.collective_constants_name}}},
      {"perturbations", run.perturbations}};
}

Json AssumptionsJson(const RunDescription& run) {
  Json json = Json::array();
  for (const UncertainConstant& constant : UncertainConstants(run)) {
    json.push_back({{"kind", constant.kind},
                    {"where", constant.group},
                    {"what", constant.constant},
                    {"source", constant.source}});
  }
  return json;
}

Json SpreadJson(const MeasuredSpread& spread, const StepReport& report) {
  if (spread.rows == 0) return nullptr;
  const double step = ToSeconds(report.step_time);
  return {{"low_s", step * spread.low},
          {"high_s", step * spread.high},
          {"share", 0.8},
          {"measured_steps", spread.rows},
          {"of", spread.basis},
          {"remark", BesidePrediction(spread.low, spread.high)}};
}

Json PublishedJson(const RunDescription& run, const StepReport& report) {
  Json json = Json::array();
  for (const PublishedRow& row : PublishedRows(run, report)) {
    Json figure = {{"figure", NameOf(row.figure.kind)},
                   {"predicted", row.predicted},
                   {"published", row.figure.value}};
    if (row.figure.tokens.value() > 0) figure["tokens"] = row.figure.tokens.value();
    figure["source"] = row.figure.source;
    if (!row.figure.note.empty()) figure["note"] = row.figure.note;
    json.push_back(std::move(figure));
  }
  return json;
}

Json WholeRunJson(const RunDescription& run, const StepReport& report) {
  if (!run.run_tokens) return nullptr;
  const metrics::WholeRun whole =
      metrics::ExtrapolateRun(run.size(), report.step_time, *run.run_tokens);
  return {{"tokens", whole.tokens.value()},
          {"steps", whole.steps},
          {"days", whole.days},
          {"gpu_hours", whole.gpu_hours},
          {"flops",
           {{"6nd", whole.flops_6nd.value()},
            {"causal", whole.flops_causal.value()},
            {"full", whole.flops_full.value()}}}};
}

}  // namespace

std::string RenderJson(const RunDescription& run, const StepReport& report) {
  const Json json = {
      {"schema_version", kSchemaVersion},
      {"step_time_s", Seconds(report.step_time)},
      {"tokens_per_second_per_gpu", report.tokens_per_second_per_gpu},
      {"model_tflops_per_gpu",
       {{"causal", report.model_flops_per_gpu_causal.value() / 1e12},
        {"full", report.model_flops_per_gpu_full.value() / 1e12}}},
      {"mfu", {{"causal", report.mfu_causal.value()}, {"full", report.mfu_full.value()}}},
      {"mfu_of_dropped_tokens", metrics::DroppedShare(report).value()},
      {"hfu", report.hfu.value()},
      {"peak_tflops_per_gpu", report.peak_flops.value() / 1e12},
      {"step_time_interval", SpreadJson(run.spread, report)},
      {"bubble",
       {{"of_makespan", report.bubble.of_makespan.value()},
        {"of_ideal", report.bubble.of_ideal.value()},
        {"of_span", report.bubble.of_span.value()}}},
      {"communication", CommunicationJson(report)},
      {"memory", MemoryJson(report)},
      {"operations", report.operations},
      {"fingerprint", HexText(report.fingerprint)},
      {"states_s", StatesJson(report.states)},
      {"stages", StagesJson(report)},
      {"waterfall", WaterfallJson(report)},
      {"busiest_links", LinksJson(report.links)},
      {"critical_path", CriticalPathJson(report.critical_path)},
      {"steps", StepsJson(report.steps)},
      {"world_size", report.world_size},
      {"simulated_ranks", report.simulated_ranks},
      {"microbatches", report.microbatches},
      {"scenario", ScenarioJson(run)},
      {"published", PublishedJson(run, report)},
      {"whole_run", WholeRunJson(run, report)},
      {"assumptions", AssumptionsJson(run)},
      {"warnings", run.warnings},
      {"version", Version()},
      {"scenario_hash", HexText(run.hash)},
      {"seed", run.seed}};
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace quadrille::report
