#!/bin/bash
# Single node, flags in variables that are split at blanks.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=1
MASTER_ADDR=localhost
CHECKPOINT_PATH=$1
DATA_PATH=$2

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank 0 \
    --master_addr $MASTER_ADDR
"
GPT_ARGS="
    --num-layers 24
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 1024
    --max-position-embeddings 1024
    --micro-batch-size 8
    --global-batch-size 64
    --lr 0.00015
    --train-iters 500000
    --weight-decay 1e-2
    --clip-grad 1.0
    --fp16
"
DATA_ARGS="--data-path $DATA_PATH --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt
    --split 949,50,1 --tokenizer-type GPT2BPETokenizer"

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    $DATA_ARGS \
    --distributed-backend nccl \
    --save $CHECKPOINT_PATH
