#include "sim/network/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "test/network/transfer_test_support.h"

namespace quadrille::network {
namespace {

void ForAll(const std::function<void(CollectiveKind, const GroupPlacement&,
                                     const CollectiveConstants&)>& check) {
  for (const CollectiveConstants& constants : {Hopper(), RingsOnly()}) {
    for (CollectiveKind kind : kKinds) {
      for (const GroupPlacement& placement : Placements()) {
        SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << " ranks "
                                          << placement.ranks << " nodes " << placement.nodes);
        check(kind, placement, constants);
      }
    }
  }
}

TEST(BusFactor, HasTheClosedFormsOfNcclTests) {
  for (std::int32_t n = 2; n <= 1024; ++n) {
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllReduce, n), 2.0 * (n - 1) / n);
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllGather, n), (n - 1.0) / n);
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kReduceScatter, n), (n - 1.0) / n);
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllToAll, n), (n - 1.0) / n);
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kSendReceive, n), 1.0);
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kBroadcast, n), 1.0);
  }
  for (CollectiveKind kind : kKinds) EXPECT_EQ(BusFactor(kind, 1), 0.0);
}

TEST(CostOf, AGroupOfOneCostsNothing) {
  for (CollectiveKind kind : kKinds) {
    const TransferCost cost = Cost(kind, 1 << 20, Within(1));
    EXPECT_EQ(cost.alone, Duration(0));
    EXPECT_EQ(cost.work, Bytes(0));
    EXPECT_EQ(cost.multiprocessors, 0);
  }
}

TEST(CostOf, NothingToMoveCostsNothing) {
  for (CollectiveKind kind : kKinds) EXPECT_EQ(Cost(kind, 0, Within(8)).alone, Duration(0));
}

TEST(CostOf, TwoRanksOfANodeMoveHalfTheBufferOfAnAllGather) {
  const TransferCost cost = Cost(CollectiveKind::kAllGather, 1 << 30, Within(2));
  EXPECT_EQ(cost.work, Bytes(1 << 29));
  const double alpha = 9.3 + (16.7 - 9.3) / 7.0;  // one step of seven
  const double us = alpha + 3.2 / 7.0 * std::sqrt((1 << 29) * 1e-6) + (1 << 29) / 370e3;
  EXPECT_NEAR(ToSeconds(cost.alone) * 1e6, us, 0.01);
}

TEST(CostOf, TheLawOfANodeIsAlphaPlusRampPlusWire) {
  const std::int64_t bytes = 134'217'728;
  const double x = 2.0 * 7 / 8 * static_cast<double>(bytes);
  const double us = 25.5 + 6.9 * std::sqrt(x * 1e-6) + x / 497e3;
  EXPECT_NEAR(ToSeconds(Cost(CollectiveKind::kAllReduce, bytes, Within(8)).alone) * 1e6, us, 0.01);
  // NVIDIA/dgxc-benchmarking and Azure/AI-benchmarking-guide: 586 us for this size on 8 H100.
  EXPECT_NEAR(us, 586, 0.04 * 586);
}

TEST(CostOf, AloneIsLatencyPlusWorkOverCap) {
  ForAll([](CollectiveKind kind, const GroupPlacement& placement,
            const CollectiveConstants& constants) {
    for (std::int64_t bytes : Sizes()) {
      const TransferCost cost = Cost(kind, bytes, placement, constants);
      EXPECT_EQ(cost.alone, cost.latency + cost.work / cost.cap) << bytes;
      EXPECT_GE(cost.latency, Duration(0)) << bytes;
    }
  });
}

TEST(CostOf, NeverFallsWhenTheBytesGrow) {
  ForAll([](CollectiveKind kind, const GroupPlacement& placement,
            const CollectiveConstants& constants) {
    Duration before{0};
    for (std::int64_t bytes : Sizes()) {
      const Duration alone = Cost(kind, bytes, placement, constants).alone;
      // The rate grid of 1 KiB/s may cost two algorithms differently by 1e-7 of their time.
      EXPECT_GE(alone.count() + alone.count() / 1'000'000, before.count()) << bytes;
      before = alone;
    }
  });
}

TEST(CostOf, IdealIsALowerBoundAndHasNoLatency) {
  ForAll([](CollectiveKind kind, const GroupPlacement& placement,
            const CollectiveConstants& constants) {
    for (std::int64_t bytes : Sizes()) {
      const TransferCost ideal = Cost(kind, bytes, placement, constants, Fidelity::kIdeal);
      EXPECT_EQ(ideal.latency, Duration(0));
      EXPECT_LE(ideal.alone, Cost(kind, bytes, placement, constants).alone) << bytes;
    }
  });
}

TEST(CostOf, NoPortCarriesMoreThanItsCapacity) {
  ForAll([](CollectiveKind kind, const GroupPlacement& placement,
            const CollectiveConstants& constants) {
    for (std::int64_t bytes : Sizes()) {
      const TransferCost cost = Cost(kind, bytes, placement, constants);
      EXPECT_LE(cost.cap.value() * cost.nvlink_load, kPorts.nvlink.value() * (1 + 1e-12));
      EXPECT_LE(cost.cap.value() * cost.nic_load, kPorts.nic.value() * (1 + 1e-12));
    }
  });
}

// Seconds that the narrowest resource needs for the bytes that must pass it whatever the algorithm.
double LeastSeconds(CollectiveKind kind, double bytes, const GroupPlacement& p, bool nvls) {
  const double n = p.ranks;
  const double g = p.ranks_per_node;
  const double nodes = p.nodes;
  const double nics = g * kPorts.nic.value();
  const double nvlink = kPorts.nvlink.value();
  double out_of_node = 0.0;  // bytes that leave a domain
  double out_of_gpu = 0.0;   // bytes that leave a GPU over NVLink
  switch (kind) {
    case CollectiveKind::kAllReduce:
      out_of_node = 2.0 * bytes * (nodes - 1) / nodes;
      // Without reductions in the switch a domain of g is itself an all-reduce of g.
      out_of_gpu = g == 1 ? 0.0 : nvls && g > 4 ? bytes : 2.0 * bytes * (g - 1) / g;
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      out_of_node = bytes * (nodes - 1) / nodes;
      out_of_gpu = g == 1 ? 0.0 : bytes * (g - 1) / n;  // at least its own shard to each neighbour
      break;
    case CollectiveKind::kAllToAll:
      out_of_node = bytes / n * g * (n - g) / n;
      out_of_gpu = bytes * (g - 1) / n;
      break;
    case CollectiveKind::kSendReceive: return bytes / (nodes == 1 ? nvlink : kPorts.nic.value());
    case CollectiveKind::kBroadcast:
      out_of_node = nodes == 1 ? 0.0 : bytes;
      out_of_gpu = g == 1 ? 0.0 : bytes;
      break;
  }
  return std::max(out_of_node / nics, out_of_gpu / nvlink);
}

TEST(CostOf, NoCollectiveBeatsTheBandwidthThatItNeeds) {
  ForAll([](CollectiveKind kind, const GroupPlacement& placement,
            const CollectiveConstants& constants) {
    const bool nvls = constants.nvlink_all_reduce.bandwidth.value() > 400e9;
    for (std::int64_t bytes : Sizes()) {
      for (Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kAlphaBeta}) {
        const double least = LeastSeconds(kind, static_cast<double>(bytes), placement, nvls);
        // A byte of rounding in X.
        EXPECT_GE(ToSeconds(Cost(kind, bytes, placement, constants, fidelity).alone),
                  least * (1 - 1e-9) - 1.0 / kPorts.nic.value())
            << bytes;
      }
    }
  });
}

TEST(CostOf, MoreBandwidthNeverSlowsATransfer) {
  const PortCapacities wide{BytesPerSecond(900e9), BytesPerSecond(100e9)};
  ForAll([&](CollectiveKind kind, const GroupPlacement& placement,
             const CollectiveConstants& constants) {
    for (std::int64_t bytes : Sizes()) {
      const TransferShape shape = Shape(kind, bytes);
      for (Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kAlphaBeta}) {
        const Duration fast = CostOf(shape, placement, constants, wide, fidelity).alone;
        const Duration slow = CostOf(shape, placement, constants, kPorts, fidelity).alone;
        EXPECT_LE(fast.count(), slow.count()) << bytes;
      }
    }
  });
}

TEST(CostOf, ALittleMoreBandwidthNeverSlowsATransferEither) {
  // By steps below and above the grid of rates, on both ports, across every choice of algorithm.
  for (double factor : {1.0, 1.0000001, 1.001, 1.1}) {
    ForAll([&](CollectiveKind kind, const GroupPlacement& placement,
               const CollectiveConstants& constants) {
      for (std::int64_t bytes :
           {std::int64_t{12}, std::int64_t{3'000'001}, std::int64_t{1} << 31}) {
        for (double nic : {0.4e9, 7.77e9, 49.3e9, 120e9}) {
          const PortCapacities narrow{BytesPerSecond(9 * nic), BytesPerSecond(nic)};
          const PortCapacities wider{BytesPerSecond(9 * nic * factor),
                                     BytesPerSecond(nic * factor)};
          const TransferShape shape = Shape(kind, bytes);
          for (Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kAlphaBeta}) {
            EXPECT_LE(CostOf(shape, placement, constants, wider, fidelity).alone,
                      CostOf(shape, placement, constants, narrow, fidelity).alone)
                << bytes << ' ' << nic << ' ' << factor;
          }
        }
      }
    });
  }
}

TEST(CostOf, TwoNodesReduceFasterThanTheirNicsWouldAsARing) {
  // A tree of two nodes sends each byte once, a ring nearly twice: published bus bandwidths of two
  // H100 nodes are 468 to 487 GB/s where the NICs sum to 400.
  const std::int64_t bytes = std::int64_t{1} << 33;
  const TransferCost cost = Cost(CollectiveKind::kAllReduce, bytes, Across(2, 8));
  const double bus = static_cast<double>(cost.work.value()) / ToSeconds(cost.alone) * 1e-9;
  EXPECT_GT(bus, 455);
  EXPECT_LT(bus, 490);
}

TEST(CostOf, TheNicsOfATreeHideHalfTheNodesRampAndDoNotSlowItsNvlink) {
  // Two B200 nodes: 870 GB/s inside, 8 x 50 GB/s out, of which a tree sends each byte once. While
  // the node is the slower stage its law alone counts, and the wider its NVLink, the sooner.
  CollectiveConstants wide = Hopper();
  wide.nvlink_all_reduce = MakeLaw(27, 870, 9);
  wide.tree_nic_efficiency = 0.96;
  const double factor = BusFactor(CollectiveKind::kAllReduce, 16);
  const PortCapacities ports{BytesPerSecond(900e9), BytesPerSecond(50e9)};
  const auto seconds = [&](std::int64_t bytes) {
    return ToSeconds(CostOf(Shape(CollectiveKind::kAllReduce, bytes), Across(2, 8), wide, ports,
                            Fidelity::kAlphaBeta)
                         .alone);
  };
  const double alpha = (27 + 2 * 20.9) * 1e-6;
  const double gamma = 9e-6 * std::sqrt(alpha / 27e-6);
  const double work = factor * 64e6;
  EXPECT_NEAR(seconds(64'000'000), alpha + gamma * std::sqrt(work * 1e-6) + work / 870e9, 1e-7);
  // Where the NICs are the slower stage, they hide what the node's chunks cost but not its fill.
  const double large = factor * 64e9;
  const double fill = gamma * std::sqrt(large * 1e-6) / 2;
  EXPECT_NEAR(seconds(64'000'000'000), alpha + fill + large / (400e9 * 0.96 * factor), 1e-7);
}

TEST(CostOf, TheRampEndsWithTheBufferOfAChunk) {
  // NVIDIA/dgxc-benchmarking, eight H100: beyond X / B the time is 80 us at 64 MB, 135 at 256 MB
  // and 116 to 121 us from 1 to 16 GB.
  CollectiveConstants c = Hopper();
  c.nvlink_all_reduce = MakeLaw(24, 479, 6.9);
  c.ramp_ends_at = Bytes(200'000'000);
  const auto beyond_wire = [&](std::int64_t bytes) {
    const TransferCost cost = Cost(CollectiveKind::kAllReduce, bytes, Within(8), c);
    return ToSeconds(cost.latency) * 1e6;
  };
  EXPECT_NEAR(beyond_wire(64'000'000), 24 + 6.9 * std::sqrt(112.0), 0.01);
  EXPECT_NEAR(beyond_wire(256'000'000), 24 + 6.9 * std::sqrt(200.0), 0.01);
  EXPECT_NEAR(beyond_wire(17'179'869'184), 24 + 6.9 * std::sqrt(200.0), 0.01);
}

TEST(CostOf, AllReducesFillEveryLevelOfTheTreeOverDomains) {
  // coreweave/nccl-tests: racks of 72 lose 1.2 ms over two racks, 5 ms over twenty. The tree of 20
  // domains is five levels deep, and inner domains pass on the chunks of two others.
  CollectiveConstants c = Hopper();
  c.tree_gamma_per_level = Microseconds(10);
  const auto added = [&](CollectiveKind kind, const GroupPlacement& placement) {
    const Duration more =
        Cost(kind, 64'000'000, placement, c).alone - Cost(kind, 64'000'000, placement).alone;
    return ToSeconds(more) * 1e6 / std::sqrt(BusFactor(kind, placement.ranks) * 64.0);
  };
  EXPECT_NEAR(added(CollectiveKind::kAllReduce, Across(2, 72)), 10, 1e-3);
  EXPECT_NEAR(added(CollectiveKind::kAllReduce, Across(20, 72)), 100, 1e-3);
  EXPECT_NEAR(added(CollectiveKind::kAllReduce, Across(16, 8)), 80, 1e-3);
  EXPECT_EQ(added(CollectiveKind::kAllReduce, Within(8)), 0.0);
  EXPECT_EQ(added(CollectiveKind::kAllGather, Across(20, 72)), 0.0);
}

TEST(CostOf, NothingAcrossASlowTransportIsSoonerThanItsMinimum) {
  // TCPX (GoogleCloudPlatform/cluster-toolkit): 1.0 ms at 2 and at 8 MB, 1.1 ms at 32 MB, line rate
  // from 128 MB on; a latency that came on top would not leave room for the bytes of 32 MB.
  CollectiveConstants c = Hopper();
  c.network_minimum = Microseconds(1000);
  for (CollectiveKind kind : kKinds) {
    EXPECT_EQ(Cost(kind, 1 << 20, Within(8), c).alone, Cost(kind, 1 << 20, Within(8)).alone);
    EXPECT_NEAR(ToSeconds(Cost(kind, 1 << 20, Across(2, 8), c).alone), 1e-3, 1e-9);
    EXPECT_EQ(Cost(kind, std::int64_t{1} << 32, Across(2, 8), c).alone,
              Cost(kind, std::int64_t{1} << 32, Across(2, 8)).alone);
  }
}

TEST(CostOf, ManyNodesReduceAtTheirNics) {
  // coreweave/nccl-tests: 384.5 GB/s on 64 H100 at 8 GiB.
  const std::int64_t bytes = std::int64_t{1} << 33;
  const TransferCost cost = Cost(CollectiveKind::kAllReduce, bytes, Across(8, 8));
  const double bus = static_cast<double>(cost.work.value()) / ToSeconds(cost.alone) * 1e-9;
  EXPECT_NEAR(bus, 384.5, 0.04 * 384.5);
}

TEST(CostOf, RingsScaleWithNodesAsSimAisMeasuredTable) {
  // aliyun/SimAI:astra-sim-alibabacloud/inputs/ratio/nic_ratio.csv: share of 8 x 48.5 GB/s that a
  // ring over 8 GPUs per node reaches, on 2, 4, ... 128 nodes.
  struct Row {
    std::int64_t mebibytes;
    std::array<double, 7> share;
  };
  constexpr std::array<Row, 4> kTable = {{
      {16, {.32, .24, .13, .05, .044, .021, .0087}},
      {128, {.67, .67, .54, .38, .205, .107, .053}},
      {1024, {.92, .93, .90, .76, .74, .563, .315}},
      {16384, {.96, .96, .96, .96, .957, .958, .919}},
  }};
  const PortCapacities ports{BytesPerSecond(450e9), BytesPerSecond(48.5e9)};
  CollectiveConstants constants = Hopper();
  constants.ramp_ends_at = Bytes(200'000'000);
  double error = 0.0;
  int count = 0;
  for (const Row& row : kTable) {
    for (std::size_t i = 0; i < row.share.size(); ++i) {
      const std::int32_t nodes = 2 << i;
      const TransferShape shape = Shape(CollectiveKind::kAllGather, row.mebibytes << 20);
      const TransferCost cost =
          CostOf(shape, Across(nodes, 8), constants, ports, Fidelity::kAlphaBeta);
      const double share =
          static_cast<double>(cost.work.value()) / ToSeconds(cost.alone) / (8 * 48.5e9);
      error += std::abs(share / row.share[i] - 1.0);
      ++count;
    }
  }
  EXPECT_LE(error / count, 0.085) << "mean over " << count << " points";
}

TEST(CostOf, AllToAllScalesWithNodesAsSimAisMeasuredTable) {
  // aliyun/SimAI:astra-sim-alibabacloud/inputs/ratio/ata_ratio.csv: share of what the NICs allow
  // that an all-to-all over 8 GPUs per node reaches, on 2, 4, 8, 16 nodes.
  constexpr std::array<double, 4> kSmall = {.52, .67, .64, .62};  // 16 MB
  constexpr std::array<double, 4> kLarge = {.81, .94, .92, .85};  // 1 GB and more
  CollectiveConstants constants = Hopper();
  constants.all_to_all_nic_efficiency = 0.86;
  const PortCapacities ports{BytesPerSecond(450e9), BytesPerSecond(48.5e9)};
  double error = 0.0;
  for (const bool large : {false, true}) {
    for (std::size_t i = 0; i < kSmall.size(); ++i) {
      const std::int32_t nodes = 2 << i;
      const std::int64_t bytes = large ? std::int64_t{8} << 30 : std::int64_t{16} << 20;
      const TransferCost cost = CostOf(Shape(CollectiveKind::kAllToAll, bytes), Across(nodes, 8),
                                       constants, ports, Fidelity::kAlphaBeta);
      const double share = static_cast<double>(cost.work.value()) * cost.nic_load /
                           ToSeconds(cost.alone) / ports.nic.value();
      error += std::abs(share / (large ? kLarge : kSmall)[i] - 1.0);
    }
  }
  EXPECT_LE(error / 8, 0.11);
}

TEST(CostOf, ARailGroupIsBoundByOneNicPerMember) {
  const TransferCost cost =
      Cost(CollectiveKind::kReduceScatter, std::int64_t{1} << 34, Across(16, 1));
  EXPECT_NEAR(cost.cap.value(), 0.96 * 50e9, 1024);
  EXPECT_EQ(cost.nvlink_load, 0.0);
  EXPECT_EQ(cost.nic_load, 1.0);
}

TEST(CostOf, AllToAllLoadsNvlinkAndNicByDestination) {
  const TransferCost cost = Cost(CollectiveKind::kAllToAll, 1 << 30, Across(4, 8));
  EXPECT_DOUBLE_EQ(cost.nvlink_load, 7.0 / 31);
  EXPECT_DOUBLE_EQ(cost.nic_load, 24.0 / 31);
  TransferShape shape = Shape(CollectiveKind::kAllToAll, 1 << 30);
  shape.collective.node_deduplication = 0.5;
  const TransferCost less = CostOf(shape, Across(4, 8), Hopper(), kPorts, Fidelity::kAlphaBeta);
  EXPECT_DOUBLE_EQ(less.nic_load, 12.0 / 31);
  EXPECT_LT(less.alone, cost.alone);
}

TEST(CostOf, PiecesMoveTheirShareAndPayLatencyEach) {
  TransferShape quarter = Shape(CollectiveKind::kReduceScatter, 1 << 28);
  quarter.fraction = 0.25;
  const TransferCost piece = CostOf(quarter, Within(8), Hopper(), kPorts, Fidelity::kAlphaBeta);
  const TransferCost whole = Cost(CollectiveKind::kReduceScatter, 1 << 28, Within(8));
  EXPECT_EQ(piece.work.value() * 4, whole.work.value());
  EXPECT_GT(piece.alone * 4, whole.alone);
}

TEST(CostOf, AScaledTransferLastsItsShareAndMovesTheSameBytesWithinThePorts) {
  TransferShape shape = Shape(CollectiveKind::kAllReduce, 1 << 26);
  for (const GroupPlacement& placement : {Within(8), Across(2, 8)}) {
    shape.time_scale = 1.0;
    const TransferCost whole = CostOf(shape, placement, Hopper(), kPorts, Fidelity::kAlphaBeta);
    shape.time_scale = 0.5;
    const TransferCost half = CostOf(shape, placement, Hopper(), kPorts, Fidelity::kAlphaBeta);
    EXPECT_EQ(half.work, whole.work);
    // The rate rounds down to its grid.
    EXPECT_NEAR(ToSeconds(half.alone), 0.5 * ToSeconds(whole.alone), 1e-4 * ToSeconds(whole.alone));
    EXPECT_NEAR(half.cap.value() * half.nic_load, whole.cap.value() * whole.nic_load,
                1e-6 * whole.cap.value());
  }
}

TEST(CostOf, ASlowRegimeOfPointToPointEndsWithoutAStepDown) {
  const CollectiveConstants constants = RingsOnly();
  const std::int64_t cliff = constants.nvlink_send_receive_slow_below.value();
  const Duration at = Cost(CollectiveKind::kSendReceive, cliff, Within(2), constants).alone;
  const Duration above = Cost(CollectiveKind::kSendReceive, 2 * cliff, Within(2), constants).alone;
  const Duration far = Cost(CollectiveKind::kSendReceive, 16 * cliff, Within(2), constants).alone;
  EXPECT_EQ(at, above) << "no sooner than the largest slow message, yet no later";
  EXPECT_NEAR(ToSeconds(far), 16.0 * static_cast<double>(cliff) / 440e9 + 4.5e-6, 1e-7);
}

TEST(CostOf, SiteLatenciesAddWhereTheyBelong) {
  CollectiveConstants slow = Hopper();
  slow.network_latency = Microseconds(100);
  slow.host_latency = Microseconds(7);
  for (CollectiveKind kind : kKinds) {
    EXPECT_EQ(Cost(kind, 1 << 20, Within(8), slow).alone,
              Cost(kind, 1 << 20, Within(8)).alone + Microseconds(7));
    EXPECT_EQ(Cost(kind, 1 << 20, Across(2, 8), slow).alone,
              Cost(kind, 1 << 20, Across(2, 8)).alone + Microseconds(107));
  }
}

TEST(CostOf, ASitesRampAddsAcrossTheNetworkAlone) {
  CollectiveConstants slow = Hopper();
  slow.network_gamma_per_sqrt_megabyte = Microseconds(10);
  for (CollectiveKind kind : kKinds) {
    EXPECT_EQ(Cost(kind, 1 << 20, Within(8), slow).alone, Cost(kind, 1 << 20, Within(8)).alone);
    const Duration added = Cost(kind, 64'000'000, Across(2, 8), slow).alone -
                           Cost(kind, 64'000'000, Across(2, 8)).alone;
    const double megabytes = BusFactor(kind, 16) * 64.0;
    EXPECT_NEAR(ToSeconds(added), 10e-6 * std::sqrt(megabytes), 1e-9);
  }
}

TEST(CostOf, AHopOverTheSpineDelaysPointToPoint) {
  GroupPlacement far = Across(2, 1);
  far.crosses_spine = true;
  EXPECT_EQ(Cost(CollectiveKind::kSendReceive, 1 << 20, far).alone,
            Cost(CollectiveKind::kSendReceive, 1 << 20, Across(2, 1)).alone + Microseconds(0.9));
}

TEST(CostOf, ARackThatDrivesFewNicsIsBoundByThem) {
  CollectiveConstants limited = Hopper();
  limited.domain_network_limit = BytesPerSecond(200e9);
  const std::int64_t bytes = std::int64_t{1} << 34;
  EXPECT_NEAR(Cost(CollectiveKind::kAllGather, bytes, Across(4, 8), limited).cap.value(),
              0.96 * 200e9, 1024);
}

TEST(CostOf, HoldsTheSmsItIsGivenOrItsKindsDefault) {
  TransferShape shape = Shape(CollectiveKind::kAllGather, 1 << 20);
  EXPECT_EQ(CostOf(shape, Within(8), Hopper(), kPorts, Fidelity::kEndpoint).multiprocessors, 16);
  shape.multiprocessors = 4;
  EXPECT_EQ(CostOf(shape, Within(8), Hopper(), kPorts, Fidelity::kEndpoint).multiprocessors, 4);
  shape.multiprocessors = 0;
  EXPECT_EQ(CostOf(shape, Within(8), Hopper(), kPorts, Fidelity::kEndpoint).multiprocessors, 0);
  EXPECT_EQ(Cost(CollectiveKind::kAllToAll, 1 << 20, Across(2, 8)).multiprocessors, 20);
  EXPECT_EQ(Cost(CollectiveKind::kSendReceive, 1 << 20, Within(2)).multiprocessors, 2);
}

TEST(CostOf, UserbuffersFollowTheirOwnLaw) {
  TransferShape shape = Shape(CollectiveKind::kReduceScatter, 1 << 28);
  shape.userbuffers = true;
  const TransferCost cost = CostOf(shape, Within(8), Hopper(), kPorts, Fidelity::kAlphaBeta);
  EXPECT_NEAR(ToSeconds(cost.alone) * 1e6, 8 + (1 << 28) * 0.875 / 376e3, 0.01);
}

}  // namespace
}  // namespace quadrille::network
