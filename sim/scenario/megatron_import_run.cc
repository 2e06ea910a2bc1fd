// Sections of a run file about sizes: cluster, degrees, schedule, training, experts, layout.
#include "sim/scenario/megatron_import_run.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/scenario/names.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {

void MegatronImporter::Assume(const std::string& text) {
  std::vector<std::string>& all = result_.assumptions;
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

void MegatronImporter::Inner(const std::string& key, std::int64_t value) {
  body_ += fmt::format("    {}: {}\n", key, value);
}

void MegatronImporter::ReadDegrees() {
  tensor_ = std::max<std::int64_t>(flags_.Whole("tensor-model-parallel-size").value_or(1), 1);
  pipeline_ = std::max<std::int64_t>(flags_.Whole("pipeline-model-parallel-size").value_or(1), 1);
  context_ = std::max<std::int64_t>(flags_.Whole("context-parallel-size").value_or(1), 1);
  layers_ = flags_.Require("num-layers", file_);
  hidden_ = flags_.Require("hidden-size", file_);
  heads_ = flags_.Require("num-attention-heads", file_);
  experts_ = flags_.Whole("num-experts").value_or(0);
  expert_ = std::max<std::int64_t>(flags_.Whole("expert-model-parallel-size").value_or(1), 1);
  expert_tensor_ = flags_.Whole("expert-tensor-parallel-size");
  swiglu_ = flags_.Has("swiglu");
  latent_ = flags_.Has("multi-latent-attention");
}

void MegatronImporter::Cluster() {
  body_ += fmt::format("cluster: {}\n", options_.cluster);
  Assume(fmt::format("cluster {}: no flag says where the job runs", options_.cluster));
  std::int64_t gpus = 0;
  if (options_.gpus) {
    gpus = *options_.gpus;
  } else if (nodes_ && gpus_per_node_) {
    gpus = *nodes_ * *gpus_per_node_;
  } else {
    gpus = OneReplica();
    const std::string taken = fmt::format(
        "{} GPUs, the fewest that hold the job: the launcher's numbers of nodes and processes are "
        "not in the file; say --gpus N",
        gpus);
    result_.notes.push_back({{file_, 0, 0}, "assumed " + taken});
    Assume(taken);
  }
  body_ += fmt::format("gpus: {}\n", gpus);
  data_ = std::max<std::int64_t>(gpus / (tensor_ * pipeline_ * context_), 1);
}

std::int64_t MegatronImporter::OneReplica() {
  const std::int64_t dense = tensor_ * context_;
  if (experts_ == 0) return dense * pipeline_;
  const std::int64_t expert = expert_ * std::max<std::int64_t>(expert_tensor_.value_or(tensor_), 1);
  return std::lcm(dense, expert) * pipeline_;
}

void MegatronImporter::Parallel() {
  Section("parallel");
  Key("tensor", tensor_);
  const bool sequence = flags_.Has("sequence-parallel");
  Key("sequence", sequence && tensor_ > 1);
  Key("pipeline", pipeline_);
  VirtualStages();
  Key("context", context_);
  if (experts_ > 0) {
    Key("expert", expert_);
    Key("expert_tensor", expert_tensor_.value_or(tensor_));
    if (!expert_tensor_ && tensor_ > 1) {
      Assume(fmt::format("expert_tensor {}: Megatron's default is the tensor degree", tensor_));
    }
  }
  Sharding();
  Key("order", flags_.Has("use-tp-pp-dp-mapping") ? "tp-cp-ep-pp-dp" : "tp-cp-ep-dp-pp");
}

void MegatronImporter::VirtualStages() {
  const std::optional<std::int64_t> per_stage =
      flags_.Whole("num-layers-per-virtual-pipeline-stage");
  const std::optional<std::int64_t> stages = flags_.Whole("num-virtual-stages-per-pipeline-rank");
  layout_ = flags_.Text("pipeline-model-parallel-layout").value_or("");
  if (stages && *stages > 0) {
    virtual_stages_ = *stages;
  } else if (per_stage && *per_stage > 0) {
    virtual_stages_ = StagesOfLayers(*per_stage);
  } else if (!layout_.empty()) {
    virtual_stages_ = 0;  // as many as the layout has; see Layout
  }
  if (virtual_stages_ > 1) Key("virtual_stages", virtual_stages_);
}

// Refuses what Megatron's validate_args asserts.
std::int64_t MegatronImporter::StagesOfLayers(std::int64_t layers_per_stage) {
  static constexpr const char* kFlag = "num-layers-per-virtual-pipeline-stage";
  const std::int64_t slots = layers_ +
                             (flags_.Has("account-for-embedding-in-pipeline-split") ? 1 : 0) +
                             (flags_.Has("account-for-loss-in-pipeline-split") ? 1 : 0);
  if (pipeline_ == 1) {
    flags_.Error(kFlag, "needs --pipeline-model-parallel-size above 1");
  } else if (slots % pipeline_ != 0) {
    flags_.Error(kFlag,
                 fmt::format("{} layers do not divide over {} pipeline stages", slots, pipeline_));
  } else if (slots / pipeline_ % layers_per_stage != 0) {
    flags_.Error(kFlag, fmt::format("{} does not divide the {} layers of a pipeline stage",
                                    layers_per_stage, slots / pipeline_));
  } else {
    return slots / pipeline_ / layers_per_stage;
  }
  return 1;
}

void MegatronImporter::Sharding() {
  const bool distributed = flags_.Has("use-distributed-optimizer");
  const bool fsdp = flags_.Has("use-megatron-fsdp") || flags_.Has("use-custom-fsdp");
  const bool torch = flags_.Has("use-torch-fsdp2");
  const std::string strategy = flags_.Text("data-parallel-sharding-strategy").value_or("no_shard");
  std::int64_t zero = distributed ? 1 : 0;
  if (torch) zero = 3;
  if (fsdp) {
    static const std::map<std::string, std::int64_t> kStages = {
        {"no_shard", 0}, {"optim", 1}, {"optim_grads", 2}, {"optim_grads_params", 3}};
    const auto found = kStages.find(strategy);
    if (found == kStages.end()) {
      flags_.Error("data-parallel-sharding-strategy",
                   fmt::format("{} is not known", Quoted(strategy)));
    } else {
      zero = found->second;
    }
  }
  Key("zero", zero);
  const std::int64_t instances = flags_.Whole("num-distributed-optimizer-instances").value_or(1);
  if (instances > 1 && zero > 0) Key("shard_group", data_ * context_ / instances);
}

void MegatronImporter::Schedule() {
  // Under its own name, or that of the field that it sets.
  std::optional<std::int64_t> group =
      flags_.Whole("microbatch-group-size-per-virtual-pipeline-stage");
  const std::optional<std::int64_t> field = flags_.Whole("microbatch-group-size-per-vp-stage");
  if (!group) group = field;
  const bool combined = flags_.Has("overlap-moe-expert-parallel-comm");
  if (combined && pipeline_ > 1 && virtual_stages_ > 1) {
    Section("schedule");
    Key("name", "combined");
    if (group) Key("microbatch_group", *group);
  } else if (group && virtual_stages_ > 1) {
    Section("schedule");
    Key("name", "interleaved");
    Key("microbatch_group", *group);
  }
}

void MegatronImporter::Training() {
  Section("training");
  Key("sequence_length", flags_.Require("seq-length", file_));
  const std::int64_t micro_batch =
      std::max<std::int64_t>(flags_.Whole("micro-batch-size").value_or(1), 1);
  Key("micro_batch", micro_batch);
  const std::optional<std::int64_t> global = flags_.Whole("global-batch-size");
  if (!global) Assume("global_batch: Megatron's default, one microbatch per replica");
  Key("global_batch", global.value_or(micro_batch * data_));
  precision_ = Precision();
  Key("precision", precision_);
  Recompute();
  NarrowStorage();
  const std::optional<double> attention = flags_.Number("attention-dropout");
  const std::optional<double> hidden = flags_.Number("hidden-dropout");
  const double dropout = hidden.value_or(attention.value_or(0.1));
  if (!hidden && !attention) Assume("dropout 0.1: Megatron's default");
  if (dropout > 0.0) Key("dropout", dropout);
}

std::string MegatronImporter::Precision() {
  const std::optional<std::string> fp8 =
      flags_.Has("fp8") ? flags_.Text("fp8") : flags_.Text("fp8-format");
  flags_.Has("fp8-format");
  const std::string recipe = flags_.Text("fp8-recipe").value_or("delayed");
  const bool fp4 = flags_.Has("fp4-format") || flags_.Has("fp4");
  flags_.Has("fp4-recipe");
  const bool bf16 = flags_.Has("bf16");
  const bool fp16 = flags_.Has("fp16");
  if (fp4) return "nvfp4";
  if (fp8) {
    static const std::map<std::string, std::string> kFp8Recipes = {{"delayed", "fp8-delayed"},
                                                                   {"tensorwise", "fp8-current"},
                                                                   {"blockwise", "fp8-block"},
                                                                   {"mxfp8", "mxfp8"}};
    const auto found = kFp8Recipes.find(recipe);
    if (found != kFp8Recipes.end()) return found->second;
    flags_.Error("fp8-recipe", fmt::format("{} is not known", Quoted(recipe)));
  }
  return bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
}

void MegatronImporter::Recompute() {
  const bool activations = flags_.Has("recompute-activations");
  const std::string granularity =
      flags_.Text("recompute-granularity").value_or(activations ? "selective" : "none");
  const std::string method = flags_.Text("recompute-method").value_or("uniform");
  std::vector<std::string> modules = flags_.List("recompute-modules");
  const std::size_t unknown = std::erase_if(modules, [](const std::string& module) {
    return std::none_of(std::begin(kRecomputeModules), std::end(kRecomputeModules),
                        [&](const auto& row) { return row.name == module; });
  });
  if (unknown > 0) {
    flags_.Refuse(
        "recompute-modules",
        fmt::format("only {} are repeated",
                    modules.empty() ? "core_attn" : fmt::format("{}", fmt::join(modules, ", "))));
  }
  const std::optional<std::int64_t> layers = flags_.Whole("recompute-num-layers");
  if (granularity == "full") {
    Key("recompute", "full");
    if (method == "block") {
      Key("recompute_method", "block");
    } else if (method != "uniform") {
      flags_.Error("recompute-method", fmt::format("{} is not known", Quoted(method)));
    }
    if (layers && *layers > 0 && (method == "block" || *layers > 1)) {
      Key("recompute_layers", *layers);
    }
  } else if (granularity == "selective" && !modules.empty()) {
    Key("recompute", fmt::format("[{}]", fmt::join(modules, ", ")));
  } else if (granularity == "selective" || granularity == "none") {
    Key("recompute", granularity);
  } else {
    flags_.Error("recompute-granularity", fmt::format("{} is not known", Quoted(granularity)));
  }
}

void MegatronImporter::NarrowStorage() {
  if (flags_.Has("activation-func-fp8-input-store")) Key("narrow_storage", "[activation_input]");
}

void MegatronImporter::Experts() {
  const std::string dispatcher = flags_.Text("moe-token-dispatcher-type").value_or("allgather");
  const std::string backend = flags_.Text("moe-flex-dispatcher-backend").value_or("deepep");
  const bool deepep = flags_.Has("moe-enable-deepep") || dispatcher == "flex";
  const bool grouped = flags_.Has("moe-grouped-gemm");
  if (experts_ == 0) return;
  Section("experts");
  const bool hybrid = dispatcher == "flex" && backend == "hybridep";
  Key("dispatch", hybrid                      ? "hybrid-ep"
                  : deepep                    ? "deepep"
                  : dispatcher == "allgather" ? "all-gather"
                                              : "all-to-all");
  if (dispatcher == "flex" && backend != "deepep" && !hybrid) {
    flags_.Refuse("moe-flex-dispatcher-backend", "DeepEP's dispatch is simulated");
  }
  if (!grouped) {
    Assume(
        "the GEMMs of a GPU's experts run as one group: without --moe-grouped-gemm Megatron runs "
        "them one after the other");
  }
  ExpertCapacity();
}

void MegatronImporter::ExpertCapacity() {
  const std::optional<double> capacity = flags_.Number("moe-expert-capacity-factor");
  const bool padded = flags_.Has("moe-pad-expert-input-to-capacity");
  if (padded && (!capacity || *capacity <= 0.0)) {
    flags_.Error("moe-pad-expert-input-to-capacity", "needs --moe-expert-capacity-factor");
    return;
  }
  if (!capacity || *capacity <= 0.0) return;
  Key("capacity_factor", *capacity);
  if (!padded || *capacity <= 1.0) return;
  // A load factor counts tokens, and no GPU can get more of them than all.
  if (*capacity > static_cast<double>(expert_)) {
    return flags_.Refuse("moe-pad-expert-input-to-capacity", "experts compute the tokens they get");
  }
  Key("routing", "load-factor");
  Key("load_factor", *capacity);
  Assume(fmt::format("load_factor {}: every expert's rows are padded to its capacity", *capacity));
}

void MegatronImporter::Layout() {
  const bool embedding = flags_.Has("account-for-embedding-in-pipeline-split");
  const bool loss = flags_.Has("account-for-loss-in-pipeline-split");
  const std::optional<std::int64_t> first = flags_.Whole("decoder-first-pipeline-num-layers");
  const std::optional<std::int64_t> last = flags_.Whole("decoder-last-pipeline-num-layers");
  if (!embedding && !loss && !first && !last && layout_.empty()) return;
  Section("layout");
  if (embedding) Key("embedding_counts_as_layer", true);
  if (loss) Key("loss_counts_as_layer", true);
  if (first) Key("first_stage_layers", *first);
  if (last) Key("last_stage_layers", *last);
  if (!layout_.empty()) Key("pipeline_layout", fmt::format("\"{}\"", layout_));
  if (virtual_stages_ == 0) {
    Assume(
        "virtual_stages 1: give it with --num-virtual-stages-per-pipeline-rank if the layout "
        "has more stages than pipeline ranks");
  }
}

}  // namespace quadrille::scenario
