// What-ifs of bandwidths: laws that were measured at one bandwidth scale to another.
#include "sim/scenario/changed_ports.h"

#include <gtest/gtest.h>

#include "scenario_test_support.h"

namespace quadrille::scenario {
namespace {

Scenario With(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  overrides.insert(overrides.begin(), "cluster=ports");
  options.overrides = std::move(overrides);
  auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
  if (!scenario) {
    ADD_FAILURE() << ToString(scenario.error());
    return {};
  }
  return *std::move(scenario);
}

TEST(ChangedPorts, LawsOfANodeScaleWithNvlinkAndTheirLatenciesStay) {
  const Scenario plain = With({});
  const Scenario twice = With({"cluster.nvlink.bandwidth=600 GB/s"});
  EXPECT_EQ(twice.collectives.nvlink_all_gather.bandwidth,
            plain.collectives.nvlink_all_gather.bandwidth * 2.0);
  EXPECT_EQ(twice.collectives.nvlink_all_gather.alpha, plain.collectives.nvlink_all_gather.alpha);
  EXPECT_EQ(twice.collectives.userbuffers.bandwidth, plain.collectives.userbuffers.bandwidth * 2.0);
  EXPECT_EQ(twice.collectives.network_send_receive.bandwidth,
            plain.collectives.network_send_receive.bandwidth);
  EXPECT_TRUE(twice.warnings.empty()) << ToString(twice.warnings);
}

TEST(ChangedPorts, MessagesScaleWithTheNicAsFarAsItsPcieLinkLetsThem) {
  const Scenario plain = With({});  // 25 GB/s behind 25 GB/s
  const Scenario half = With({"cluster.nic.bandwidth=100 Gb/s"});
  EXPECT_EQ(half.collectives.network_send_receive.bandwidth,
            plain.collectives.network_send_receive.bandwidth * 0.5);
  EXPECT_TRUE(half.warnings.empty()) << ToString(half.warnings);
  const Scenario bound = With({"cluster.nic.bandwidth=400 Gb/s"});
  EXPECT_EQ(bound.collectives.network_send_receive.bandwidth,
            plain.collectives.network_send_receive.bandwidth);
  EXPECT_NE(ToString(bound.warnings)
                .find("cluster.nic.bandwidth: 50 GB/s do not fit through the PCIe link of 25 GB/s"),
            std::string::npos)
      << ToString(bound.warnings);
  const Scenario both = With({"cluster.nic.bandwidth=400 Gb/s", "cluster.pcie.bandwidth=50 GB/s"});
  EXPECT_EQ(both.collectives.network_send_receive.bandwidth,
            plain.collectives.network_send_receive.bandwidth * 2.0);
}

TEST(ChangedPorts, LawsThatTheCallStatesAreThoseOfTheChangedMachine) {
  const Scenario stated = With({"cluster.nvlink.bandwidth=600 GB/s",
                                "cluster.collectives.nvlink_all_gather={alpha: 10 us, bandwidth: "
                                "400 GB/s}"});
  EXPECT_EQ(stated.collectives.nvlink_all_gather.bandwidth, BytesPerSecond(400e9));
}

TEST(ChangedPorts, AnUnchangedClusterKeepsItsLaws) {
  const Scenario plain = With({});
  const Scenario same = With({"cluster.nvlink.bandwidth=300 GB/s", "cluster.gpus_per_node=8"});
  EXPECT_EQ(same.collectives.nvlink_all_reduce.bandwidth, BytesPerSecond(200e9));
  EXPECT_EQ(same.hash, plain.hash);
}

}  // namespace
}  // namespace quadrille::scenario
