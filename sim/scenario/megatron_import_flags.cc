// Names after NVIDIA/Megatron-LM:megatron/training/arguments.py and the dataclasses that it makes
// flags of (megatron/core/transformer/transformer_config.py, model_parallel_config.py,
// distributed/distributed_data_parallel_config.py).
#include "sim/scenario/megatron_import_flags.h"

#include <algorithm>
#include <array>

namespace quadrille::scenario {
namespace {

// Beginnings of names: logging, checkpoints, data, tokenizer, learning rate, initialisation,
// evaluation, fault tolerance, profiling.
constexpr auto kIrrelevantPrefixes =
    std::to_array<std::string_view>({"lr",
                                     "min-lr",
                                     "weight-decay",
                                     "adam-",
                                     "init-method",
                                     "train-",
                                     "log-",
                                     "save",
                                     "load",
                                     "data-",
                                     "split",
                                     "tokenizer",
                                     "vocab-file",
                                     "merge-file",
                                     "eval-",
                                     "seed",
                                     "tensorboard",
                                     "wandb",
                                     "distributed-backend",
                                     "distributed-timeout",
                                     "exit-",
                                     "num-workers",
                                     "mock-data",
                                     "rotary-",
                                     "use-checkpoint",
                                     "ckpt-",
                                     "auto-detect-ckpt",
                                     "manual-gc",
                                     "profile",
                                     "timing-",
                                     "use-mcore-models",
                                     "rampup-batch",
                                     "override-opt",
                                     "finetune",
                                     "initial-loss-scale",
                                     "loss-scale",
                                     "min-loss-scale",
                                     "hysteresis",
                                     "check-for-nan",
                                     "dataloader",
                                     "reset-",
                                     "eod-mask",
                                     "create-attention-mask",
                                     "nccl-",
                                     "use-pytorch-profiler",
                                     "dist-ckpt",
                                     "async-save",
                                     "use-dist-ckpt",
                                     "use-persistent-ckpt",
                                     "max-position-embeddings",
                                     "position-embedding",
                                     "norm-epsilon",
                                     "apply-layernorm-1p",
                                     "attention-softmax-in-fp32",
                                     "apply-query-key-layer-scaling",
                                     "moe-aux-loss",
                                     "moe-z-loss",
                                     "moe-router-dtype",
                                     "moe-router-load-balancing",
                                     "moe-router-score",
                                     "moe-router-bias-update",
                                     "moe-router-topk-scaling",
                                     "moe-router-pre-softmax",
                                     "mtp-loss-scaling",
                                     "mscale",
                                     "te-rng"});

constexpr auto kIrrelevantNames =
    std::to_array<std::string_view>({"clip-grad",
                                     "start-weight-decay",
                                     "end-weight-decay",
                                     "iterations-to-skip",
                                     "non-persistent-save-interval",
                                     "hidden-dropout",
                                     "attention-dropout",
                                     "bf16",
                                     "use-legacy-models",
                                     "legacy-tokenizer",
                                     "no-one-logger",
                                     "enable-one-logger",
                                     "local-rank",
                                     "inference-max-seq-length",
                                     "no-check-for-nan-in-loss-and-grad",
                                     "fp8-amax-history-len",
                                     "fp8-amax-compute-algo",
                                     "fp8-margin",
                                     "fp8-interval",
                                     "rope-type",
                                     "rope-scaling",
                                     "use-rope-scaling",
                                     "beta-fast",
                                     "beta-slow",
                                     "original-max-position-embeddings",
                                     "moe-router-enable-expert-bias",
                                     "moe-router-force-load-balancing",
                                     "moe-use-legacy-grouped-gemm",
                                     "moe-token-drop-policy",
                                     "cross-entropy-fusion-impl",
                                     "sharp-enabled-group",
                                     "high-priority-stream-groups",
                                     "use-turing",
                                     "disable-straggler-on-startup",
                                     "empty-unused-memory-level",
                                     "calculate-per-token-loss",
                                     "decoupled-lr",
                                     "decoupled-min-lr",
                                     "tiktoken-pattern",
                                     "mmap-bin-files"});

struct Unsupported {
  std::string_view name;
  std::string_view instead;
};
constexpr std::array kUnsupported = {
    Unsupported{"optimizer-cpu-offload",
                "the optimizer stays on the GPU; parallel.zero: 1 shards its states"},
    Unsupported{"optimizer-offload-fraction", "the optimizer stays on the GPU"},
    Unsupported{"main-params-dtype", "master weights are kept in fp32"},
    Unsupported{"main-grads-dtype", "main gradients follow grad-reduce-in-bf16"},
    Unsupported{"cpu-offloading",
                "activations stay on the GPU; training.recompute saves their memory"},
    Unsupported{"cpu-offloading-num-layers", "activations stay on the GPU"},
    Unsupported{"fine-grained-activation-offloading", "activations stay on the GPU"},
    Unsupported{"hierarchical-context-parallel-sizes", "context parallelism has one level"},
    Unsupported{"first-last-layers-bf16", "all layers have one precision"},
    Unsupported{"num-layers-at-start-in-bf16", "all layers have one precision"},
    Unsupported{"num-layers-at-end-in-bf16", "all layers have one precision"},
    Unsupported{"fp8-wgrad", "weight gradients have the precision of the other GEMMs"},
    Unsupported{"distribute-saved-activations",
                "stored inputs are divided over TP with sequence parallelism alone"},
    Unsupported{"deterministic-mode", "kernels are the usual ones"},
    Unsupported{"use-sharp", "GPUs reduce, not switches"},
    Unsupported{"hybrid-override-pattern", "all layers are attention layers"},
    Unsupported{"hybrid-attention-ratio", "all layers are attention layers"},
    Unsupported{"is-hybrid-model", "all layers are attention layers"},
    Unsupported{"mamba-state-dim", "all layers are attention layers"},
    Unsupported{"spec", "layers are the standard ones"},
    Unsupported{"heterogeneous-layers-config-path", "all layers are alike"},
    Unsupported{"encoder-num-layers", "there is no encoder"},
    Unsupported{"decoder-num-layers", "the decoder has num-layers layers"},
    Unsupported{"encoder-tensor-model-parallel-size", "there is no encoder"},
    Unsupported{"encoder-pipeline-model-parallel-size", "there is no encoder"},
    Unsupported{"standalone-embedding-stage",
                "the embedding is on the first stage with its layers"},
    Unsupported{"pipeline-model-parallel-split-rank", "there is no encoder"},
    Unsupported{"moe-expert-rank-capacity-factor", "experts have a capacity of their own only"},
    Unsupported{"moe-layer-recompute", "use recompute-modules moe"},
    Unsupported{"moe-latent-size", "experts work on the full hidden size"},
    Unsupported{"experimental-attention-variant", "attention is full attention"},
    Unsupported{"ddp-num-buckets", "buckets are counted by their size"},
    Unsupported{"align-param-gather", "stages gather parameters on their own"},
    Unsupported{"align-grad-reduce", "stages reduce gradients on their own"},
    Unsupported{"overlap-p2p-communication-warmup-flush", "warm-up and flush overlap as the rest"},
    Unsupported{"overlap-dispatch-backward-with-experts-wgrad", "use delay-wgrad-compute"},
    Unsupported{"reuse-grad-buf-for-mxfp8-param-ag", "gradient and gather buffers are separate"},
    Unsupported{"defer-embedding-wgrad-compute", "the head's weight gradient runs with the rest"},
    Unsupported{"batch-invariant-mode", "kernels are the usual ones"},
    Unsupported{"sequence-packing", "every sequence has the full length"},
    Unsupported{"lora-rank", "all weights are trained"},
};

}  // namespace

MegatronFlagVerdict JudgeMegatronFlag(std::string_view name) {
  for (std::string_view form : {"no-", "disable-"}) {
    const bool exact =
        std::find(kIrrelevantNames.begin(), kIrrelevantNames.end(), name) != kIrrelevantNames.end();
    if (!exact && name.substr(0, form.size()) == form) name.remove_prefix(form.size());
  }
  for (const Unsupported& row : kUnsupported) {
    if (row.name == name) return {MegatronFlagClass::kUnsupported, row.instead};
  }
  if (std::find(kIrrelevantNames.begin(), kIrrelevantNames.end(), name) != kIrrelevantNames.end()) {
    return {MegatronFlagClass::kIrrelevant, ""};
  }
  for (std::string_view prefix : kIrrelevantPrefixes) {
    if (name.substr(0, prefix.size()) == prefix) return {MegatronFlagClass::kIrrelevant, ""};
  }
  return {MegatronFlagClass::kUnknown, ""};
}

}  // namespace quadrille::scenario
