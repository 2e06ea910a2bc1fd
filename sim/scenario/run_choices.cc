// Sections that choose among kernels, optimizers, overlaps and imperfections.
#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/default_sends.h"
#include "sim/scenario/gemm_tables.h"
#include "sim/scenario/library.h"
#include "sim/scenario/names.h"
#include "sim/scenario/overlap_loader.h"
#include "sim/scenario/run_sections.h"
#include "sim/scenario/software_stack.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

constexpr std::string_view kFusionSets[] = {"megatron-2026", "megatron-2024", "megatron-2021",
                                            "none"};

void SetAllFusions(model::Fusions* fusions, bool value) {
  for (const auto& row : kFusions) fusions->*row.value = value;
}

// Megatron-LM of 2021 fused what its own CUDA kernels and JIT covered: scale-mask-softmax,
// bias-GELU, bias-dropout-add, and weight-gradient accumulation (arXiv 2104.04473, section 4.2;
// NVIDIA/Megatron-LM v2.5, megatron/fused_kernels). RoPE, cross-entropy and the FP8 fusions came
// later.
// A guess: recalled, not read again in that version.
void SetFusionsOf2021(model::Fusions* fusions) {
  SetAllFusions(fusions, false);
  fusions->bias_activation = true;
  fusions->bias_dropout_residual = true;
  fusions->gradient_accumulation = true;
  fusions->softmax = true;
}

// Megatron-Core before 0.12: the experts' kernels came after the dense layers'. moe-router-fusion,
// moe-permute-fusion and moe-router-padding-for-fp8 did not exist or were off, and TEGroupedMLP
// casts on its own (megatron/core/transformer/moe/experts.py). A guess: recalled, not read again in
// that version.
void SetFusionsOf2024(model::Fusions* fusions) {
  SetAllFusions(fusions, true);
  fusions->router = false;
  fusions->permute = false;
  fusions->expert_activation_quantize = false;
  fusions->router_padding = false;
}

void SetFusions(int row, model::Fusions* fusions) {
  if (row == 1) SetFusionsOf2024(fusions);
  if (row == 2) SetFusionsOf2021(fusions);
  if (row == 3) SetAllFusions(fusions, false);
}

// `fusions: megatron-2026`, or a map that switches single ones off or on.
void LoadFusions(MapReader& reader, model::Fusions* fusions) {
  const YamlValue* value = reader.Find("fusions");
  if (value == nullptr) return;
  if (!value->is_map()) {
    return SetFusions(reader.ReadChoice("fusions", kFusionSets), fusions);
  }
  MapReader section = reader.Section("fusions");
  SetFusions(section.ReadChoice("base", kFusionSets), fusions);
  for (const auto& row : kFusions) section.Read(row.name, &(fusions->*row.value));
  section.Finish();
}

model::AttentionBackend DefaultAttention(const std::string& architecture) {
  if (architecture == "volta") return model::AttentionBackend::kUnfused;
  if (architecture == "ampere") return model::AttentionBackend::kFlash2;
  return model::AttentionBackend::kCudnn;
}

// A backend by name, or `flash`: the FlashAttention that is made for this GPU (Dao et al.,
// arXiv 2307.08691; Shah et al., arXiv 2407.08608, for Hopper; version 4 for Blackwell).
void LoadAttention(MapReader& reader, Scenario* scenario) {
  const YamlValue* value = reader.Find("attention");
  model::AttentionBackend& attention = scenario->execution.attention;
  if (value == nullptr || !value->is_scalar() || value->text != "flash") {
    reader.ReadName("attention", &attention, kAttentionBackends);
    return;
  }
  const std::string& architecture = scenario->gpu.architecture;
  attention = architecture == "hopper"      ? model::AttentionBackend::kFlash3
              : architecture == "blackwell" ? model::AttentionBackend::kFlash4
                                            : model::AttentionBackend::kFlash2;
  reader.findings().Assume("kernels.attention", std::string(NameOf(attention, kAttentionBackends)),
                           "the FlashAttention made for this GPU's generation");
}

void LoadDistributed(MapReader& reader, Scenario* scenario) {
  Findings& findings = reader.findings();
  const bool sharding_given = findings.Has("parallel.zero") || findings.Has("parallel.sharding");
  parallel::DataSharding& sharding = scenario->parallel.sharding;
  program::OptimizerOptions& optimizer = scenario->optimizer;
  if (sharding_given) optimizer.distributed = sharding != parallel::DataSharding::kNone;
  bool distributed = optimizer.distributed;
  if (reader.Read("distributed", &distributed) && sharding_given &&
      distributed != optimizer.distributed &&
      findings.Good({"parallel.zero", "parallel.sharding"})) {
    reader.Error(
        "distributed",
        fmt::format("{} contradicts the parallel section, which shards {}", distributed,
                    sharding == parallel::DataSharding::kNone ? "nothing" : "optimizer states"));
  }
  if (!sharding_given) {
    optimizer.distributed = distributed;
    sharding = distributed ? parallel::DataSharding::kOptimizer : parallel::DataSharding::kNone;
    Default(reader, "distributed", "true", "optimizer states are sharded over data parallel ranks");
  }
}

// Settles on the formula, or what measured GEMMs make of it.
void LoadFidelity(MapReader& reader, Scenario* scenario) {
  compute::Fidelity& fidelity = scenario->compute_fidelity;
  const bool table_shipped = scenario->efficiency.gemm_residuals != nullptr;
  const bool table_given = reader.Has("gemm_table");
  if (reader.ReadName("fidelity", &fidelity, kComputeFidelities)) {
    const bool reads_table = fidelity >= compute::Fidelity::kTable;
    if (table_given && !reads_table) {
      reader.Error("gemm_table", fmt::format("fidelity {} reads no table; table and exact do",
                                             NameOf(fidelity, kComputeFidelities)));
    }
    if (!table_given && fidelity == compute::Fidelity::kExact) {
      reader.Error("fidelity", "exact needs gemm_table, a CSV file of measured GEMMs");
    }
    if (!table_given && !table_shipped && fidelity == compute::Fidelity::kTable) {
      reader.Error(
          "fidelity",
          fmt::format("table needs gemm_table, a CSV file of measured GEMMs: no table that "
                      "helps is known of {}",
                      scenario->gpu.name));
    }
    return;
  }
  fidelity = table_given     ? compute::Fidelity::kExact
             : table_shipped ? compute::Fidelity::kTable
                             : compute::Fidelity::kAnalytic;
  Default(reader, "fidelity", NameOf(fidelity, kComputeFidelities),
          table_given ? "a shape of the table takes its measured time, others what its neighbours "
                        "correct"
          : table_shipped ? "tile and wave model, corrected by GEMMs measured on this type of GPU"
                          : "tile and wave model with fitted constants");
}

// Reads the GEMMs that the user measured on the run's GPU.
void LoadGemmTable(MapReader& reader, Scenario* scenario) {
  if (!reader.Read("gemm_table", &scenario->gemm_table)) return;
  scenario->gemm_table = ResolvePath(scenario->gemm_table, reader.Find("gemm_table")->position);
  const Result<std::string> text = ReadTextFile(scenario->gemm_table, kMaxTableBytes);
  if (!text) return reader.FileError("gemm_table", text.error());
  auto measured = compute::ParseMeasuredGemms(*text, scenario->gemm_table, scenario->gpu.name);
  if (!measured) {
    reader.findings().Fail(reader.PathOf("gemm_table"));
    for (Diagnostic& problem : measured.error()) reader.findings().Error(std::move(problem));
    return;
  }
  if (measured->empty()) {
    return reader.Error("gemm_table", fmt::format("{} has no row of {} (column gpu)",
                                                  scenario->gemm_table, scenario->gpu.name));
  }
  scenario->measured_gemms = std::move(*measured);
  AddMeasuredGemms(scenario->gpu, scenario->measured_gemms, &scenario->efficiency);
}

}  // namespace

void LoadKernels(MapReader reader, Scenario* scenario) {
  model::ExecutionConfig& execution = scenario->execution;
  execution.attention = DefaultAttention(scenario->gpu.architecture);
  LoadAttention(reader, scenario);
  reader.ReadName("context_algorithm", &execution.context_algorithm, kContextAlgorithms);
  LoadFusions(reader, &execution.fusions);
  reader.Read("multiprocessor_margin", &execution.multiprocessor_margin,
              {0, std::max(0, scenario->gpu.streaming_multiprocessors - 1)});
  LoadFidelity(reader, scenario);
  LoadGemmTable(reader, scenario);
  reader.Read("gradient_placeholders", &execution.gradient_placeholders);
  if (reader.Read("time_factor", &scenario->kernel_time_factor, {0.1, 10.0})) {
    SlowKernels(scenario->kernel_time_factor, scenario);
    for (compute::MeasuredGemm& gemm : scenario->measured_gemms) {
      gemm.time = FromSeconds(ToSeconds(gemm.time) * scenario->kernel_time_factor);
    }
  }
  Default(reader, "attention", NameOf(execution.attention, kAttentionBackends),
          "the usual kernel of this GPU's generation");
  if (scenario->parallel.context > 1) {
    Default(reader, "context_algorithm", "ring", "Megatron's p2p context parallelism");
  }
  Default(reader, "fusions", "megatron-2026",
          "Megatron-Core with Transformer Engine of 2024 and later");
  reader.Finish();
}

void LoadOptimizer(MapReader reader, Scenario* scenario) {
  program::OptimizerOptions& optimizer = scenario->optimizer;
  constexpr std::string_view kNames[] = {"adam"};
  (void)reader.ReadChoice("name", kNames);
  LoadDistributed(reader, scenario);
  RefuseOffload(reader,
                "optimizer states are kept on the GPU; parallel.zero: 1 shards them over replicas");
  const bool gradient =
      reader.ReadName("gradient_dtype", &optimizer.gradient_dtype, kGradientTypes);
  scenario->execution.gradient_accumulation = optimizer.gradient_dtype;
  reader.ReadName("accumulation_dtype", &scenario->execution.gradient_accumulation, kGradientTypes);
  if (scenario->execution.recipe == Recipe::kFp16) {
    optimizer.parameter_gather_dtype = DataType::kFp16;
  } else if (scenario->execution.recipe == Recipe::kFp32) {
    optimizer.parameter_gather_dtype = DataType::kFp32;
  }
  reader.ReadName("parameter_gather_dtype", &optimizer.parameter_gather_dtype, kGatherTypes);
  reader.Read("keeps_parameter_gradients", &optimizer.keeps_parameter_gradients);
  reader.ReadName("moments_dtype", &optimizer.moments_dtype, kMomentTypes);
  reader.Read("gradient_norm", &optimizer.gradient_norm);
  reader.Read("post_validation", &optimizer.post_validation);
  if (!gradient) {
    Default(reader, "gradient_dtype", "fp32", "Megatron accumulates and reduces gradients in fp32");
  }
  Default(reader, "parameter_gather_dtype", NameOf(optimizer.parameter_gather_dtype, kDataTypes),
          "parameters are gathered in the precision they are kept in");
  Default(reader, "gradient_norm", "true", "gradients are clipped by their global norm");
  reader.Finish();
}

void LoadOverlap(MapReader reader, Scenario* scenario) {
  program::OverlapOptions& overlap = scenario->overlap;
  reader.Read("gradient_reduce", &overlap.gradient_reduce);
  reader.Read("parameter_gather", &overlap.parameter_gather);
  reader.Read("parameter_gather_with_optimizer_step",
              &overlap.parameter_gather_with_optimizer_step);
  const YamlValue* table = reader.Find("tensor_parallel");
  if (table != nullptr && table->is_map()) {
    LoadTensorOverlap(reader.Section("tensor_parallel"), &overlap.tensor_parallel);
  } else if (table != nullptr && !table->is_scalar()) {
    reader.Error("tensor_parallel", "expected the name of a table, or none");
  }
  reader.Read("tensor_gradient", &scenario->execution.tensor_gradient_overlap);
  overlap.point_to_point =
      DefaultPointToPoint(scenario->schedule.name, scenario->parallel.virtual_stages);
  const bool blocking = overlap.point_to_point == program::PointToPoint::kBatchedBlocking;
  reader.ReadName("p2p", &overlap.point_to_point, kPointToPoint);
  // megatron/training/arguments.py, overlap_p2p_comm (recalled, not read again). Whoever asks for
  // receives that are posted ahead by that name means another framework.
  const YamlValue* p2p = reader.Find("p2p");
  if (scenario->schedule.name == "1f1b" && scenario->parallel.pipeline > 1 && p2p != nullptr &&
      p2p->text == "true") {
    reader.findings().WarnAt(reader.PathOf("p2p"),
                             "Megatron turns it off without virtual stages; simulated are "
                             "receives that are posted ahead");
  }
  reader.Read("expert_all_to_all", &overlap.expert_all_to_all);
  reader.Read("shared_experts", &scenario->execution.shared_expert_overlap);
  reader.Read("delay_weight_gradient", &overlap.delay_weight_gradient);
  reader.Read("bucket_size", &overlap.bucket_size);
  reader.Read("fsdp_prefetch", &overlap.fsdp_prefetch, {0, 1024});
  reader.Read("fsdp_reshard_after_forward", &overlap.fsdp_reshard_after_forward);
  reader.ReadName("fsdp_launch", &overlap.fsdp_launch, kShardLaunches);
  reader.Read("fsdp_active_chunks", &overlap.fsdp_active_chunks, {2, 1024});
  Default(reader, "gradient_reduce", "true", "gradients are reduced under the backward pass");
  Default(reader, "parameter_gather", "true", "parameters are gathered under the forward pass");
  if (scenario->parallel.tensor > 1) {
    Default(reader, "tensor_parallel", "none", "TP collectives run before and after their GEMMs");
  }
  if (scenario->parallel.pipeline > 1) {
    Default(reader, "p2p", blocking ? "blocking" : "posted-ahead",
            blocking
                ? "Megatron overlaps p2p only when there are virtual stages"
                : "Megatron-Bridge overlaps p2p when there are virtual stages; other schedules "
                  "post receives ahead");
  }
  reader.Finish();
}

}  // namespace quadrille::scenario
