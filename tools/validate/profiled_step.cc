#include "tools/validate/profiled_step.h"

#include "schedules/evaluate.h"
#include "schedules/registry.h"

namespace quadrille::tools {
namespace {

// The schedules of sail-sg/zero-bubble-pipeline-parallelism by the names of arXiv 2401.10241.
std::string ScheduleNameOf(const MeasuredStep& step) {
  const auto starts = [&](const char* head) { return step.schedule.rfind(head, 0) == 0; };
  if (starts("ZB-1p")) return "zb-h1";
  if (starts("ZB-2p")) return "zb-h2";
  if (starts("1F1B-I")) return "interleaved";
  if (starts("1F1B")) return "1f1b";
  return "";
}

}  // namespace

bool IsProfiled(const MeasuredStep& step) {
  return step.t_f_ms > 0.0 && step.t_b_ms > 0.0 && step.t_w_ms > 0.0 && step.pp > 1 &&
         step.mbs > 0 && step.gbs > 0 && !ScheduleNameOf(step).empty();
}

Result<double> PredictFromProfile(const MeasuredStep& step) {
  const int chunks = step.schedule.rfind("1F1B-I", 0) == 0 && step.vp > 1 ? step.vp : 1;
  schedules::ScheduleRequest request;
  request.pipeline = step.pp;
  request.virtual_stages = chunks;
  const int replicas = step.gpus / (step.tp * step.pp * step.cp);
  request.microbatches = step.gbs / (step.mbs * (replicas > 0 ? replicas : 1));
  // Profiled costs are those of a rank; a chunk has its share.
  const auto share = [&](double milliseconds) { return FromSeconds(milliseconds * 1e-3 / chunks); };
  // One call receives before an action and one sends after it, each on the compute stream.
  const Duration exchanges = FromSeconds(2.0 * step.t_comm_ms * 1e-3);
  request.costs.forward = share(step.t_f_ms) + exchanges;
  request.costs.backward_input = share(step.t_b_ms) + exchanges;
  request.costs.backward_weight = share(step.t_w_ms);
  request.costs.backward = share(step.t_b_ms + step.t_w_ms) + exchanges;
  const auto schedule = schedules::BuildSchedule(ScheduleNameOf(step), request);
  if (!schedule) return tl::unexpected(schedule.error());
  // With post-validation no barrier stands before the optimizer step (arXiv 2401.10241, section 4).
  if (step.schedule.rfind("ZB", 0) == 0) {
    const auto period = schedules::PeriodWithoutBarrier(*schedule, request.costs);
    if (!period) return tl::unexpected(period.error());
    return ToSeconds(*period);
  }
  const auto evaluation = schedules::EvaluateSchedule(*schedule, request.costs);
  if (!evaluation) return tl::unexpected(evaluation.error());
  return ToSeconds(evaluation->makespan);
}

}  // namespace quadrille::tools
