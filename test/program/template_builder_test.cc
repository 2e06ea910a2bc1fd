#include "sim/program/template_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/runtime/executor.h"
#include "sim/runtime/static_evaluator.h"
#include "test/program/hand_program.h"
#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

using model::Operation;
using model::OperationKind;
using model::OverlapSite;
using model::Pass;

Operation Gemm(const char* name, std::vector<std::int32_t> needs, Pass pass = Pass::kForward,
               OverlapSite site = OverlapSite::kNone) {
  Operation op;
  op.kind = OperationKind::kGemm;
  op.name = name;
  op.pass = pass;
  op.site = site;
  op.gemm = {1024, 1024, 1024, 1, model::GemmLayout::kTN, false, DataType::kBf16};
  op.flops = FlopCount(1e9);
  op.needs = std::move(needs);
  return op;
}

Operation Collective(const char* name, model::CollectiveKind kind, std::vector<std::int32_t> needs,
                     Pass pass = Pass::kForward, OverlapSite site = OverlapSite::kNone) {
  Operation op;
  op.kind = OperationKind::kCollective;
  op.name = name;
  op.pass = pass;
  op.site = site;
  op.collective = {kind, model::Axis::kTensor, Bytes(1'000'000)};
  op.needs = std::move(needs);
  return op;
}

// Builds one action on a rank with a compute and a tensor lane and runs it alone.
class Bench {
 public:
  explicit Bench(TensorOverlapTable table = {}, std::int32_t degree = 8)
      : table_(std::move(table)), kernels_(SmallKernels(compute::Fidelity::kConstant)) {
    rank_.lanes.push_back({LaneKind::kCompute, model::Axis::kTensor, -1, "compute"});
    rank_.lanes.push_back({LaneKind::kTensor, model::Axis::kTensor, -1, "tensor"});
    context_.kernels = &kernels_;
    context_.tensor_overlap = &table_;
    context_.tensor_degree = degree;
    context_.transfer_time = [this](const network::TransferShape&) { return transfer_estimate_; };
  }

  BuiltTemplate Build(const ActionBody& first, const ActionBody* second = nullptr) {
    ShapeTable table(shapes_);
    return BuildActionTemplate(context_, "action", first, second, table, rank_);
  }

  // Makes every kernel called `name` last `whole`, shared over its parts as they were cut.
  void SetKernels(Duration whole) {
    std::int64_t sum = 0;
    for (const Kernel& kernel : rank_.kernels) sum += kernel.duration.count();
    for (Kernel& kernel : rank_.kernels) {
      kernel.duration = quadrille::Scale(
          whole, static_cast<double>(kernel.duration.count()) / static_cast<double>(sum));
    }
  }

  // The duration of the action when a whole transfer takes `whole` and a part its share.
  Duration Run(Duration whole) {
    RankProgram rank = rank_;
    UseOnce(rank, static_cast<std::uint32_t>(rank.templates.size() - 1), SegmentRole::kAction);
    const Program program = HandProgram({rank}, {{{0, 1}}}, shapes_.size());
    runtime::Machine machine;
    machine.network.interference = false;
    machine.network.fidelity = network::Fidelity::kAlphaBeta;
    for (const network::TransferShape& shape : shapes_) {
      network::TransferCost cost;
      cost.alone = quadrille::Scale(whole, shape.fraction * shape.time_scale);
      machine.costs.push_back(cost);
    }
    const auto swept = runtime::EvaluateStatic(program, machine, {});
    const auto executed = runtime::Execute(program, machine, {});
    EXPECT_TRUE(swept);
    EXPECT_TRUE(executed);
    if (!swept || !executed) return Duration(-1);
    EXPECT_EQ(swept->end, executed->end);
    EXPECT_EQ(swept->fingerprint, executed->fingerprint);
    return executed->end.time_since_epoch();
  }

  [[nodiscard]] const RankProgram& rank() const { return rank_; }
  [[nodiscard]] const std::vector<network::TransferShape>& shapes() const { return shapes_; }
  TemplateContext& context() { return context_; }
  void EstimateTransfers(Duration time) { transfer_estimate_ = time; }

  // Names of the template's instructions in launch order, marks as [ and ].
  [[nodiscard]] std::vector<std::string> LaunchOrder() const {
    std::vector<std::string> names;
    const Template& body = rank_.templates.back();
    for (std::uint32_t at : body.launch_order) {
      const Instruction& instruction = body.instructions[at];
      switch (instruction.kind) {
        case InstructionKind::kBegin: names.emplace_back("["); break;
        case InstructionKind::kEnd: names.emplace_back("]"); break;
        default: names.push_back(rank_.operations[instruction.operation].name);
      }
    }
    return names;
  }

 private:
  TensorOverlapTable table_;
  compute::KernelCostModel kernels_;
  TemplateContext context_;
  RankProgram rank_;
  std::vector<network::TransferShape> shapes_;
  Duration transfer_estimate_{0};
};

TensorOverlapTable Table(OverlapSite site, Pass pass, TensorOverlapMethod method,
                         std::int32_t splits = 4) {
  TensorOverlapTable table;
  table.entries.push_back({site, pass, method, splits, 16});
  return table;
}

ActionBody Forward(const std::vector<Operation>& operations) {
  return {PassFilter::kForward, {{&operations, 0, Bytes(0), Bytes(0)}}};
}

constexpr std::int64_t kUnit = 1'000'000;  // 1 us

// Chunk times of GEMM and transfer that a pipeline can be bound by, in units.
const std::vector<std::pair<std::int64_t, std::int64_t>> kChunkTimes = {
    {1, 1}, {3, 1}, {1, 3}, {7, 5}, {5, 7}, {10, 1}, {1, 10}, {4, 4}};

TEST(TensorOverlap, ARingAllGatherTakesAsLongAsItsSoftwarePipeline) {
  // (n - 1) max(g, c) + g: the own chunk needs no transfer, every other one a hop.
  const std::vector<Operation> operations = {
      Collective("all-gather qkv", model::CollectiveKind::kAllGather, {}, Pass::kForward,
                 OverlapSite::kQkv),
      Gemm("qkv", {0}, Pass::kForward, OverlapSite::kQkv)};
  for (std::int32_t n : {2, 4, 8}) {
    for (const auto& [g, c] : kChunkTimes) {
      Bench bench(Table(OverlapSite::kQkv, Pass::kForward, TensorOverlapMethod::kRing), n);
      bench.Build(Forward(operations));
      bench.SetKernels(Duration(n * g * kUnit));
      const std::int64_t expected = (n - 1) * std::max(g, c) + g;
      EXPECT_EQ(bench.Run(Duration((n - 1) * c * kUnit)).count(), expected * kUnit)
          << n << " " << g << " " << c;
    }
  }
}

TEST(TensorOverlap, APipelinedReduceScatterTakesAsLongAsItsSoftwarePipeline) {
  // g + (n - 1) max(g, c) + c.
  const std::vector<Operation> operations = {
      Gemm("fc2", {}, Pass::kForward, OverlapSite::kFc2),
      Collective("reduce-scatter fc2", model::CollectiveKind::kReduceScatter, {0}, Pass::kForward,
                 OverlapSite::kFc2)};
  for (std::int32_t n : {2, 4, 8}) {
    for (const auto& [g, c] : kChunkTimes) {
      Bench bench(Table(OverlapSite::kFc2, Pass::kForward, TensorOverlapMethod::kPipelined, n));
      bench.Build(Forward(operations));
      bench.SetKernels(Duration(n * g * kUnit));
      const std::int64_t expected = g + (n - 1) * std::max(g, c) + c;
      EXPECT_EQ(bench.Run(Duration(n * c * kUnit)).count(), expected * kUnit)
          << n << " " << g << " " << c;
    }
  }
}

TEST(TensorOverlap, ARingReduceScatterIsCutInAsManyChunksAsRanks) {
  const std::vector<Operation> operations = {
      Gemm("fc2", {}, Pass::kForward, OverlapSite::kFc2),
      Collective("reduce-scatter fc2", model::CollectiveKind::kReduceScatter, {0}, Pass::kForward,
                 OverlapSite::kFc2)};
  Bench bench(Table(OverlapSite::kFc2, Pass::kForward, TensorOverlapMethod::kRing), 8);
  bench.Build(Forward(operations));
  bench.SetKernels(Duration(8 * kUnit));
  EXPECT_EQ(bench.Run(Duration(16 * kUnit)).count(), (1 + 7 * 2 + 2) * kUnit);
}

TEST(TensorOverlap, WithoutATableGemmAndTransferRunOneAfterTheOther) {
  const std::vector<Operation> operations = {
      Collective("all-gather qkv", model::CollectiveKind::kAllGather, {}, Pass::kForward,
                 OverlapSite::kQkv),
      Gemm("qkv", {0}, Pass::kForward, OverlapSite::kQkv),
      Collective("reduce-scatter projection", model::CollectiveKind::kReduceScatter, {1},
                 Pass::kForward, OverlapSite::kProjection)};
  Bench bench;
  bench.Build(Forward(operations));
  bench.SetKernels(Duration(5 * kUnit));
  EXPECT_EQ(bench.Run(Duration(3 * kUnit)).count(), (3 + 5 + 3) * kUnit);
}

TEST(TensorOverlap, ABulkGatherHidesBehindTheGemmThatDoesNotNeedIt) {
  // The input is gathered again for the weight gradient while the input gradient is computed.
  const std::vector<Operation> operations = {
      Collective("all-gather input", model::CollectiveKind::kAllGather, {}, Pass::kInputGradient,
                 OverlapSite::kQkv),
      Gemm("qkv input gradient", {}, Pass::kInputGradient, OverlapSite::kQkv),
      Gemm("qkv weight gradient", {0}, Pass::kWeightGradient, OverlapSite::kQkv)};
  const ActionBody body = {PassFilter::kBackward, {{&operations, 0, Bytes(0), Bytes(0)}}};
  for (std::int64_t transfer : {1, 2, 5}) {
    Bench bench(Table(OverlapSite::kQkv, Pass::kInputGradient, TensorOverlapMethod::kBulk));
    bench.Build(body);
    bench.SetKernels(Duration(4 * kUnit));
    EXPECT_EQ(bench.Run(Duration(transfer * kUnit)).count(),
              (std::max<std::int64_t>(transfer, 2) + 2) * kUnit);
  }
}

TEST(TensorOverlap, PartsOfASplitGemmAddUpToTheWholeToThePicosecond) {
  const std::vector<Operation> operations = {
      Gemm("fc2", {}, Pass::kForward, OverlapSite::kFc2),
      Collective("reduce-scatter fc2", model::CollectiveKind::kReduceScatter, {0}, Pass::kForward,
                 OverlapSite::kFc2)};
  Bench whole;
  whole.Build(Forward(operations));
  for (std::int32_t splits : {2, 3, 5, 7, 11}) {
    Bench cut(Table(OverlapSite::kFc2, Pass::kForward, TensorOverlapMethod::kPipelined, splits));
    cut.Build(Forward(operations));
    Duration sum{0};
    double flops = 0.0;
    for (const Kernel& kernel : cut.rank().kernels) {
      sum += kernel.duration;
      flops += kernel.flops.value();
    }
    EXPECT_EQ(sum, whole.rank().kernels[0].duration) << splits;
    EXPECT_DOUBLE_EQ(flops, 1e9);
    double fractions = 0.0;
    const Template& body = cut.rank().templates.back();
    for (std::uint32_t i = body.lane_begin[1]; i < body.lane_begin[2]; ++i) {
      const network::TransferShape& shape = cut.shapes()[body.instructions[i].cost];
      fractions += shape.fraction;
      EXPECT_TRUE(shape.userbuffers);
      EXPECT_EQ(shape.multiprocessors, 16);
    }
    EXPECT_NEAR(fractions, 1.0, 1e-12);
  }
}

TEST(TensorOverlap, OneListedBackwardPassStandsForBoth) {
  const std::vector<Operation> operations = {
      Gemm("fc1 weight gradient", {}, Pass::kWeightGradient, OverlapSite::kFc1),
      Collective("reduce-scatter fc1", model::CollectiveKind::kReduceScatter, {0},
                 Pass::kWeightGradient, OverlapSite::kFc1)};
  Bench bench(Table(OverlapSite::kFc1, Pass::kInputGradient, TensorOverlapMethod::kPipelined));
  bench.Build({PassFilter::kBackward, {{&operations, 0, Bytes(0), Bytes(0)}}});
  EXPECT_EQ(bench.rank().kernels.size(), 2u);
}

TEST(ActionTemplate, AnActionOfAGroupOfOneHasNoTransfers) {
  const std::vector<Operation> operations = {
      Gemm("a", {}), Collective("reduce-scatter a", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("b", {1})};
  Bench bench;
  RankProgram alone;
  alone.lanes.push_back({LaneKind::kCompute, model::Axis::kTensor, -1, "compute"});
  std::vector<network::TransferShape> shapes;
  ShapeTable table(shapes);
  (void)BuildActionTemplate(bench.context(), "action", Forward(operations), nullptr, table, alone);
  EXPECT_TRUE(shapes.empty());
  EXPECT_EQ(alone.templates.back().instructions.size(), 4u);  // begin, two kernels, end
}

TEST(ActionTemplate, AKernelWaitsOnlyForTheTransferThatItNeeds) {
  const std::vector<Operation> operations = {
      Gemm("a", {}), Collective("reduce-scatter a", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("b", {}), Gemm("c", {1})};
  Bench bench;
  bench.Build(Forward(operations));
  const Template& body = bench.rank().templates.back();
  std::vector<std::int32_t> waits;
  for (std::uint32_t i = body.lane_begin[0]; i < body.lane_begin[1]; ++i) {
    waits.push_back(body.instructions[i].wait_count);
  }
  EXPECT_EQ(waits, (std::vector<std::int32_t>{0, 0, 0, 1, 1}));  // begin, a, b, c, end
}

TEST(ActionTemplate, AtABorderTheNextPieceWaitsForTheTransfersOfTheLast) {
  const std::vector<Operation> operations = {
      Gemm("a", {}), Collective("reduce-scatter a", model::CollectiveKind::kReduceScatter, {0})};
  Bench bench;
  const BuiltTemplate built =
      bench.Build({PassFilter::kForward,
                   {{&operations, 0, Bytes(0), Bytes(0)}, {&operations, 1, Bytes(0), Bytes(0)}}});
  bench.SetKernels(Duration(4 * kUnit));
  EXPECT_EQ(bench.Run(Duration(3 * kUnit)).count(), (2 + 3 + 2 + 3) * kUnit);
  // Begin counts as one completion; each piece holds one kernel.
  EXPECT_EQ(built.piece_ends, (std::vector<std::int32_t>{2, 3}));
}

TEST(ActionTemplate, AnActionEndsWhenItsLastTransferHasArrived) {
  const std::vector<Operation> operations = {
      Gemm("a", {}), Collective("reduce-scatter a", model::CollectiveKind::kReduceScatter, {0})};
  Bench bench;
  bench.Build(Forward(operations));
  const Template& body = bench.rank().templates.back();
  const Instruction& end = body.instructions[body.lane_begin[1] - 1];
  ASSERT_EQ(end.kind, InstructionKind::kEnd);
  ASSERT_EQ(end.wait_count, 1);
  EXPECT_EQ(body.waits[end.wait_begin].lane, 1);
  EXPECT_EQ(body.waits[end.wait_begin].count, 1);
}

TEST(ActionTemplate, FiltersSelectTheirPasses) {
  const std::vector<Operation> operations = {Gemm("r", {}, Pass::kRecompute),
                                             Gemm("i", {}, Pass::kInputGradient),
                                             Gemm("w", {}, Pass::kWeightGradient)};
  const auto names = [&](PassFilter filter) {
    Bench bench;
    bench.Build({filter, {{&operations, 0, Bytes(0), Bytes(0)}}});
    return bench.LaunchOrder();
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(PassFilter::kForward), (Names{"[", "]"}));
  EXPECT_EQ(names(PassFilter::kBackward), (Names{"[", "r", "i", "w", "]"}));
  EXPECT_EQ(names(PassFilter::kBackwardInput), (Names{"[", "r", "i", "]"}));
  EXPECT_EQ(names(PassFilter::kBackwardWeight), (Names{"[", "w", "]"}));
}

TEST(FusedPair, TheOneWhoseTransferIsLateYieldsToTheOther) {
  // Each stream is kernel, transfer, kernel. While one's transfer runs the other computes; the
  // backward goes first on a tie.
  const std::vector<Operation> forward = {
      Gemm("f1", {}), Collective("f dispatch", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("f2", {1})};
  const std::vector<Operation> backward = {
      Gemm("b1", {}, Pass::kInputGradient),
      Collective("b dispatch", model::CollectiveKind::kReduceScatter, {0}, Pass::kInputGradient),
      Gemm("b2", {1}, Pass::kInputGradient)};
  Bench bench;
  bench.EstimateTransfers(Duration(100'000 * kUnit));
  const ActionBody second = {PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}};
  bench.Build(Forward(forward), &second);
  const std::vector<std::string> expected = {"[",          "b1", "f1", "f dispatch",
                                             "b dispatch", "f2", "b2", "]"};
  std::vector<std::string> order = bench.LaunchOrder();
  // Both first kernels come before both second ones, and the backward's before the forward's.
  const auto at = [&](const char* name) {
    return std::find(order.begin(), order.end(), name) - order.begin();
  };
  EXPECT_EQ(order.size(), expected.size());
  EXPECT_LT(at("b1"), at("f1"));
  EXPECT_LT(at("f1"), std::min(at("f2"), at("b2")));
  EXPECT_LT(at("b dispatch"), at("f2"));
  EXPECT_LT(at("f dispatch"), at("b2"));
}

TEST(FusedPair, ItIsShorterThanItsHalvesOneAfterTheOther) {
  const std::vector<Operation> forward = {
      Gemm("f1", {}), Collective("f dispatch", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("f2", {1})};
  const std::vector<Operation> backward = {
      Gemm("b1", {}, Pass::kInputGradient),
      Collective("b dispatch", model::CollectiveKind::kReduceScatter, {0}, Pass::kInputGradient),
      Gemm("b2", {1}, Pass::kInputGradient)};
  Bench fused;
  fused.EstimateTransfers(Duration(20 * kUnit));
  const ActionBody second = {PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}};
  fused.Build(Forward(forward), &second);
  fused.SetKernels(Duration(40 * kUnit));
  // Alone each takes 10 + 10 + 10. Together: b1, f1 while b's transfer runs, and so on.
  EXPECT_EQ(fused.Run(Duration(10 * kUnit)).count(), 40 * kUnit);
}

TEST(FusedPair, WeightGradientsThatArePutOffFillTheWaits) {
  // The forward waits for its transfer, the backward for its own: w1 and w2 run meanwhile instead
  // of holding the backward's transfer up.
  const std::vector<Operation> forward = {
      Gemm("f1", {}), Collective("f dispatch", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("f2", {1})};
  const std::vector<Operation> backward = {
      Gemm("w1", {}, Pass::kWeightGradient), Gemm("w2", {}, Pass::kWeightGradient),
      Gemm("b1", {}, Pass::kInputGradient),
      Collective("b dispatch", model::CollectiveKind::kReduceScatter, {2}, Pass::kInputGradient),
      Gemm("b2", {3}, Pass::kInputGradient)};
  const ActionBody second = {PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}};
  const auto build = [&](bool defer, Duration transfer) {
    Bench bench;
    bench.context().defer_weight_gradient = defer;
    bench.EstimateTransfers(transfer);
    bench.Build(Forward(forward), &second);
    std::vector<std::string> kernels = bench.LaunchOrder();
    std::erase_if(kernels, [](const std::string& name) { return name.size() != 2; });
    return kernels;
  };
  using Names = std::vector<std::string>;
  const Duration long_transfer(100'000 * kUnit);
  EXPECT_EQ(build(true, long_transfer), (Names{"f1", "b1", "w1", "w2", "f2", "b2"}));
  // In autograd's order they hold the backward's transfer up.
  EXPECT_EQ(build(false, long_transfer), (Names{"f1", "w1", "w2", "b1", "f2", "b2"}));
  // Nothing to wait for: they come last.
  EXPECT_EQ(build(true, Duration(0)).back(), "w2");
}

TEST(FusedPair, WeightGradientsArePutOffInPairsOnly) {
  const std::vector<Operation> backward = {Gemm("w1", {}, Pass::kWeightGradient),
                                           Gemm("b1", {}, Pass::kInputGradient)};
  Bench bench;
  bench.context().defer_weight_gradient = true;
  bench.Build({PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}});
  EXPECT_EQ(bench.LaunchOrder(), (std::vector<std::string>{"[", "w1", "b1", "]"}));
}

TEST(FusedPair, SerialPairsPutNoWeightGradientOff) {
  const std::vector<Operation> forward = {Gemm("f1", {})};
  const std::vector<Operation> backward = {Gemm("w1", {}, Pass::kWeightGradient),
                                           Gemm("b1", {}, Pass::kInputGradient)};
  const ActionBody second = {PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}};
  Bench bench;
  bench.context().defer_weight_gradient = true;
  bench.context().serial_pairs = true;
  bench.Build(Forward(forward), &second);
  EXPECT_EQ(bench.LaunchOrder(), (std::vector<std::string>{"[", "f1", "w1", "b1", "]"}));
}

TEST(FusedPair, BehindAWeightGradientThatIsPutOffThePieceStillWaitsForTheTransfersOfTheLast) {
  const std::vector<Operation> forward = {Gemm("f1", {})};
  const std::vector<Operation> last = {
      Gemm("b1", {}, Pass::kInputGradient),
      Collective("reduce-scatter", model::CollectiveKind::kReduceScatter, {0},
                 Pass::kInputGradient)};
  const std::vector<Operation> next = {Gemm("w2", {}, Pass::kWeightGradient),
                                       Gemm("b2", {}, Pass::kInputGradient)};
  const ActionBody second = {PassFilter::kBackward,
                             {{&last, 1, Bytes(0), Bytes(0)}, {&next, 0, Bytes(0), Bytes(0)}}};
  Bench bench;
  bench.context().defer_weight_gradient = true;
  bench.Build(Forward(forward), &second);
  const Template& body = bench.rank().templates.back();
  std::int32_t awaited = 0;
  for (std::uint32_t i = body.lane_begin[0]; i < body.lane_begin[1]; ++i) {
    const Instruction& instruction = body.instructions[i];
    if (instruction.kind != InstructionKind::kCompute ||
        bench.rank().operations[instruction.operation].name != "b2") {
      continue;
    }
    ASSERT_EQ(instruction.wait_count, 1);
    EXPECT_EQ(body.waits[instruction.wait_begin].lane, 1);
    awaited = body.waits[instruction.wait_begin].count;
  }
  EXPECT_EQ(awaited, 1) << "b2 waits for the reduce-scatter of the piece before";
}

TEST(FusedPair, AGivenOneLastsItsShareOfItsHalvesOneAfterTheOther) {
  const std::vector<Operation> forward = {
      Gemm("f1", {}), Collective("f dispatch", model::CollectiveKind::kReduceScatter, {0}),
      Gemm("f2", {1})};
  const std::vector<Operation> backward = {
      Gemm("b1", {}, Pass::kInputGradient),
      Collective("b dispatch", model::CollectiveKind::kReduceScatter, {0}, Pass::kInputGradient),
      Gemm("b2", {1}, Pass::kInputGradient)};
  const ActionBody second = {PassFilter::kBackward, {{&backward, 0, Bytes(0), Bytes(0)}}};
  const auto pair = [&](double scale) {
    Bench bench;
    bench.context().serial_pairs = true;
    bench.context().pair_scale = scale;
    bench.Build(Forward(forward), &second);
    return bench.Run(Duration(10 * kUnit));
  };
  Bench alone;
  alone.Build(Forward(forward));
  const Duration half = alone.Run(Duration(10 * kUnit));
  EXPECT_EQ(pair(1.0), 2 * half);
  // Each of the six operations rounds to a picosecond.
  for (const double scale : {0.5, 0.8, 1.25}) {
    EXPECT_NEAR(static_cast<double>(pair(scale).count()),
                scale * static_cast<double>((2 * half).count()), 6.0)
        << scale;
  }
}

TEST(FullySharded, ParametersAreGatheredAheadAndGradientsReducedBehind) {
  const std::vector<Operation> operations = {Gemm("a", {}, Pass::kInputGradient)};
  Bench bench;
  RankProgram rank;
  rank.lanes.push_back({LaneKind::kCompute, model::Axis::kTensor, -1, "compute"});
  rank.lanes.push_back({LaneKind::kParameterGather, model::Axis::kData, -1, "gather"});
  rank.lanes.push_back({LaneKind::kGradientReduce, model::Axis::kData, -1, "reduce"});
  std::vector<network::TransferShape> shapes;
  ShapeTable table(shapes);
  bench.context().gather_ahead = 1;
  const PieceBody piece = {&operations, 0, Bytes(100), Bytes(200)};
  (void)BuildActionTemplate(bench.context(), "B", {PassFilter::kBackward, {piece, piece, piece}},
                            nullptr, table, rank);
  const Template& body = rank.templates.back();
  EXPECT_EQ(body.lane_begin[2] - body.lane_begin[1], 3u);
  EXPECT_EQ(body.lane_begin[3] - body.lane_begin[2], 3u);
  // The second gather is posted with the first, the third only once the first piece has run.
  const auto waits_for = [&](std::uint32_t index) {
    const Instruction& gather = body.instructions[body.lane_begin[1] + index];
    return gather.wait_count == 0 ? 0 : body.waits[gather.wait_begin].count;
  };
  EXPECT_EQ(waits_for(0), 1);
  EXPECT_EQ(waits_for(1), 1);
  EXPECT_EQ(waits_for(2), 2);
}

TEST(TemplateWriter, OfSeveralWaitsOnOneLaneTheLargestCountsAndTheOwnLaneNeedsNone) {
  RankProgram rank;
  rank.lanes.resize(3);
  TemplateWriter writer(rank, Duration(5));
  Instruction instruction;
  EXPECT_EQ(writer.Emit(instruction, {{1, 2}, {1, 7}, {2, 0}, {0, 9}}), 1);
  EXPECT_EQ(writer.Emit(instruction, {}), 2);
  EXPECT_EQ(writer.launch_total(), Duration(10));
  const Template& body = rank.templates[writer.Close("t")];
  ASSERT_EQ(body.instructions[0].wait_count, 1);
  EXPECT_EQ(body.waits[0].lane, 1);
  EXPECT_EQ(body.waits[0].count, 7);
  EXPECT_EQ(body.instructions[0].launch_offset, Duration(0));
  EXPECT_EQ(body.instructions[1].launch_offset, Duration(5));
}

TEST(ShapeTable, EqualShapesShareAnIndex) {
  std::vector<network::TransferShape> shapes;
  ShapeTable table(shapes);
  network::TransferShape shape;
  shape.collective.bytes = Bytes(10);
  EXPECT_EQ(table.IndexOf(shape), 0u);
  shape.fraction = 0.5;
  EXPECT_EQ(table.IndexOf(shape), 1u);
  shape.fraction = 1.0;
  EXPECT_EQ(table.IndexOf(shape), 0u);
  shape.multiprocessors = 4;
  EXPECT_EQ(table.IndexOf(shape), 2u);
}

}  // namespace
}  // namespace quadrille::program
