// How the values of enumerations are written in scenarios.
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/base/precision.h"
#include "sim/compute/kernel_cost.h"
#include "sim/metrics/published_figure.h"
#include "sim/model/execution_config.h"
#include "sim/model/layer_operations.h"
#include "sim/model/transformer_config.h"
#include "sim/network/collective_constants.h"
#include "sim/network/network_options.h"
#include "sim/parallel/parallel_config.h"
#include "sim/program/execution_options.h"
#include "sim/runtime/perturbation.h"
#include "sim/scenario/yaml_reader.h"
#include "topology/cluster_spec.h"
#include "topology/placement.h"

namespace quadrille::scenario {

inline constexpr Named<model::Activation> kActivations[] = {
    {"gelu", model::Activation::kGelu},   {"swiglu", model::Activation::kSwiGlu},
    {"geglu", model::Activation::kGeGlu}, {"squared-relu", model::Activation::kSquaredRelu},
    {"relu", model::Activation::kRelu},
};
inline constexpr Named<model::Normalization> kNormalizations[] = {
    {"layernorm", model::Normalization::kLayerNorm},
    {"rmsnorm", model::Normalization::kRmsNorm},
};
inline constexpr Named<model::PositionEmbedding> kPositions[] = {
    {"learned", model::PositionEmbedding::kLearned},
    {"rotary", model::PositionEmbedding::kRotary},
    {"alibi", model::PositionEmbedding::kAlibi},
    {"none", model::PositionEmbedding::kNone},
};
inline constexpr Named<metrics::FigureKind> kFigures[] = {
    {"step_time", metrics::FigureKind::kStepTime},
    {"tokens_per_second_per_gpu", metrics::FigureKind::kTokensPerSecondPerGpu},
    {"tflops_per_gpu_causal", metrics::FigureKind::kTflopsPerGpuCausal},
    {"tflops_per_gpu_full", metrics::FigureKind::kTflopsPerGpuFull},
    {"tflops_per_gpu_hardware", metrics::FigureKind::kTflopsPerGpuHardware},
    {"mfu_causal", metrics::FigureKind::kMfuCausal},
    {"mfu_full", metrics::FigureKind::kMfuFull},
    {"hfu", metrics::FigureKind::kHfu},
    {"gpu_hours", metrics::FigureKind::kGpuHours},
    {"flops", metrics::FigureKind::kFlops},
};
inline constexpr Named<Recipe> kRecipes[] = {
    {"fp32", Recipe::kFp32},
    {"fp16", Recipe::kFp16},
    {"bf16", Recipe::kBf16},
    {"fp8-delayed", Recipe::kFp8Delayed},
    {"fp8-current", Recipe::kFp8Current},
    {"fp8-block", Recipe::kFp8Block},
    {"mxfp8", Recipe::kMxFp8},
    {"nvfp4", Recipe::kNvFp4},
};
inline constexpr Named<DataType> kDataTypes[] = {
    {"fp32", DataType::kFp32}, {"fp16", DataType::kFp16}, {"bf16", DataType::kBf16},
    {"fp8", DataType::kFp8},   {"fp4", DataType::kFp4},
};
inline constexpr Named<DataType> kGradientTypes[] = {
    {"fp32", DataType::kFp32}, {"fp16", DataType::kFp16}, {"bf16", DataType::kBf16}};
inline constexpr Named<DataType> kGatherTypes[] = {{"fp32", DataType::kFp32},
                                                   {"fp16", DataType::kFp16},
                                                   {"bf16", DataType::kBf16},
                                                   {"fp8", DataType::kFp8}};
inline constexpr Named<DataType> kMomentTypes[] = {{"fp32", DataType::kFp32},
                                                   {"fp16", DataType::kFp16},
                                                   {"bf16", DataType::kBf16},
                                                   {"fp8", DataType::kFp8}};
inline constexpr Named<DataType> kDispatchTypes[] = {
    {"fp16", DataType::kFp16}, {"bf16", DataType::kBf16}, {"fp8", DataType::kFp8}};
inline constexpr Named<model::Recomputation> kRecomputations[] = {
    {"none", model::Recomputation::kNone},
    {"selective", model::Recomputation::kSelective},
    {"full", model::Recomputation::kFull},
};
inline constexpr Named<model::RecomputeMethod> kRecomputeMethods[] = {
    {"uniform", model::RecomputeMethod::kUniform},
    {"block", model::RecomputeMethod::kBlock},
};
inline constexpr Named<bool model::RecomputeModules::*> kRecomputeModules[] = {
    {"core_attn", &model::RecomputeModules::core_attention},
    {"layernorm", &model::RecomputeModules::layernorm},
    {"mlp", &model::RecomputeModules::mlp},
    {"mlp_act", &model::RecomputeModules::dense_activation},
    {"moe_act", &model::RecomputeModules::expert_activation},
    {"mla_up_proj", &model::RecomputeModules::latent_up_projection},
    {"moe", &model::RecomputeModules::experts},
};
inline constexpr Named<bool model::NarrowStorage::*> kNarrowStorage[] = {
    {"activation_input", &model::NarrowStorage::activation_input},
    {"attention_output", &model::NarrowStorage::attention_output},
};
inline constexpr Named<bool model::Fusions::*> kFusions[] = {
    {"bias_activation", &model::Fusions::bias_activation},
    {"bias_dropout_residual", &model::Fusions::bias_dropout_residual},
    {"rope", &model::Fusions::rope},
    {"cross_entropy", &model::Fusions::cross_entropy},
    {"gradient_accumulation", &model::Fusions::gradient_accumulation},
    {"norm_quantize", &model::Fusions::norm_quantize},
    {"activation_quantize", &model::Fusions::activation_quantize},
    {"router", &model::Fusions::router},
    {"permute", &model::Fusions::permute},
    {"softmax", &model::Fusions::softmax},
    {"both_layouts", &model::Fusions::both_layouts},
    {"expert_activation_quantize", &model::Fusions::expert_activation_quantize},
    {"router_padding", &model::Fusions::router_padding},
};
inline constexpr Named<model::ContextAlgorithm> kContextAlgorithms[] = {
    {"ring", model::ContextAlgorithm::kRing},
    {"all-gather", model::ContextAlgorithm::kAllGather},
    {"ulysses", model::ContextAlgorithm::kUlysses},
};
inline constexpr Named<model::AttentionBackend> kAttentionBackends[] = {
    {"cudnn", model::AttentionBackend::kCudnn},
    {"flash2", model::AttentionBackend::kFlash2},
    {"flash3", model::AttentionBackend::kFlash3},
    {"flash4", model::AttentionBackend::kFlash4},
    {"unfused", model::AttentionBackend::kUnfused},
    {"triton_alibi", model::AttentionBackend::kTritonAlibi},
};
inline constexpr Named<model::MemoryBoundClass> kMemoryBoundClasses[] = {
    {"elementwise", model::MemoryBoundClass::kElementwise},
    {"norm_forward", model::MemoryBoundClass::kNormForward},
    {"norm_backward", model::MemoryBoundClass::kNormBackward},
    {"activation", model::MemoryBoundClass::kActivation},
    {"rope", model::MemoryBoundClass::kRope},
    {"softmax", model::MemoryBoundClass::kSoftmax},
    {"cast", model::MemoryBoundClass::kCast},
    {"embedding", model::MemoryBoundClass::kEmbedding},
    {"cross_entropy", model::MemoryBoundClass::kCrossEntropy},
    {"router", model::MemoryBoundClass::kRouter},
    {"permute", model::MemoryBoundClass::kPermute},
    {"unpermute", model::MemoryBoundClass::kUnpermute},
    {"reduction", model::MemoryBoundClass::kReduction},
    {"optimizer", model::MemoryBoundClass::kOptimizer},
};
inline constexpr Named<model::ExpertRouting> kExpertRoutings[] = {
    {"balanced", model::ExpertRouting::kBalanced},
    {"load-factor", model::ExpertRouting::kLoadFactor},
    {"histogram", model::ExpertRouting::kHistogram},
    {"zipf", model::ExpertRouting::kZipf},
};
inline constexpr Named<model::ExpertDispatch> kExpertDispatches[] = {
    {"all-to-all", model::ExpertDispatch::kAllToAll},
    {"deepep", model::ExpertDispatch::kDeepEp},
    {"hybrid-ep", model::ExpertDispatch::kHybridEp},
    {"all-gather", model::ExpertDispatch::kAllGather},
};
inline constexpr Named<parallel::DataSharding> kShardings[] = {
    {"none", parallel::DataSharding::kNone},
    {"optimizer", parallel::DataSharding::kOptimizer},
    {"gradient", parallel::DataSharding::kGradient},
    {"full", parallel::DataSharding::kFull},
};
inline constexpr Named<schedules::PairCost> kPairCosts[] = {
    {"simulated", schedules::PairCost::kSum},  // in a replay the two streams run beside each other
    {"serial", schedules::PairCost::kSerial},
    {"given", schedules::PairCost::kGiven},  // as pair_factor says
};
inline constexpr Named<program::TensorOverlapMethod> kTensorOverlapMethods[] = {
    {"none", program::TensorOverlapMethod::kNone},
    {"bulk", program::TensorOverlapMethod::kBulk},
    {"pipelined", program::TensorOverlapMethod::kPipelined},
    {"ring", program::TensorOverlapMethod::kRing},
};
inline constexpr Named<model::OverlapSite> kOverlapSites[] = {
    {"qkv", model::OverlapSite::kQkv},
    {"projection", model::OverlapSite::kProjection},
    {"fc1", model::OverlapSite::kFc1},
    {"fc2", model::OverlapSite::kFc2},
};
inline constexpr Named<model::Pass> kOverlapPasses[] = {
    {"forward", model::Pass::kForward},
    {"input-gradient", model::Pass::kInputGradient},
    {"weight-gradient", model::Pass::kWeightGradient},
};
inline constexpr Named<program::ShardLaunch> kShardLaunches[] = {
    {"per-layer", program::ShardLaunch::kPerLayer},
    {"look-ahead", program::ShardLaunch::kLookAhead},
};
// `true` and `false` are Megatron's overlap_p2p_communication.
inline constexpr Named<program::PointToPoint> kPointToPoint[] = {
    {"eager", program::PointToPoint::kEager},
    {"blocking", program::PointToPoint::kBatchedBlocking},
    {"posted-ahead", program::PointToPoint::kPostedAhead},
    {"true", program::PointToPoint::kPostedAhead},
    {"false", program::PointToPoint::kBatchedBlocking},
};
inline constexpr Named<compute::Fidelity> kComputeFidelities[] = {
    {"constant", compute::Fidelity::kConstant}, {"roofline", compute::Fidelity::kRoofline},
    {"analytic", compute::Fidelity::kAnalytic}, {"table", compute::Fidelity::kTable},
    {"exact", compute::Fidelity::kExact},
};
inline constexpr Named<network::AllReduceAlgorithm> kAllReduceAlgorithms[] = {
    {"fastest", network::AllReduceAlgorithm::kFastest},
    {"ring", network::AllReduceAlgorithm::kRing},
    {"tree", network::AllReduceAlgorithm::kTree},
};
inline constexpr Named<network::GatherAlgorithm> kGatherAlgorithms[] = {
    {"ring", network::GatherAlgorithm::kRing},
    {"pat", network::GatherAlgorithm::kPat},
    {"fastest", network::GatherAlgorithm::kFastest},
};
inline constexpr Named<network::Fidelity> kNetworkFidelities[] = {
    {"ideal", network::Fidelity::kIdeal},       {"alpha-beta", network::Fidelity::kAlphaBeta},
    {"endpoint", network::Fidelity::kEndpoint}, {"flow", network::Fidelity::kFlow},
    {"chunk", network::Fidelity::kChunk},
};
inline constexpr Named<network::Routing> kRoutings[] = {
    {"adaptive", network::Routing::kAdaptive},
    {"ecmp", network::Routing::kEcmp},
};
inline constexpr Named<runtime::PerturbationKind> kPerturbationKinds[] = {
    {"gpu_speed", runtime::PerturbationKind::kGpuSpeed},
    {"gpu_speed_spread", runtime::PerturbationKind::kGpuSpeedSpread},
    {"kernel_jitter", runtime::PerturbationKind::kKernelJitter},
    {"nic_bandwidth", runtime::PerturbationKind::kNicBandwidth},
    {"nvlink_bandwidth", runtime::PerturbationKind::kNvlinkBandwidth},
    {"link_latency", runtime::PerturbationKind::kLinkLatency},
    {"launch_jitter", runtime::PerturbationKind::kLaunchJitter},
    {"expert_imbalance", runtime::PerturbationKind::kExpertImbalance},
    {"nic_down", runtime::PerturbationKind::kNicDown},
    {"rail_down", runtime::PerturbationKind::kRailDown},
    {"link_bandwidth", runtime::PerturbationKind::kFabricBandwidth},
    {"link_down", runtime::PerturbationKind::kFabricDown},
    {"switch_down", runtime::PerturbationKind::kSwitchDown},
    {"background_traffic", runtime::PerturbationKind::kBackgroundTraffic},
};
inline constexpr Named<runtime::FabricTier> kFabricTiers[] = {
    {"all", runtime::FabricTier::kAll},
    {"leaf-spine", runtime::FabricTier::kLeafSpine},
    {"spine-core", runtime::FabricTier::kSpineCore},
};
inline constexpr Named<topology::NvlinkFabric> kNvlinkFabrics[] = {
    {"none", topology::NvlinkFabric::kNone},
    {"switched", topology::NvlinkFabric::kSwitched},
    {"hybrid-cube-mesh", topology::NvlinkFabric::kHybridCubeMesh},
};
inline constexpr Named<topology::FabricKind> kFabricKinds[] = {
    {"none", topology::FabricKind::kNone},
    {"rail-optimized", topology::FabricKind::kRailOptimized},
    {"rack-pods", topology::FabricKind::kRackPods},
    {"dual-plane", topology::FabricKind::kDualPlane},
    {"multi-plane", topology::FabricKind::kMultiPlane},
    {"edge-list", topology::FabricKind::kEdgeList},
};
inline constexpr Named<topology::NodeOrder> kNodeOrders[] = {
    {"contiguous", topology::NodeOrder::kContiguous},
    {"strided", topology::NodeOrder::kStrided},
    {"random", topology::NodeOrder::kRandom},
    {"hosts", topology::NodeOrder::kHosts},
};
inline constexpr Named<topology::SwitchTier> kSwitchTiers[] = {
    {"leaf", topology::SwitchTier::kLeaf},
    {"spine", topology::SwitchTier::kSpine},
    {"core", topology::SwitchTier::kCore},
};

}  // namespace quadrille::scenario
