// All sections of a run file but the model.
#include "sim/scenario/megatron_import_run.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/scenario/megatron_import_flags.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {

Result<MegatronImport> MegatronImporter::Import() {
  ReadDegrees();
  Model();
  Cluster();
  Parallel();
  Schedule();
  Training();
  Experts();
  Layout();
  Kernels();
  Optimizer();
  Overlap();
  JudgeTheRest();
  Diagnostics& problems = flags_.problems();
  if (options_.strict) {
    for (const Diagnostics* list : {&result_.unsupported, &result_.unknown}) {
      problems.insert(problems.end(), list->begin(), list->end());
    }
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  result_.yaml = Header() + body_;
  return std::move(result_);
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
    gpus = tensor_ * pipeline_ * context_;
    Assume(
        fmt::format("{} GPUs, one replica: the launcher's numbers of nodes and processes are "
                    "not in the file; say --gpus N",
                    gpus));
  }
  body_ += fmt::format("gpus: {}\n", gpus);
  data_ = std::max<std::int64_t>(gpus / (tensor_ * pipeline_ * context_), 1);
}

void MegatronImporter::Parallel() {
  Section("parallel");
  Key("tensor", tensor_);
  const bool sequence = flags_.Has("sequence-parallel");
  Key("sequence", sequence && tensor_ > 1);
  Key("pipeline", pipeline_);
  VirtualStages();
  Key("context", context_);
  const std::int64_t expert = flags_.Whole("expert-model-parallel-size").value_or(1);
  const std::optional<std::int64_t> expert_tensor = flags_.Whole("expert-tensor-parallel-size");
  if (experts_ > 0) {
    Key("expert", std::max<std::int64_t>(expert, 1));
    Key("expert_tensor", expert_tensor.value_or(tensor_));
    if (!expert_tensor && tensor_ > 1) {
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
    virtual_stages_ = std::max<std::int64_t>(layers_ / pipeline_ / *per_stage, 1);
  } else if (!layout_.empty()) {
    virtual_stages_ = 0;  // as many as the layout has; see Layout
  }
  if (virtual_stages_ > 1) Key("virtual_stages", virtual_stages_);
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
  const std::optional<std::int64_t> group =
      flags_.Whole("microbatch-group-size-per-virtual-pipeline-stage");
  const bool combined = flags_.Has("overlap-moe-expert-parallel-comm");
  if (combined && pipeline_ > 1 && virtual_stages_ > 1) {
    Section("schedule");
    Key("name", "combined");
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
  Key("precision", Precision());
  Recompute();
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
    static const std::map<std::string, std::string> kRecipes = {{"delayed", "fp8-delayed"},
                                                                {"tensorwise", "fp8-current"},
                                                                {"blockwise", "fp8-block"},
                                                                {"mxfp8", "mxfp8"}};
    const auto found = kRecipes.find(recipe);
    if (found != kRecipes.end()) return found->second;
    flags_.Error("fp8-recipe", fmt::format("{} is not known", Quoted(recipe)));
  }
  return bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
}

void MegatronImporter::Recompute() {
  const bool activations = flags_.Has("recompute-activations");
  const std::string granularity =
      flags_.Text("recompute-granularity").value_or(activations ? "selective" : "none");
  const std::string method = flags_.Text("recompute-method").value_or("uniform");
  const std::vector<std::string> modules = flags_.List("recompute-modules");
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

void MegatronImporter::Experts() {
  const std::optional<double> capacity = flags_.Number("moe-expert-capacity-factor");
  const std::string dispatcher = flags_.Text("moe-token-dispatcher-type").value_or("allgather");
  const std::string backend = flags_.Text("moe-flex-dispatcher-backend").value_or("deepep");
  const bool deepep = flags_.Has("moe-enable-deepep") || dispatcher == "flex";
  if (experts_ == 0) return;
  Section("experts");
  Key("dispatch", deepep ? "deepep" : dispatcher == "allgather" ? "all-gather" : "all-to-all");
  if (dispatcher == "flex" && backend != "deepep") {
    flags_.Refuse("moe-flex-dispatcher-backend", "DeepEP's dispatch is simulated");
  }
  if (capacity && *capacity > 0.0) Key("capacity_factor", *capacity);
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

void MegatronImporter::Kernels() {
  Section("kernels");
  const std::string backend = flags_.Text("attention-backend").value_or("auto");
  if (backend == "unfused" || backend == "local") Key("attention", "unfused");
  if (backend == "fused") Key("attention", "cudnn");
  const std::vector<std::string> types = flags_.List("cp-comm-type");
  const std::string type = types.empty() ? "p2p" : types.front();
  if (context_ > 1) {
    if (types.size() > 1 || type == "a2a+p2p") {
      flags_.Refuse("cp-comm-type", "one algorithm is simulated for all layers");
    }
    Key("context_algorithm", type == "all_gather" ? "all-gather"
                             : type == "a2a"      ? "ulysses"
                                                  : "ring");
  }
  body_ += "  fusions:\n    base: megatron-2026\n";
  const auto off = [&](const char* key, bool is_off) {
    if (is_off) body_ += fmt::format("    {}: false\n", key);
  };
  off("bias_activation", flags_.Has(swiglu_ ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion"));
  off("bias_dropout_residual", flags_.Has("no-bias-dropout-fusion"));
  off("rope", flags_.Has("no-rope-fusion"));
  off("softmax", flags_.Has("no-masked-softmax-fusion"));
  off("gradient_accumulation", flags_.Has("no-gradient-accumulation-fusion"));
  off("cross_entropy", !flags_.Has("cross-entropy-loss-fusion"));
  const bool router = flags_.Has("moe-router-fusion");
  const bool permute = flags_.Has("moe-permute-fusion");
  if (experts_ > 0) {
    off("router", !router);
    off("permute", !permute);
  }
  const bool graphs = flags_.Has("enable-cuda-graph") || flags_.Has("external-cuda-graph") ||
                      flags_.Text("cuda-graph-impl").value_or("none") != "none";
  flags_.Has("cuda-graph-scope");
  flags_.Has("cuda-graph-warmup-steps");
  if (graphs) body_ += "host:\n  cuda_graphs: true\n";
}

void MegatronImporter::Optimizer() {
  const std::string name = flags_.Text("optimizer").value_or("adam");
  if (name != "adam") flags_.Refuse("optimizer", "Adam is simulated");
  Section("optimizer");
  Key("name", "adam");
  const bool bf16 = flags_.Has("grad-reduce-in-bf16");
  flags_.Has("accumulate-allreduce-grads-in-fp32");
  Key("gradient_dtype", bf16 ? "bf16" : "fp32");
  if (flags_.Has("fp8-param-gather")) Key("parameter_gather_dtype", "fp8");
  if (flags_.Number("clip-grad").value_or(1.0) == 0.0) Key("gradient_norm", false);
}

void MegatronImporter::Overlap() {
  Section("overlap");
  // PyTorch's FSDP gathers and reduces under the passes whatever Megatron's own flags say.
  const bool torch = flags_.Has("use-torch-fsdp2");
  const bool reduce = flags_.Has("overlap-grad-reduce");
  const bool gather = flags_.Has("overlap-param-gather");
  Key("gradient_reduce", reduce || torch);
  Key("parameter_gather", gather || torch);
  if (flags_.Has("overlap-param-gather-with-optimizer-step")) {
    Key("parameter_gather_with_optimizer_step", true);
  }
  const bool userbuffers = flags_.Has("tp-comm-overlap");
  flags_.Has("tp-comm-overlap-cfg");
  if (userbuffers && tensor_ > 1) {
    Key("tensor_parallel", "userbuffers-h100-405b");
    Assume("tensor_parallel userbuffers-h100-405b: --tp-comm-overlap names no table here");
  }
  const bool no_p2p = flags_.Has("no-overlap-p2p-communication");
  if (pipeline_ > 1) Key("p2p", virtual_stages_ > 1 && !no_p2p);
  if (flags_.Has("delay-wgrad-compute")) Key("delay_weight_gradient", true);
  if (flags_.Has("overlap-moe-expert-parallel-comm") && experts_ > 0) {
    Key("expert_all_to_all", true);
  }
  if (flags_.Has("moe-shared-expert-overlap") && experts_ > 0) Key("shared_experts", true);
  if (const auto bucket = flags_.Whole("ddp-bucket-size"); bucket && *bucket > 0) {
    Key("bucket_size", *bucket);
  }
}

void MegatronImporter::JudgeTheRest() {
  result_.unsupported = std::move(flags_.refused());
  std::set<std::string> seen;
  for (const MegatronFlag& flag : flags_.all()) {
    if (flags_.WasRead(flag.name) || !seen.insert(flag.name).second) continue;
    const MegatronFlagVerdict verdict = JudgeMegatronFlag(flag.name);
    if (verdict.kind == MegatronFlagClass::kUnsupported) {
      result_.unsupported.push_back(
          {flag.position, fmt::format("--{} is not supported: {}", flag.name, verdict.reason)});
    } else if (verdict.kind == MegatronFlagClass::kUnknown) {
      result_.unknown.push_back(
          {flag.position, fmt::format("--{} is not known and was ignored", flag.name)});
    } else {
      result_.irrelevant.push_back(flag.name);
    }
  }
}

std::string MegatronImporter::Header() const {
  std::string text = fmt::format("# Imported from the Megatron-LM flags of {}.\n", file_);
  for (const std::string& assumption : result_.assumptions) {
    text += fmt::format("# Assumed: {}.\n", assumption);
  }
  for (const Diagnostic& problem : result_.unsupported) {
    text += fmt::format("# Not as given: {}.\n", problem.message);
  }
  return text;
}

}  // namespace quadrille::scenario
