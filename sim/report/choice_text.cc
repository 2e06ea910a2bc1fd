#include "sim/report/choice_text.h"

#include <fmt/format.h>

#include <cctype>

#include "sim/model/expert_routing.h"
#include "sim/report/number_text.h"

namespace quadrille::report {

std::string_view NameOf(Recipe recipe) {
  switch (recipe) {
    case Recipe::kFp32: return "fp32";
    case Recipe::kFp16: return "fp16";
    case Recipe::kBf16: return "bf16";
    case Recipe::kFp8Delayed: return "fp8-delayed";
    case Recipe::kFp8Current: return "fp8-current";
    case Recipe::kFp8Block: return "fp8-block";
    case Recipe::kMxFp8: return "mxfp8";
    case Recipe::kNvFp4: return "nvfp4";
  }
  return "?";
}

std::string_view NameOf(DataType type) {
  switch (type) {
    case DataType::kFp32: return "fp32";
    case DataType::kFp16: return "fp16";
    case DataType::kBf16: return "bf16";
    case DataType::kFp8: return "fp8";
    case DataType::kFp4: return "fp4";
  }
  return "?";
}

std::string_view NameOf(model::Recomputation recomputation) {
  switch (recomputation) {
    case model::Recomputation::kNone: return "none";
    case model::Recomputation::kSelective: return "selective";
    case model::Recomputation::kFull: return "full";
  }
  return "?";
}

std::string_view NameOf(model::AttentionBackend backend) {
  switch (backend) {
    case model::AttentionBackend::kCudnn: return "cudnn";
    case model::AttentionBackend::kFlash2: return "flash2";
    case model::AttentionBackend::kFlash3: return "flash3";
    case model::AttentionBackend::kFlash4: return "flash4";
    case model::AttentionBackend::kUnfused: return "unfused";
    case model::AttentionBackend::kTritonAlibi: return "triton_alibi";
  }
  return "?";
}

std::string_view NameOf(model::ContextAlgorithm algorithm) {
  switch (algorithm) {
    case model::ContextAlgorithm::kRing: return "ring";
    case model::ContextAlgorithm::kAllGather: return "all-gather";
    case model::ContextAlgorithm::kUlysses: return "ulysses";
  }
  return "?";
}

std::string_view NameOf(parallel::DataSharding sharding) {
  switch (sharding) {
    case parallel::DataSharding::kNone: return "none";
    case parallel::DataSharding::kOptimizer: return "optimizer";
    case parallel::DataSharding::kGradient: return "gradient";
    case parallel::DataSharding::kFull: return "full";
  }
  return "?";
}

std::string_view NameOf(compute::Fidelity fidelity) {
  switch (fidelity) {
    case compute::Fidelity::kConstant: return "constant";
    case compute::Fidelity::kRoofline: return "roofline";
    case compute::Fidelity::kAnalytic: return "analytic";
    case compute::Fidelity::kTable: return "table";
    case compute::Fidelity::kExact: return "exact";
  }
  return "?";
}

std::string_view NameOf(network::Fidelity fidelity) {
  switch (fidelity) {
    case network::Fidelity::kIdeal: return "ideal";
    case network::Fidelity::kAlphaBeta: return "alpha-beta";
    case network::Fidelity::kEndpoint: return "endpoint";
    case network::Fidelity::kFlow: return "flow";
    case network::Fidelity::kChunk: return "chunk";
  }
  return "?";
}

std::string_view NameOf(model::ExpertRouting routing) {
  switch (routing) {
    case model::ExpertRouting::kBalanced: return "balanced";
    case model::ExpertRouting::kLoadFactor: return "load-factor";
    case model::ExpertRouting::kHistogram: return "histogram";
    case model::ExpertRouting::kZipf: return "zipf";
  }
  return "?";
}

std::string_view NameOf(model::ExpertDispatch dispatch) {
  switch (dispatch) {
    case model::ExpertDispatch::kAllToAll: return "all-to-all";
    case model::ExpertDispatch::kDeepEp: return "deepep";
    case model::ExpertDispatch::kHybridEp: return "hybrid-ep";
    case model::ExpertDispatch::kAllGather: return "all-gather";
  }
  return "?";
}

std::string_view NameOf(program::PointToPoint semantics) {
  switch (semantics) {
    case program::PointToPoint::kEager: return "eager";
    case program::PointToPoint::kBatchedBlocking: return "blocking";
    case program::PointToPoint::kPostedAhead: return "posted-ahead";
  }
  return "?";
}

std::string ParallelText(const parallel::ParallelConfig& config) {
  std::string text;
  const auto add = [&](const char* name, std::int32_t degree, const std::string& remark = "") {
    if (degree <= 1) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : " x ", name, degree, remark);
  };
  add("TP", config.tensor, config.sequence_parallel ? " (sequence parallel)" : "");
  add("PP", config.pipeline,
      config.virtual_stages > 1 ? fmt::format(" ({} virtual stages)", config.virtual_stages) : "");
  add("CP", config.context);
  add("DP", config.data);
  if (text.empty()) text = "no parallelism";
  text += fmt::format(" = {} GPU{}", CountText(config.world_size()),
                      config.world_size() == 1 ? "" : "s");
  if (config.expert > 1 || config.expert_tensor > 1) {
    text += fmt::format("; experts: EP {} x ETP {}", config.expert, config.expert_tensor);
  }
  if (config.data * config.context > 1)
    text += fmt::format("; sharded: {}", NameOf(config.sharding));
  return text;
}

std::string ScheduleText(const RunDescription& run) {
  const std::int32_t sequences = run.execution.micro_batch;
  std::string text = fmt::format("{}, {} microbatches of {} sequence{} per replica", run.schedule,
                                 CountText(run.microbatches), sequences, sequences == 1 ? "" : "s");
  if (run.microbatch_group > 0) text += fmt::format(" in groups of {}", run.microbatch_group);
  return text + fmt::format(", global batch {}", CountText(run.global_batch));
}

std::string PrecisionText(const RunDescription& run) {
  return fmt::format("{}, gradients reduced in {}, recompute {}, attention {}",
                     NameOf(run.execution.recipe), NameOf(run.optimizer.gradient_dtype),
                     NameOf(run.execution.recomputation), NameOf(run.execution.attention));
}

std::string ExpertText(const RunDescription& run) {
  if (!run.model.experts.enabled()) return "";
  const model::ExecutionConfig& execution = run.execution;
  std::string text(NameOf(execution.expert_routing));
  if (execution.expert_routing != model::ExpertRouting::kBalanced) {
    const model::ExpertRows rows = model::ExpertRowsOf(model::Shard(run.model, execution));
    text += fmt::format(", busiest GPU {:.3g} times its share",
                        rows.computed / (rows.sent * execution.sharding.expert_tensor));
  }
  if (execution.expert_capacity_factor > 0.0) {
    text += fmt::format(", capacity factor {:g}", execution.expert_capacity_factor);
  }
  return text + fmt::format(", dispatch {} in {}", NameOf(execution.expert_dispatch),
                            NameOf(execution.expert_dispatch_type));
}

std::string OverlapText(const program::OverlapOptions& overlap) {
  std::string text;
  const auto add = [&](bool on, const std::string& name) {
    if (on) text += (text.empty() ? "" : ", ") + name;
  };
  add(overlap.gradient_reduce, "gradient reduce");
  add(overlap.parameter_gather, overlap.parameter_gather_with_optimizer_step
                                    ? "parameter gather (with the optimizer step)"
                                    : "parameter gather");
  add(!overlap.tensor_parallel.entries.empty(),
      fmt::format("tensor parallel ({})", overlap.tensor_parallel.name));
  add(overlap.expert_all_to_all, "expert all-to-all");
  add(overlap.delay_weight_gradient, "delayed weight gradient");
  add(true, fmt::format("point-to-point {}", NameOf(overlap.point_to_point)));
  return text;
}

std::string PairText(const RunDescription& run) {
  switch (run.pair_cost) {
    case schedules::PairCost::kSum: return "simulated";
    case schedules::PairCost::kSerial: return "serial";
    case schedules::PairCost::kGiven:
      return fmt::format("{:.4g} of serial", run.pair_factor.value());
  }
  return "?";
}

std::string LayoutText(const program::LayoutOptions& layout) {
  if (!layout.pipeline_layout.empty()) return layout.pipeline_layout;
  std::string text = "even";
  if (layout.first_stage_layers)
    text += fmt::format(", first stage {}", *layout.first_stage_layers);
  if (layout.last_stage_layers) text += fmt::format(", last stage {}", *layout.last_stage_layers);
  const bool embedding = layout.embedding_counts_as_layer;
  const bool loss = layout.loss_counts_as_layer;
  if (embedding && loss) return text + ", embedding and loss counted";
  if (embedding || loss) text += embedding ? ", embedding counted" : ", loss counted";
  return text;
}

std::string SwitchesText(const RunDescription& run) {
  std::string launch =
      run.parallel.virtual_stages > 1 ? "by Megatron's rank-shifted hooks" : "as chunks complete";
  if (run.parallel.sharding == parallel::DataSharding::kFull) {
    launch = run.overlap.fsdp_launch == program::ShardLaunch::kPerLayer
                 ? "per layer"
                 : fmt::format("by look-ahead over {} chunks", run.overlap.fsdp_active_chunks);
  }
  const std::string_view barrier = run.optimizer.post_validation ? "no barrier between steps"
                                   : run.optimizer.gradient_norm ? "barrier before the optimizer"
                                                                 : "optimizer without a barrier";
  return fmt::format(
      "{}; fused pairs {}; activations released at I and W; layers {}; data-parallel collectives "
      "launched {}",
      barrier, PairText(run), LayoutText(run.layout), launch);
}

std::string PeakText(const RunDescription& run, FlopsPerSecond peak) {
  return fmt::format("{}, the dense {} peak of {}", FlopsText(peak),
                     NameOf(GemmDataType(run.execution.recipe)), run.gpu.name);
}

std::string KeyOf(program::RankState state) {
  std::string key;
  for (char c : program::NameOf(state)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      key += c;
    } else if (!key.empty() && key.back() != '_') {
      key += '_';
    }
  }
  return key;
}

}  // namespace quadrille::report
