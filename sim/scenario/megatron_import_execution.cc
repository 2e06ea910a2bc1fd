// Sections of a run file about how it is executed: kernels, host, optimizer, overlap.
#include <algorithm>
#include <iterator>

#include "sim/scenario/megatron_import_run.h"
#include "sim/scenario/names.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {

void MegatronImporter::Attention() {
  const bool flash = flags_.Has("use-flash-attn");
  const std::string backend = flags_.Text("attention-backend").value_or(flash ? "flash" : "auto");
  if (flags_.Text("transformer-impl").value_or("transformer_engine") == "local") {
    Key("attention", "unfused");
    Assume("attention unfused: --transformer-impl local has no fused attention");
    flags_.Refuse("transformer-impl", "linear layers and norms are those of Transformer Engine");
  } else if (backend == "unfused" || backend == "local") {
    Key("attention", "unfused");
  } else if (backend == "fused") {
    Key("attention", "cudnn");
  } else if (backend == "flash") {
    Key("attention", "flash");
  } else if (backend != "auto") {
    flags_.Error("attention-backend", fmt::format("{} is not known", Quoted(backend)));
  }
}

void MegatronImporter::Kernels() {
  Section("kernels");
  Attention();
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
  Fusions();
  const bool graphs = flags_.Has("enable-cuda-graph") || flags_.Has("external-cuda-graph") ||
                      flags_.Text("cuda-graph-impl").value_or("none") != "none";
  flags_.Has("cuda-graph-scope");
  flags_.Has("cuda-graph-warmup-steps");
  if (graphs) body_ += "host:\n  cuda_graphs: true\n";
}

void MegatronImporter::Fusions() {
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
  const bool padding =
      flags_.Has("moe-router-padding-for-fp8") || flags_.Has("moe-router-padding-for-quantization");
  if (experts_ > 0) {
    off("router", !router);
    off("permute", !permute);
    off("router_padding",
        !padding && precision_ != "bf16" && precision_ != "fp16" && precision_ != "fp32");
  }
}

void MegatronImporter::Optimizer() {
  const std::string name = flags_.Text("optimizer").value_or("adam");
  if (name != "adam") flags_.Refuse("optimizer", "Adam is simulated");
  Section("optimizer");
  Key("name", "adam");
  const bool bf16 = flags_.Has("grad-reduce-in-bf16");
  // Megatron turns it on by itself for bf16, and not for fp16.
  const bool fp32 = flags_.Has("accumulate-allreduce-grads-in-fp32") || precision_ != "fp16";
  Key("gradient_dtype", bf16 ? "bf16" : fp32 ? "fp32" : "fp16");
  Moments();
  if (flags_.Has("fp8-param-gather")) Key("parameter_gather_dtype", "fp8");
  if (flags_.Number("clip-grad").value_or(1.0) == 0.0) Key("gradient_norm", false);
}

void MegatronImporter::Moments() {
  flags_.Has("use-precision-aware-optimizer");  // its dtypes are flags of their own
  const std::optional<std::string> first = flags_.Text("exp-avg-dtype");
  const std::optional<std::string> second = flags_.Text("exp-avg-sq-dtype");
  if (!first && !second) return;
  for (const char* flag : {"exp-avg-dtype", "exp-avg-sq-dtype"}) {
    const std::optional<std::string> dtype = flags_.Text(flag);
    const bool known = !dtype || std::any_of(std::begin(kMomentTypes), std::end(kMomentTypes),
                                             [&](const auto& row) { return row.name == *dtype; });
    if (!known) flags_.Error(flag, fmt::format("{} is not known", Quoted(*dtype)));
  }
  const std::string moments = first.value_or("fp32");
  if (moments != second.value_or("fp32")) {
    const char* flag = first ? "exp-avg-dtype" : "exp-avg-sq-dtype";
    flags_.Refuse(flag, "both moments have one format, and are kept in fp32");
  } else if (moments != "fp32") {
    Key("moments_dtype", moments);
  }
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

}  // namespace quadrille::scenario
