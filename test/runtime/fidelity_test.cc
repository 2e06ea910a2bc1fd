// The five fidelities of the network, where theory says that they are one.
#include <gtest/gtest.h>

#include "test/program/hand_program.h"
#include "test/runtime/small_machine.h"

namespace quadrille::runtime {
namespace {

using model::CollectiveKind;
using network::Fidelity;
using program::HandProgram;
using program::HandRank;
using program::LaneKind;
using program::Program;

constexpr Fidelity kAll[] = {Fidelity::kIdeal, Fidelity::kAlphaBeta, Fidelity::kEndpoint,
                             Fidelity::kFlow, Fidelity::kChunk};
constexpr network::PortCapacities kPorts{BytesPerSecond(1024.0 * 400'000'000),
                                         BytesPerSecond(1024.0 * 50'000'000)};

// No latency, no ramp, every algorithm as fast as the ports that it fills.
network::CollectiveConstants PureBandwidth() {
  network::CollectiveConstants constants;
  const network::Law law = {Duration(0), kPorts.nvlink, Duration(0)};
  constants.nvlink_all_reduce = law;
  constants.nvlink_all_gather = law;
  constants.nvlink_reduce_scatter = law;
  constants.nvlink_all_to_all = law;
  constants.nvlink_send_receive = law;
  constants.network_send_receive = {Duration(0), kPorts.nic, Duration(0)};
  constants.ring_nic_efficiency = 1.0;
  constants.tree_nic_efficiency = 0.5;  // so that rings are chosen
  constants.all_to_all_nic_efficiency = 1.0;
  constants.all_to_all_peer = Duration(0);
  constants.userbuffers = law;
  return constants;
}

// `ranks` members on `nodes` nodes, each with one transfer of `kind`.
Program OneCollective(CollectiveKind kind, std::int32_t ranks, std::int32_t nodes) {
  std::vector<program::RankProgram> programs;
  std::vector<program::GroupMember> members;
  for (std::int32_t r = 0; r < ranks; ++r) {
    HandRank rank({LaneKind::kContext});
    rank.Transfer(1, 0);
    programs.push_back(rank.Build());
    members.push_back({static_cast<std::uint32_t>(r), 1});
  }
  Program program = HandProgram(std::move(programs), {members});
  program.placements[0] = {.ranks = ranks, .nodes = nodes, .ranks_per_node = ranks / nodes};
  program.shapes[0].collective = {.kind = kind, .bytes = Bytes(std::int64_t{1} << 30)};
  return program;
}

Program OneMessage(std::int32_t nodes) {
  HandRank sender({LaneKind::kSendForward});
  sender.Transfer(1, 0);
  HandRank receiver({LaneKind::kReceiveForward});
  receiver.Transfer(1, 0);
  Program program = HandProgram({sender.Build(), receiver.Build()}, {{{0, 1}, {1, 1}}});
  program.placements[0] = {.ranks = 2, .nodes = nodes, .ranks_per_node = 2 / nodes};
  program.shapes[0].collective = {.kind = CollectiveKind::kSendReceive,
                                  .bytes = Bytes(std::int64_t{1} << 30)};
  return program;
}

Duration TransferTime(const Program& program, Fidelity fidelity) {
  Machine machine;
  machine.costs = PriceTransfers(program, PureBandwidth(), kPorts, fidelity);
  machine.ports = kPorts;
  machine.network.fidelity = fidelity;
  machine.network.interference = false;
  machine.memory_bandwidth = BytesPerSecond(1e12);
  return MustExecute(program, machine).ranks[0].lanes[1].busy;
}

void ExpectOneResult(const Program& program, const std::string& what) {
  const Duration ideal = TransferTime(program, Fidelity::kIdeal);
  EXPECT_GT(ideal, Duration(0));
  for (Fidelity fidelity : kAll) {
    const Duration time = TransferTime(program, fidelity);
    if (fidelity == Fidelity::kChunk) {
      // Store and forward: a chunk more for each further port, and the start of a ring.
      EXPECT_NEAR(ToSeconds(time) / ToSeconds(ideal), 1.0, 0.04) << what;
    } else {
      EXPECT_EQ(time, ideal) << what << ", fidelity " << static_cast<int>(fidelity);
    }
  }
}

TEST(Fidelities, AreOneForATransferAloneWithoutLatency) {
  struct Place {
    std::int32_t ranks;
    std::int32_t nodes;
  };
  for (const Place& place : {Place{2, 1}, Place{8, 1}, Place{4, 4}, Place{16, 16}}) {
    for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
      ExpectOneResult(OneCollective(kind, place.ranks, place.nodes),
                      std::to_string(static_cast<int>(kind)) + " over " +
                          std::to_string(place.ranks) + " ranks on " + std::to_string(place.nodes));
    }
  }
  // Rings over nodes of several members: one channel per member, so that all NICs carry alike.
  for (const Place& place : {Place{8, 2}, Place{16, 4}, Place{32, 4}}) {
    ExpectOneResult(OneCollective(CollectiveKind::kAllGather, place.ranks, place.nodes),
                    std::to_string(place.ranks) + " ranks on " + std::to_string(place.nodes));
  }
  ExpectOneResult(OneMessage(1), "a message in a node");
  ExpectOneResult(OneMessage(2), "a message between nodes");
}

TEST(Fidelities, SharingHalvesTheRateUnderThoseThatShare) {
  // Two rings of the same two ranks on two nodes.
  HandRank rank({LaneKind::kContext, LaneKind::kGradientReduce});
  rank.Transfer(1, 0).Transfer(2, 0);
  Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}, {{0, 2}, {1, 2}}});
  program.placements[0] = {.ranks = 2, .nodes = 2, .ranks_per_node = 1};
  program.shapes[0].collective = {.kind = CollectiveKind::kAllGather,
                                  .bytes = Bytes(std::int64_t{1} << 30)};
  const double alone = ToSeconds(TransferTime(program, Fidelity::kAlphaBeta));
  EXPECT_EQ(TransferTime(program, Fidelity::kIdeal), TransferTime(program, Fidelity::kAlphaBeta));
  for (Fidelity fidelity : {Fidelity::kEndpoint, Fidelity::kFlow}) {
    EXPECT_NEAR(ToSeconds(TransferTime(program, fidelity)) / alone, 2.0, 1e-4);
  }
  EXPECT_NEAR(ToSeconds(TransferTime(program, Fidelity::kChunk)) / alone, 2.0, 0.08);
}

TEST(Fidelities, ChunksOfEachTransferLoadPortsAsItsOwnPriceSays) {
  // All-gathers of one group on two nodes; shape 1 puts twice the bytes of shape 0 on a NIC.
  const auto time = [](const std::vector<std::uint32_t>& shapes) {
    HandRank rank({LaneKind::kContext});
    for (const std::uint32_t shape : shapes) rank.Transfer(1, shape);
    Program program = HandProgram({rank.Build(), rank.Build()}, {{{0, 1}, {1, 1}}}, 2);
    program.placements[0] = {.ranks = 2, .nodes = 2, .ranks_per_node = 1};
    for (network::TransferShape& shape : program.shapes) {
      shape.collective = {.kind = CollectiveKind::kAllGather,
                          .bytes = Bytes(std::int64_t{1} << 30)};
    }
    Machine machine;
    machine.costs = PriceTransfers(program, PureBandwidth(), kPorts, Fidelity::kChunk);
    machine.costs[1].nic_load *= 2.0;
    machine.ports = kPorts;
    machine.network.fidelity = Fidelity::kChunk;
    machine.network.interference = false;
    machine.memory_bandwidth = BytesPerSecond(1e12);
    return MustExecute(program, machine).ranks[0].lanes[1].busy;
  };
  EXPECT_NEAR(ToSeconds(time({1})) / ToSeconds(time({0})), 2.0, 0.05);
  EXPECT_EQ(time({0, 1, 0}), time({0}) + time({1}) + time({0}));
}

}  // namespace
}  // namespace quadrille::runtime
