#!/bin/bash
# The job as one quoted string that a scheduler runs.
options=" \
    --tensor-model-parallel-size 8 \
    --pipeline-model-parallel-size 16 \
    --num-layers-per-virtual-pipeline-stage 2 \
    --sequence-parallel \
    --recompute-activations \
    --num-layers 96 \
    --hidden-size 12288 \
    --num-attention-heads 96 \
    --seq-length 2048 \
    --max-position-embeddings 2048 \
    --micro-batch-size 1 \
    --global-batch-size 1536 \
    --tokenizer-type GPT2BPETokenizer \
    --lr 6.0e-5 --min-lr 6.0e-6 \
    --use-distributed-optimizer \
    --fp16 "
run_cmd="python -u ${DIR}/pretrain_gpt.py $@ ${options}"
srun -l --container-image "nvcr.io/nvidia/pytorch:24.01-py3" sh -c "${run_cmd}"
