#!/bin/bash
options="--tensor-model-parallel-size 8"
options+=" --pipeline-model-parallel-size 1 --sequence-parallel"
options+=" --num-layers 32 --hidden-size 6144 --ffn-hidden-size 24576 --num-attention-heads 48"
options+=" --group-query-attention --num-query-groups 8 --squared-relu"
options+=" --position-embedding-type rope --rotary-percent 0.5 --apply-layernorm-1p"
options+=" --untie-embeddings-and-output-weights --disable-bias-linear"
options+=" --seq-length 4096 --max-position-embeddings 4096"
options+=" --micro-batch-size 4 --global-batch-size 1152 --bf16"
options+=" --attention-dropout 0.0 --hidden-dropout 0.0"
options+=" --use-distributed-optimizer --vocab-size 256000"
torchrun --nproc_per_node 8 --nnodes 36 ./pretrain_gpt.py ${options}
