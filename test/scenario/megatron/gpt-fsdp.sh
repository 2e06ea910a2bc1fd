torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --swiglu \
  --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
  --seq-length 4096 --micro-batch-size 1 --vocab-size 32000 --bf16 \
  --untie-embeddings-and-output-weights --hidden-dropout 0.0 --attention-dropout 0.0 \
  --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params \
  --no-gradient-accumulation-fusion --ckpt-format fsdp_dtensor --optimizer-cpu-offload \
  --some-new-flag 3
