#!/usr/bin/env bash
set -euo pipefail
TP=${TP:-1}; EP=${EP:-8}; PP=1
ARGS=(
  --tensor-model-parallel-size "$TP" --pipeline-model-parallel-size "$PP"
  --expert-model-parallel-size "$EP"
  --num-layers 48 --hidden-size 2048 --ffn-hidden-size 6144 --num-attention-heads 32
  --group-query-attention --num-query-groups 4 --kv-channels 128 --qk-layernorm
  --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 768
  --moe-token-dispatcher-type alltoall --moe-grouped-gemm
  --swiglu --normalization RMSNorm --position-embedding-type rope --rotary-base 1000000
  --disable-bias-linear --untie-embeddings-and-output-weights
  --seq-length 4096 --max-position-embeddings 40960 --vocab-size 151936
  --micro-batch-size 1 --global-batch-size 512 --bf16
  --hidden-dropout 0 --attention-dropout 0
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
)
function announce {
  echo "starting"
}
for rank in 0 1; do
  echo $rank
done
python -m torch.distributed.run --nproc_per_node=8 --nnodes=2 pretrain_gpt.py \
  "${ARGS[@]}" 2>&1
