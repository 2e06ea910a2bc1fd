// What tells the algorithms of a collective apart: steps, ramps, and which of them is chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "test/network/transfer_test_support.h"

namespace quadrille::network {
namespace {

// Between the latency of one message and that of the calibrated ring, by the steps.
TEST(CostOf, SmallerRingsHaveFewerStepsAndFillSooner) {
  CollectiveConstants c = RingsOnly();
  c.host_latency = Duration(0);
  c.ring_bandwidth_by_ranks.clear();
  const auto latency = [&](std::int32_t ranks) {
    return Cost(CollectiveKind::kAllReduce, 1, Within(ranks), c).alone;
  };
  EXPECT_NEAR(ToSeconds(latency(8)), 40e-6, 1e-7);
  EXPECT_NEAR(ToSeconds(latency(2)), 9.5e-6 + (40e-6 - 9.5e-6) / 7, 1e-7);
  EXPECT_NEAR(ToSeconds(latency(5)), 9.5e-6 + (40e-6 - 9.5e-6) * 4 / 7, 1e-7);
  c.nvlink_send_receive.alpha = Microseconds(50);
  EXPECT_NEAR(ToSeconds(latency(2)), 40e-6, 1e-7) << "a ring is no slower for being smaller";
}

TEST(CostOf, ARingOverNodesFillsAsTheRingWithinThem) {
  const std::int64_t bytes = 134'217'728;
  const auto ramp = [&](CollectiveKind kind, const GroupPlacement& placement) {
    CollectiveConstants c = Hopper();
    c.all_reduce_algorithm = AllReduceAlgorithm::kRing;
    const Duration with = Cost(kind, bytes, placement, c).alone;
    for (Law* law : {&c.nvlink_all_gather, &c.nvlink_reduce_scatter}) {
      law->gamma_per_sqrt_megabyte = Duration(0);
    }
    return ToSeconds(with - Cost(kind, bytes, placement, c).alone) * 1e6;
  };
  const double x = std::sqrt(bytes * 1e-6 * 15 / 16);
  EXPECT_NEAR(ramp(CollectiveKind::kAllGather, Across(2, 8)), 3.2 * x, 0.1);
  EXPECT_NEAR(ramp(CollectiveKind::kReduceScatter, Across(2, 8)), 4.2 * x, 0.1);
  EXPECT_NEAR(ramp(CollectiveKind::kAllReduce, Across(2, 8)), 4.2 * x * std::sqrt(2.0), 0.1);
  EXPECT_EQ(ramp(CollectiveKind::kAllGather, Across(16, 1)), 0.0) << "no node to go through";
}

TEST(CostOf, AnAllReduceIsHeldToTheAlgorithmThatIsAskedFor) {
  CollectiveConstants c = Hopper();
  const std::int64_t large = std::int64_t{8} << 30;
  const auto seconds = [&](AllReduceAlgorithm algorithm, const GroupPlacement& placement) {
    c.all_reduce_algorithm = algorithm;
    return ToSeconds(Cost(CollectiveKind::kAllReduce, large, placement, c).alone);
  };
  // Within a node a ring moves a reduce-scatter and an all-gather, both at 370 GB/s.
  EXPECT_NEAR(seconds(AllReduceAlgorithm::kRing, Within(8)), large * 1.75 / 370e9, 1e-3);
  EXPECT_NEAR(seconds(AllReduceAlgorithm::kFastest, Within(8)), large * 1.75 / 497e9, 1e-3);
  // Over two nodes a tree sends half of what a ring does.
  const double ring = seconds(AllReduceAlgorithm::kRing, Across(2, 8));
  EXPECT_NEAR(ring, large * 1.875 / (0.96 * 400e9), 1e-3);
  EXPECT_GT(ring, 1.1 * seconds(AllReduceAlgorithm::kTree, Across(2, 8)));
  for (std::int32_t nodes : {2, 4, 16, 128}) {
    const GroupPlacement placement = Across(nodes, 8);
    EXPECT_EQ(seconds(AllReduceAlgorithm::kFastest, placement),
              std::min(seconds(AllReduceAlgorithm::kRing, placement),
                       seconds(AllReduceAlgorithm::kTree, placement)));
  }
}

// NVIDIA/nccl:src/graph/tuning.cc: 8 us + 4 us per level + 2.8 us per rank, at 0.75 of the ring.
TEST(CostOf, PatTradesBandwidthForSteps) {
  CollectiveConstants c = Hopper();
  const auto seconds = [&](GatherAlgorithm algorithm, std::int64_t bytes, std::int32_t per_node) {
    c.gather_algorithm = algorithm;
    return ToSeconds(Cost(CollectiveKind::kAllGather, bytes, Across(16, per_node), c).alone);
  };
  EXPECT_NEAR(seconds(GatherAlgorithm::kPat, 16, 1), 8e-6 + 4 * 4e-6 + 16 * 2.8e-6, 1e-7);
  EXPECT_NEAR(seconds(GatherAlgorithm::kRing, 16, 1), 8.4e-6 + 15 * 14e-6, 1e-7);
  const std::int64_t large = std::int64_t{1} << 30;
  EXPECT_NEAR(seconds(GatherAlgorithm::kPat, large, 1), large * 15.0 / 16 / (0.75 * 48e9), 1e-3);
  for (std::int64_t bytes : Sizes()) {
    EXPECT_EQ(seconds(GatherAlgorithm::kFastest, bytes, 1),
              std::min(seconds(GatherAlgorithm::kRing, bytes, 1),
                       seconds(GatherAlgorithm::kPat, bytes, 1)));
    EXPECT_EQ(seconds(GatherAlgorithm::kPat, bytes, 8), seconds(GatherAlgorithm::kRing, bytes, 8))
        << "only between single GPUs of nodes";
  }
}

}  // namespace
}  // namespace quadrille::network
