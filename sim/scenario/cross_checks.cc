#include "sim/scenario/cross_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/registry.h"
#include "sim/compute/kernel_cost.h"
#include "sim/model/counts.h"
#include "sim/program/layout.h"
#include "sim/scenario/names.h"
#include "topology/fabric_shape.h"

namespace quadrille::scenario {
namespace {

// Orders larger than this are refused before they are built: they would fill memory, not answer a
// question.
constexpr std::int64_t kMaxScheduleActions = 4'000'000;

std::int32_t NvlinkDomain(const topology::ClusterSpec& cluster) {
  if (cluster.nvlink.fabric == topology::NvlinkFabric::kNone) return 1;
  return cluster.nvlink.domain_gpus > 0 ? cluster.nvlink.domain_gpus : cluster.gpus_per_node;
}

void CheckTensor(Findings* findings, const Scenario& s) {
  const std::int32_t tensor = s.parallel.tensor;
  if (!findings->Good({"parallel.tensor"}) || tensor == 1) return;
  const auto divides = [&](const char* key, std::int32_t value, const char* what) {
    if (!findings->Good({key}) || value % tensor == 0) return;
    findings->ErrorAt("parallel.tensor",
                      fmt::format("{} does not divide {} {}", tensor, value, what));
  };
  divides("model.heads", s.model.heads, "attention heads");
  divides("model.ffn_hidden", s.model.ffn_hidden, "FFN columns");
  if (findings->Good({"model.kv_heads", "model.heads"}) && s.model.kv_heads > 0 &&
      s.model.kv_heads % tensor != 0 && tensor % s.model.kv_heads != 0) {
    findings->ErrorAt("parallel.tensor",
                      fmt::format("{} neither divides {} KV heads nor is a multiple of them",
                                  tensor, s.model.kv_heads));
  }
  const std::int32_t domain = NvlinkDomain(s.cluster);
  if (tensor > domain && findings->Good({"cluster"})) {
    findings->WarnAt("parallel.tensor",
                     fmt::format("{} is more than the {} GPUs of an NVLink domain; tensor parallel "
                                 "collectives cross the network",
                                 tensor, domain));
  }
}

void CheckSequence(Findings* findings, const Scenario& s) {
  if (!findings->Good({"training.sequence_length", "parallel.context", "parallel.tensor"})) return;
  const std::int32_t length = s.execution.sequence_length;
  const std::int32_t context = s.parallel.context;
  if (length == 0) return;
  const bool zigzag = context > 1 && s.execution.causal &&
                      s.execution.context_algorithm != model::ContextAlgorithm::kUlysses;
  const std::int64_t pieces = zigzag ? 2LL * context : context;
  if (length % pieces != 0) {
    findings->ErrorAt(
        "training.sequence_length",
        zigzag ? fmt::format("{} tokens do not divide into 2 x context {} = {} chunks, "
                             "which causal context parallelism deals out in pairs",
                             length, context, pieces)
               : fmt::format("{} tokens do not divide over context {}", length, context));
  } else if (s.parallel.sequence_parallel && length / context % s.parallel.tensor != 0) {
    findings->ErrorAt("training.sequence_length",
                      fmt::format("{} tokens per context rank do not divide over tensor {}, which "
                                  "sequence parallelism needs",
                                  length / context, s.parallel.tensor));
  }
  if (s.model.position == model::PositionEmbedding::kLearned && s.model.max_positions > 0 &&
      length > s.model.max_positions) {
    findings->ErrorAt("training.sequence_length",
                      fmt::format("{} tokens are more than the model's {} learned positions",
                                  length, s.model.max_positions));
  }
  if (context > 1 && s.execution.context_algorithm == model::ContextAlgorithm::kUlysses &&
      findings->Good({"model.heads"}) && s.model.heads % (s.parallel.tensor * context) != 0) {
    findings->ErrorAt("parallel.context",
                      fmt::format("Ulysses deals {} heads over tensor {} x context {}, which does "
                                  "not divide",
                                  s.model.heads, s.parallel.tensor, context));
  }
}

// Sizes that pass one by one and whose products do not fit the 64 bits that bytes and FLOPs are
// counted in.
void CheckProducts(Findings* findings, const Scenario& s) {
  constexpr double kMostElements = 1e16;  // of one tensor, of a whole model
  if (!findings->Good({"model", "training.sequence_length", "training.micro_batch"})) return;
  const model::TransformerConfig& m = s.model;
  const double tokens = static_cast<double>(s.execution.sequence_length) * s.execution.micro_batch;
  const double columns =
      std::max({static_cast<double>(m.hidden), static_cast<double>(m.ffn_hidden),
                static_cast<double>(m.vocabulary), static_cast<double>(m.heads) * m.head_dim});
  const double routed = std::max(1, m.experts.top_k);
  const double scores = s.execution.attention == model::AttentionBackend::kUnfused
                            ? tokens * s.execution.sequence_length * m.heads
                            : 0.0;
  const double largest = std::max(tokens * columns * routed, scores);
  if (largest > kMostElements) {
    findings->ErrorAt(
        "training.sequence_length",
        fmt::format("{} tokens x micro batch {} make a tensor of {:.1e} elements, "
                    "more than {:g}",
                    s.execution.sequence_length, s.execution.micro_batch, largest, kMostElements));
  }
  const double experts =
      static_cast<double>(m.experts.experts) * m.experts.expert_ffn_hidden + m.ffn_hidden;
  const double layer = m.hidden * (3.0 * experts + 4.0 * m.heads * m.head_dim);
  const double parameters = m.layers * layer + 2.0 * m.vocabulary * static_cast<double>(m.hidden);
  if (parameters > kMostElements) {
    findings->ErrorAt("model", fmt::format("about {:.1e} parameters are more than {:g}", parameters,
                                           kMostElements));
  }
}

// No GPU gets more than all copies that its experts can take.
void CheckLoadFactor(Findings* findings, const Scenario& s) {
  const auto& experts = s.model.experts;
  if (s.execution.expert_routing != model::ExpertRouting::kLoadFactor) return;
  const double own = static_cast<double>(experts.experts) / s.parallel.expert;
  const double most = s.parallel.expert * std::min(1.0, own / experts.top_k);
  if (s.execution.expert_load_factor <= most) return;
  findings->ErrorAt(
      "experts.load_factor",
      fmt::format("{:g} is more than {:g}, with which the {:g} experts of one of {} EP ranks get "
                  "every token",
                  s.execution.expert_load_factor, most, own, s.parallel.expert));
}

void CheckExperts(Findings* findings, const Scenario& s) {
  if (!findings->Good({"parallel.expert", "parallel.expert_tensor", "model.experts"})) return;
  const auto& experts = s.model.experts;
  if (!experts.enabled()) {
    for (const auto& [key, degree] :
         {std::pair{"parallel.expert", s.parallel.expert},
          std::pair{"parallel.expert_tensor", s.parallel.expert_tensor}}) {
      if (degree > 1)
        findings->ErrorAt(key, fmt::format("{}, but the model has no experts", degree));
    }
    return;
  }
  if (experts.experts % s.parallel.expert != 0) {
    findings->ErrorAt("parallel.expert", fmt::format("{} does not divide {} experts",
                                                     s.parallel.expert, experts.experts));
  }
  CheckLoadFactor(findings, s);
  if (experts.expert_ffn_hidden % s.parallel.expert_tensor != 0) {
    findings->ErrorAt("parallel.expert_tensor",
                      fmt::format("{} does not divide the {} columns of an expert",
                                  s.parallel.expert_tensor, experts.expert_ffn_hidden));
  }
}

void CheckPrecision(Findings* findings, const Scenario& s) {
  if (!findings->Good({"training.precision", "cluster.gpu"}) || s.gpu.name.empty()) return;
  const Recipe recipe = s.execution.recipe;
  const DataType type = GemmDataType(recipe);
  const std::string_view name = NameOf(recipe, kRecipes);
  if (s.gpu.Peak(type) == FlopsPerSecond(0)) {
    findings->ErrorAt("training.precision",
                      fmt::format("{} has no units for {}", s.gpu.name, name));
  } else if (type == DataType::kBf16 && s.gpu.architecture == "volta") {
    findings->ErrorAt("training.precision",
                      fmt::format("{} has no bf16 units; use fp16", s.gpu.name));
  } else if ((recipe == Recipe::kMxFp8 || recipe == Recipe::kNvFp4) &&
             s.gpu.architecture != "blackwell") {
    findings->ErrorAt("training.precision",
                      fmt::format("{} needs a Blackwell GPU, not {}", name, s.gpu.name));
  }
}

void CheckSharding(Findings* findings, const Scenario& s) {
  if (s.parallel.shard_group > 0 && s.parallel.sharding == parallel::DataSharding::kNone) {
    findings->ErrorAt("parallel.shard_group",
                      fmt::format("{} ranks share states, but parallel.zero 0 shards none",
                                  s.parallel.shard_group));
  }
  if (s.optimizer.parameter_gather_dtype == DataType::kFp8 && !IsLowPrecision(s.execution.recipe)) {
    findings->ErrorAt("optimizer.parameter_gather_dtype",
                      fmt::format("fp8 parameters need a recipe whose GEMMs read them; {} does not",
                                  NameOf(s.execution.recipe, kRecipes)));
  }
}

void CheckLayers(Findings* findings, const Scenario& s) {
  if (!findings->Good({"model.layers", "parallel.pipeline", "parallel.virtual_stages", "layout"}) ||
      s.model.layers == 0) {
    return;
  }
  const program::LayoutOptions& layout = s.layout;
  const bool stated = layout.first_stage_layers || layout.last_stage_layers;
  const bool counted = layout.embedding_counts_as_layer || layout.loss_counts_as_layer;
  if (!layout.pipeline_layout.empty() && (stated || counted)) {
    findings->ErrorAt("layout.pipeline_layout",
                      "says where every layer goes; leave out the other keys of layout");
    return;
  }
  if (stated && counted) {
    findings->ErrorAt(
        layout.first_stage_layers ? "layout.first_stage_layers" : "layout.last_stage_layers",
        "does not go together with counting the embedding or the loss as a layer");
    return;
  }
  const std::int64_t stages =
      static_cast<std::int64_t>(s.parallel.pipeline) * s.parallel.virtual_stages;
  if (stages > 65'536) {
    findings->ErrorAt("parallel.virtual_stages", fmt::format("{} stages are too many", stages));
    return;
  }
  // Two copies of a pipeline of P stages are not a pipeline of 2 P.
  const bool two_copies = s.schedule.name == "dualpipe" || s.schedule.name == "chimera";
  const auto built = program::BuildLayout(s.model, layout, s.parallel.pipeline,
                                          two_copies ? 1 : s.parallel.virtual_stages);
  if (built) return;
  const std::string key = !layout.pipeline_layout.empty()            ? "layout.pipeline_layout"
                          : layout.first_stage_layers                ? "layout.first_stage_layers"
                          : layout.last_stage_layers                 ? "layout.last_stage_layers"
                          : findings->Has("parallel.virtual_stages") ? "parallel.virtual_stages"
                                                                     : "parallel.pipeline";
  for (const Diagnostic& problem : built.error()) findings->ErrorAt(key, problem.message);
}

void CheckSlices(Findings* findings, const Scenario& s, const std::string& key,
                 std::int32_t slices) {
  if (slices == 1) return;
  if (s.parallel.context > 1) {
    findings->ErrorAt(key, fmt::format("{} sequence slices do not go together with context "
                                       "parallelism, which cuts the sequence itself",
                                       slices));
  } else if (s.execution.sequence_length % slices != 0) {
    findings->ErrorAt(
        "training.sequence_length",
        fmt::format("{} tokens do not divide into {} slices", s.execution.sequence_length, slices));
  }
}

// A foreign order has its own sizes; they must be those of the run.
void CheckOrder(Findings* findings, const Scenario& s) {
  if (!s.schedule.order) return;
  const schedules::PipelineSchedule& order = *s.schedule.order;
  const auto agree = [&](const char* what, std::int64_t of_order, std::int64_t of_run) {
    if (of_order == of_run) return;
    findings->ErrorAt("schedule.order_file",
                      fmt::format("the order has {} {}, the run {}", of_order, what, of_run));
  };
  agree("pipeline ranks", order.pipeline, s.parallel.pipeline);
  agree("microbatches", order.microbatches, s.microbatches);
  const bool bidirectional = order.placement == schedules::Placement::kBidirectional;
  if (!bidirectional) agree("virtual stages", order.virtual_stages, s.parallel.virtual_stages);
  CheckSlices(findings, s, "schedule.order_file", order.slices);
}

void CheckSchedule(Findings* findings, const Scenario& s) {
  if (!findings->Good({"parallel.pipeline", "parallel.virtual_stages", "parallel.data", "schedule",
                       "schedule.name", "schedule.microbatch_group", "training.microbatches",
                       "training.global_batch", "training.micro_batch"})) {
    return;
  }
  if (!s.schedule.order_file.empty()) return CheckOrder(findings, s);
  const schedules::ScheduleRequest& request = s.schedule.request;
  const std::int64_t actions = 2LL * request.pipeline * request.microbatches *
                               std::max(request.virtual_stages, 1) * std::max(request.slices, 1);
  const std::string key = findings->Has("schedule.name")           ? "schedule.name"
                          : findings->Has("training.microbatches") ? "training.microbatches"
                                                                   : "training.global_batch";
  if (actions > kMaxScheduleActions) {
    findings->ErrorAt(key, fmt::format("{} actions in one step are too many (at most {})", actions,
                                       kMaxScheduleActions));
    return;
  }
  const schedules::ScheduleEntry* entry = schedules::FindSchedule(s.schedule.name);
  // One that is built from costs can be judged only when costs are known.
  if (entry == nullptr || entry->needs_costs) return;
  const auto built = schedules::BuildSchedule(s.schedule.name, request);
  if (built) return CheckSlices(findings, s, key, built->slices);
  for (const Diagnostic& problem : built.error()) findings->ErrorAt(key, problem.message);
}

void CheckOverlap(Findings* findings, const Scenario& s) {
  if (!findings->Good({"overlap", "parallel", "optimizer"})) return;
  const program::OverlapOptions& overlap = s.overlap;
  if (!overlap.tensor_parallel.entries.empty()) {
    if (s.parallel.tensor > 1 && !s.parallel.sequence_parallel) {
      findings->ErrorAt("parallel.sequence",
                        "overlap.tensor_parallel overlaps the collectives of sequence parallelism, "
                        "which is off");
    } else if (s.parallel.tensor == 1) {
      findings->WarnAt("overlap.tensor_parallel", "has no effect without tensor parallelism");
    }
  }
  if (overlap.parameter_gather_with_optimizer_step) {
    const char* key = "overlap.parameter_gather_with_optimizer_step";
    if (!overlap.parameter_gather) findings->ErrorAt(key, "needs overlap.parameter_gather");
    if (!s.optimizer.distributed) findings->ErrorAt(key, "needs a distributed optimizer");
    if (s.parallel.virtual_stages == 1) {
      findings->WarnAt(key, "Megatron allows it with virtual stages only");
    }
  }
  if (overlap.expert_all_to_all && !s.model.experts.enabled() && findings->Good({"model"})) {
    findings->ErrorAt("overlap.expert_all_to_all", "the model has no experts");
  }
  const bool full = s.parallel.sharding == parallel::DataSharding::kFull;
  const bool per_layer = overlap.fsdp_launch == program::ShardLaunch::kPerLayer;
  if (!per_layer && !full) {
    findings->ErrorAt("overlap.fsdp_launch", "look-ahead needs parallel.sharding: full");
  }
  if (!per_layer && s.model.experts.enabled() && findings->Good({"model"})) {
    findings->ErrorAt("overlap.fsdp_launch",
                      "look-ahead gathers dense weights alone; the model has experts");
  }
  if (full && per_layer && s.parallel.pipeline > 1) {
    findings->WarnAt("parallel",
                     "full sharding gathers parameters again for every microbatch of a "
                     "pipeline; overlap.fsdp_launch: look-ahead keeps them for several");
  }
}

// What Megatron-LM asserts where it overlaps the experts' exchange with another microbatch
// (megatron/core/transformer/transformer_config.py, overlap_moe_expert_parallel_comm; recalled, not
// read again). The order runs all the same.
void CheckCombined(Findings* findings, const Scenario& s) {
  if (s.schedule.name != "combined") return;
  if (!findings->Good({"schedule.name", "parallel.expert", "training.recompute", "overlap"}))
    return;
  if (s.parallel.expert == 1) {
    findings->WarnAt("schedule.name",
                     "Megatron refuses combined without expert parallelism, whose "
                     "exchange it hides");
  }
  if (s.execution.recomputation == model::Recomputation::kFull) {
    findings->WarnAt("training.recompute", "Megatron refuses full under schedule combined");
  }
  if (s.execution.shared_expert_overlap && s.model.experts.shared_ffn_hidden > 0) {
    findings->WarnAt("overlap.shared_experts", "Megatron refuses true under schedule combined");
  }
}

void CheckPerturbations(Findings* findings, const Scenario& s) {
  const std::int64_t world = s.parallel.world_size();
  if (!findings->Good({"parallel.data"})) return;
  for (std::size_t i = 0; i < s.perturbations.size(); ++i) {
    for (RankId rank : s.perturbations[i].ranks) {
      if (rank.value() < world) continue;
      findings->ErrorAt(fmt::format("perturbations.{}.ranks", i),
                        fmt::format("rank {} is beyond the last of {} GPUs", rank.value(), world));
    }
  }
}

// The modules' own checks come last and only on a run that has no problem yet: they know no
// positions, and what they share with the checks above would be said twice.
void CheckByModules(Findings* findings, const Scenario& s) {
  if (findings->any_problem()) return;
  for (const Diagnostic& problem : model::CheckModel(s.model, s.execution)) {
    findings->ErrorAt("model", problem.message);
  }
  const compute::ComputeOptions options{.fidelity = s.compute_fidelity,
                                        .attention = s.execution.attention,
                                        .recipe = s.execution.recipe};
  for (const Diagnostic& problem : compute::CheckKernels(s.gpu, s.efficiency, options)) {
    findings->ErrorAt("kernels.attention", problem.message);
  }
}

void CheckCluster(Findings* findings, const Scenario& s) {
  if (findings->any_problem() || s.cluster.nodes == 0) return;
  const auto shape = topology::DeriveShape(s.cluster);
  if (shape) return;
  for (const Diagnostic& problem : shape.error()) findings->ErrorAt("cluster", problem.message);
}

}  // namespace

void CrossCheck(Findings* findings, const Scenario& scenario) {
  CheckTensor(findings, scenario);
  CheckSequence(findings, scenario);
  CheckProducts(findings, scenario);
  CheckExperts(findings, scenario);
  CheckPrecision(findings, scenario);
  CheckSharding(findings, scenario);
  CheckLayers(findings, scenario);
  CheckSchedule(findings, scenario);
  CheckOverlap(findings, scenario);
  CheckCombined(findings, scenario);
  CheckPerturbations(findings, scenario);
  CheckByModules(findings, scenario);
  CheckCluster(findings, scenario);
}

}  // namespace quadrille::scenario
