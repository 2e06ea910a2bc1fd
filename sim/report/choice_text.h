// The values of a scenario in words; enumerations are spelled as scenarios spell them.
#pragma once

#include <string>
#include <string_view>

#include "sim/program/run_result.h"
#include "sim/report/run_description.h"

namespace quadrille::report {

[[nodiscard]] std::string_view NameOf(Recipe recipe);                       // "fp8-current"
[[nodiscard]] std::string_view NameOf(DataType type);                       // "bf16"
[[nodiscard]] std::string_view NameOf(model::Recomputation recomputation);  // "selective"
[[nodiscard]] std::string_view NameOf(model::AttentionBackend backend);     // "cudnn"
[[nodiscard]] std::string_view NameOf(model::ContextAlgorithm algorithm);   // "ring"
[[nodiscard]] std::string_view NameOf(parallel::DataSharding sharding);     // "optimizer"
[[nodiscard]] std::string_view NameOf(compute::Fidelity fidelity);          // "analytic"
[[nodiscard]] std::string_view NameOf(network::Fidelity fidelity);          // "endpoint"
[[nodiscard]] std::string_view NameOf(model::ExpertRouting routing);        // "zipf"
[[nodiscard]] std::string_view NameOf(model::ExpertDispatch dispatch);      // "deepep"
[[nodiscard]] std::string_view NameOf(program::PointToPoint semantics);     // "posted-ahead"

// "TP 8 (sequence parallel) x PP 8 (8 virtual stages) x CP 2 x DP 8 = 1,024 GPUs", leaving out
// degrees of 1.
[[nodiscard]] std::string ParallelText(const parallel::ParallelConfig& config);

// "interleaved, 192 microbatches of 1 sequence per replica in groups of 8, global batch 1,536".
[[nodiscard]] std::string ScheduleText(const RunDescription& run);

// "bf16, gradients reduced in bf16, recompute none, attention cudnn".
[[nodiscard]] std::string PrecisionText(const RunDescription& run);

// How experts are routed and reached: "balanced, dispatch deepep in fp8"; empty for a model without
// experts.
[[nodiscard]] std::string ExpertText(const RunDescription& run);

// "gradient reduce, parameter gather (with the optimizer step), tensor parallel
// (userbuffers-h100-405b), point-to-point posted-ahead".
[[nodiscard]] std::string OverlapText(const program::OverlapOptions& overlap);

// How a fused pair is timed: "simulated", "serial" or "0.85 of serial".
[[nodiscard]] std::string PairText(const RunDescription& run);

// How layers are dealt to chunks: "even, embedding and loss counted", or Megatron's layout string.
[[nodiscard]] std::string LayoutText(const program::LayoutOptions& layout);

// The choices beside overlap and precision that decide how schedules compare: "barrier before the
// optimizer; fused pairs simulated; ...".
[[nodiscard]] std::string SwitchesText(const RunDescription& run);

// The peak that MFU and HFU divide by, named: "989 TFLOP/s, the dense bf16 peak of h100-sxm".
[[nodiscard]] std::string PeakText(const RunDescription& run, FlopsPerSecond peak);

// A state's name as a key: "exposed tensor parallel" becomes "exposed_tensor_parallel".
[[nodiscard]] std::string KeyOf(program::RankState state);

}  // namespace quadrille::report
