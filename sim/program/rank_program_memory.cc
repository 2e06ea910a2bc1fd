// What a rank holds through the whole step: weights, gradients, optimizer states, buffers.
//
// Weights are kept as the recipe trains them: in 16 bits, or whole in fp32. Under a narrow recipe
// the GEMMs read copies that are cast once a step and live through it, one for each direction in
// which they are read; where the parameters are gathered in that format, the copies are all there
// is (Megatron's fp8-param-gather, Transformer Engine's primary FP8 weights).
//
// Sharded weights are gathered a piece at a time: the piece that runs and those gathered ahead of
// it. Sharded gradients need room for the piece whose backward runs and for the one being reduced
// (pytorch/pytorch:torch/distributed/fsdp/_fully_shard).
#include <algorithm>
#include <set>
#include <string_view>

#include "sim/program/rank_program_builder.h"

namespace quadrille::program {
namespace {

using model::Axis;
using parallel::DataSharding;

// What CUDA, cuBLAS and PyTorch take before the first tensor. A guess: nvidia-smi shows 0.4 to 0.6
// GB for an idle PyTorch process.
constexpr Bytes kContext{500'000'000};

// NCCL's receive buffers of one channel of one connection: 4 MiB for the Simple protocol, 4.7 MiB
// for LL128 and 0.5 MiB for LL (NVIDIA/nccl:src/init.cc, computeBuffSizes; recalled). Rings alone
// are counted; trees connect when they are first used.
constexpr Bytes kChannelBuffers{9'633'792};

bool ReadsBothLayouts(const topology::GpuSpec& gpu, Recipe recipe) {
  // Hopper's FP8 GEMM reads one layout alone, so that the other direction needs a transposed copy;
  // block formats are scaled along the direction in which they are read.
  const bool per_tensor = recipe == Recipe::kFp8Delayed || recipe == Recipe::kFp8Current;
  return !(per_tensor && gpu.architecture == "blackwell");
}

}  // namespace

double RankProgramBuilder::WeightBytes() const {
  return input_.execution.recipe == Recipe::kFp32 ? 4.0 : 2.0;
}

// An fp32 master of 16-bit weights, and two moments. fp32 weights are their own master.
double RankProgramBuilder::OptimizerStateBytes() const {
  const double master = input_.execution.recipe == Recipe::kFp32 ? 0.0 : 4.0;
  return master + 2.0 * BytesPerElement(input_.optimizer.moments_dtype);
}

void RankProgramBuilder::AddWeightMemory() {
  model::PieceParameters wide = AllParameters();
  model::PieceParameters narrow;
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    for (const model::Piece& piece : PiecesOf(ChunkId(c))) {
      const auto [dense, expert] = model::NarrowParameters(input_.model, input_.execution, piece);
      narrow.dense += dense;
      narrow.expert += expert;
    }
  }
  const bool sharded = input_.ranks.config().sharding == DataSharding::kFull;
  const auto add = [&](const char* component, const model::PieceParameters& count, double bytes) {
    const double dense_shards = sharded ? GroupSize(Axis::kData) : 1.0;
    const double expert_shards = sharded ? GroupSize(Axis::kExpertData) : 1.0;
    program_.static_memory.push_back({component, BytesOf(count.dense, bytes / dense_shards) +
                                                     BytesOf(count.expert, bytes / expert_shards)});
  };
  const bool any_narrow = (narrow.dense + narrow.expert).value() > 0;
  // Inference keeps no weight in a format that nothing reads.
  const bool only_narrow =
      any_narrow && (input_.execution.forward_only ||
                     BytesPerElement(input_.optimizer.parameter_gather_dtype) < WeightBytes());
  if (only_narrow) {
    wide.dense -= narrow.dense;
    wide.expert -= narrow.expert;
  }
  add("weights", wide, WeightBytes());
  // Sharded weights are cast after they are gathered, a piece at a time.
  if (!any_narrow || (sharded && !only_narrow)) return;
  const Recipe recipe = input_.execution.recipe;
  const bool both =
      !input_.execution.forward_only && ReadsBothLayouts(input_.kernels.gpu(), recipe);
  add("narrow weights", narrow, model::NarrowBytesPerParameter(recipe) * (both ? 2.0 : 1.0));
}

// The forward reads one layout of the cast weights, the input gradient the other; a backward that
// recomputes reads both where they differ.
Bytes RankProgramBuilder::GatheredCastBytes(const model::Piece& piece, bool backward,
                                            bool recomputes) const {
  if (BytesPerElement(input_.optimizer.parameter_gather_dtype) < WeightBytes()) return Bytes(0);
  const model::PieceParameters weights =
      model::NarrowParameters(input_.model, input_.execution, piece);
  const Recipe recipe = input_.execution.recipe;
  const model::ExecutionConfig& execution = input_.execution;
  const bool forward_again =
      (recomputes && execution.recomputation == model::Recomputation::kFull) ||
      (execution.recomputation == model::Recomputation::kSelective &&
       (execution.recompute_modules.mlp || execution.recompute_modules.experts));
  const bool both = backward && forward_again && ReadsBothLayouts(input_.kernels.gpu(), recipe);
  return BytesOf(weights.dense + weights.expert,
                 WeightBytes() + model::NarrowBytesPerParameter(recipe) * (both ? 2.0 : 1.0));
}

// Whole weights and gradients of the pieces that are at work while the rest is sharded.
void RankProgramBuilder::AddShardingBuffers() {
  const DataSharding sharding = input_.ranks.config().sharding;
  // Look-ahead allocates chunks when they are gathered (rank_program_unsharding.cc).
  const bool weights = sharding == DataSharding::kFull && !GathersAhead();
  const bool gradients =
      (weights || sharding == DataSharding::kGradient) && !input_.execution.forward_only;
  if (!weights && !gradients) return;
  const double weight = BytesPerElement(input_.optimizer.parameter_gather_dtype);
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const auto ahead = static_cast<std::size_t>(context_.gather_ahead);
  Bytes all_gathered{0};
  Bytes gathered{0};
  Bytes reducing{0};
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const ChunkParameters chunk = ParametersOf(ChunkId(c));
    const std::vector<model::Piece> pieces = PiecesOf(ChunkId(c));
    std::vector<ParameterCount> whole;  // of pieces whose group shards them
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ParameterCount count{0};
      if (GroupSize(Axis::kData) > 1) count += chunk.pieces[i];
      if (GroupSize(Axis::kExpertData) > 1) count += pieces_.Parameters(pieces[i]).expert;
      whole.push_back(count);
      all_gathered += BytesOf(count, weight);
    }
    const auto window = [&](std::size_t begin, std::size_t length, double bytes) {
      ParameterCount sum{0};
      for (std::size_t i = begin; i < std::min(begin + length, whole.size()); ++i) sum += whole[i];
      return BytesOf(sum, bytes);
    };
    for (std::size_t i = 0; i < whole.size(); ++i) {
      gathered = std::max(gathered, window(i, 1 + ahead, weight));
      reducing = std::max(reducing, window(i, context_.wait_for_reduce ? 1 : 2, gradient));
    }
  }
  if (weights) {
    program_.static_memory.push_back(
        {"gathered weights", KeepsGatheredWeights() ? all_gathered : gathered});
  }
  if (gradients) program_.static_memory.push_back({"gradients to reduce", reducing});
}

// Lanes of one group share its communicator: Megatron and PyTorch's FSDP gather and reduce over the
// same process group (NVIDIA/Megatron-LM:megatron/core/distributed/param_and_grad_buffer.py;
// pytorch/pytorch:torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
void RankProgramBuilder::AddMemoryOutsideTheAllocator() {
  std::int64_t channels = 0;
  std::set<Axis> communicators;
  for (const Lane& lane : program_.lanes) {
    switch (lane.kind) {
      case LaneKind::kCompute:
      case LaneKind::kSendForward:
      case LaneKind::kSendBackward: break;
      case LaneKind::kReceiveForward:
      case LaneKind::kReceiveBackward: channels += input_.exchange_channels; break;
      default:
        if (communicators.insert(lane.axis).second) channels += input_.collective_channels;
        break;
    }
  }
  program_.static_memory.push_back({std::string(kContextMemory), kContext});
  program_.static_memory.push_back(
      {std::string(kCommunicationMemory), Bytes(channels * kChannelBuffers.value())});
}

void RankProgramBuilder::AddGradientPlaceholders() {
  std::vector<model::Piece> pieces;
  for (std::int32_t c = 0; c < input_.schedule.virtual_stages; ++c) {
    const std::vector<model::Piece> chunk = PiecesOf(ChunkId(c));
    pieces.insert(pieces.end(), chunk.begin(), chunk.end());
  }
  const ParameterCount weights =
      model::DistinctWeights(input_.model, input_.execution.sharding, pieces);
  program_.static_memory.push_back({"gradient placeholders", BytesOf(weights, WeightBytes())});
}

void RankProgramBuilder::AddStaticMemory() {
  const auto parameters = AllParameters();
  const DataSharding sharding = input_.ranks.config().sharding;
  const auto add = [&](const char* component, double per_parameter, bool sharded) {
    const double d = sharded ? GroupSize(Axis::kData) : 1.0;
    const double e = sharded ? GroupSize(Axis::kExpertData) : 1.0;
    program_.static_memory.push_back(
        {component, BytesOf(parameters.dense, per_parameter / d) +
                        BytesOf(parameters.expert, per_parameter / e)});
  };
  AddWeightMemory();
  if (!input_.execution.forward_only) {
    add("gradients", BytesPerElement(input_.optimizer.gradient_dtype), KeepsGradientShards());
    if (input_.optimizer.keeps_parameter_gradients) {
      add("gradients of parameters", WeightBytes(), sharding == DataSharding::kFull);
    }
    if (input_.execution.gradient_placeholders && input_.execution.fusions.gradient_accumulation) {
      AddGradientPlaceholders();
    }
    add("optimizer states", OptimizerStateBytes(), sharding != DataSharding::kNone);
  }
  AddShardingBuffers();
  AddMemoryOutsideTheAllocator();
}

}  // namespace quadrille::program
