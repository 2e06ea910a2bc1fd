// A synchronous step goes at the pace of its slowest GPU, and among more GPUs there is a slower
// one.
//
// GPUs of one type differ in leakage, cooling and voltage, so that under one power limit they hold
// different clocks (Sinha et al., "Not all GPUs are created equal", arXiv 2208.11035: 8 % between
// the fastest and the slowest of a cluster in SGEMM, recalled). Tensor parallel ranks meet in every
// layer, pipeline stages in every microbatch and replicas in every step: with speeds that are
// normally distributed the step waits for the largest of as many deviations as there are GPUs.
#pragma once

#include <cstdint>

namespace quadrille::compute {

// Mean of the largest of `count` independent standard normal numbers: exact to four digits at
// powers of two up to 2^20, linear between them, the last value beyond. REQUIRES: count >= 1.
[[nodiscard]] double ExpectedLargestNormal(std::int64_t count);

// How many times as long kernels at full power take on the slowest of `gpus` GPUs as on the mean
// one, when `spread` is the standard deviation of their times. REQUIRES: gpus >= 1, spread >= 0.
[[nodiscard]] double SlowestGpuFactor(double spread, std::int64_t gpus);

}  // namespace quadrille::compute
