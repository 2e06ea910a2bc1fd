#!/bin/bash
# Conditions on arguments with defaults, as in Megatron-LM's examples.
CHECKPOINT_PATH=${1:-"checkpoints/llama3_8b_fp8"}
TOKENIZER=${2:-"MOCK"}
DATA_ARG=${3:-"MOCK"}
GPUS_PER_NODE=8
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DTYPE="fp8"
TP_SIZE=1
CP_SIZE=1

DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES)

MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --kv-channels 128
    --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope
    --attention-dropout 0.0 --hidden-dropout 0.0 --swiglu --normalization RMSNorm
    --untie-embeddings-and-output-weights --disable-bias-linear
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 128 --bf16 --grad-reduce-in-bf16)

DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    DTYPE_ARGS+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
        "--fp8-param-gather"
    )
fi

# As many GPUs as the degrees ask for.
if [ $((WORLD_SIZE % (TP_SIZE * CP_SIZE))) -ne 0 ]; then
    echo "the GPUs do not divide"
    exit 1
elif (( WORLD_SIZE > 8 )); then
    TRAINING_ARGS+=(--no-overlap-grad-reduce)
else
    TRAINING_ARGS+=(--overlap-grad-reduce --overlap-param-gather)
fi

DATA_ARGS_LIST=()
if [[ "$TOKENIZER" == "MOCK" ]] || [[ "$DATA_ARG" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
    DATA_ARGS_LIST+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256")
else
    DATA_ARGS_LIST+=("--data-path $DATA_ARG" "--vocab-size 32000")
fi

case "$DTYPE" in
    bf16) ATTENTION=unfused ;;
    fp8|mxfp8) ATTENTION=flash ;;
    *) ATTENTION=auto ;;
esac

# Known only where it runs: neither changes a step, and one does.
if [ -n "${WANDB_API_KEY}" ]; then
    DATA_ARGS_LIST+=(--wandb-project llama)
fi
if [ ! -f "pretrain_gpt.py" ]; then
    echo "missing"
    exit 1
fi
if [[ -n "$RECOMPUTE" ]]; then
    TRAINING_ARGS+=(--recompute-activations)
fi

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${DTYPE_ARGS[@]} ${DATA_ARGS_LIST[@]} \
    --tensor-model-parallel-size $TP_SIZE --context-parallel-size $CP_SIZE \
    --attention-backend $ATTENTION --use-distributed-optimizer --save "$CHECKPOINT_PATH"
