// The busiest port or link of each tier.
#include "sim/simulate/busiest_links.h"

#include <gtest/gtest.h>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

const metrics::LinkUse* Tier(const Simulation& simulation, const std::string& tier) {
  for (const metrics::LinkUse& link : simulation.report.links) {
    if (link.tier == tier) return &link;
  }
  return nullptr;
}

TEST(BusiestLinks, NameOnePerTierAndStayBelowWhatItCarries) {
  const Simulation simulation =
      SimulateShipped("llama3-405b-1024xh100-bf16", {"training.global_batch=64"});
  for (const char* tier : {"nvlink", "nic"}) {
    const metrics::LinkUse* link = Tier(simulation, tier);
    ASSERT_NE(link, nullptr) << tier;
    EXPECT_GT(link->utilisation.value(), 0.0) << tier;
    EXPECT_LE(link->utilisation.value(), 1.0) << tier;
    EXPECT_NEAR(link->utilisation.value(),
                static_cast<double>(link->bytes.value()) /
                    (link->capacity.value() * ToSeconds(simulation.report.step_time)),
                1e-9)
        << tier;
  }
  EXPECT_EQ(Tier(simulation, "leaf to spine"), nullptr);
}

// Between nodes TP carries nothing and inside them CP, PP and DP carry nothing: NVLink carries what
// tensor parallelism moves.
TEST(BusiestLinks, NvlinkCarriesTheTensorParallelTraffic) {
  const Simulation simulation = SimulateShipped(
      "llama3-405b-1024xh100-bf16", {"training.global_batch=64", "overlap.tensor_parallel=none"});
  const metrics::LinkUse* nvlink = Tier(simulation, "nvlink");
  ASSERT_NE(nvlink, nullptr);
  const auto tensor = static_cast<double>(Family(simulation.report, "tp").bytes.value());
  EXPECT_NEAR(static_cast<double>(nvlink->bytes.value()) / tensor, 1.0, 0.1);
}

TEST(BusiestLinks, FidelityFlowNamesALinkAboveTheNics) {
  const Simulation simulation = SimulateShipped(
      "llama3-405b-1024xh100-bf16", {"training.global_batch=64", "network.fidelity=flow"});
  const metrics::LinkUse* link = Tier(simulation, "leaf to spine");
  ASSERT_NE(link, nullptr);
  EXPECT_GT(link->bytes.value(), 0);
  EXPECT_FALSE(link->name.empty());
}

// Four nodes on two leaves, each under a spine of its own, joined by a core.
std::vector<std::string> Listed(std::vector<std::string> more) {
  std::vector<std::string> overrides = {
      "model=llama3-8b",
      "cluster=edge-list-example",
      "nodes=4",
      "parallel.tensor=8",
      "parallel.pipeline=1",
      "parallel.context=1",
      "parallel.data=4",
      "parallel.virtual_stages=1",
      "schedule=",
      "overlap=",
      "training.global_batch=8",
      "training.microbatches=",
      "network.fidelity=flow",
      "cluster.fabric.switches=[{name: west, tier: leaf}, {name: east, tier: leaf}, {name: s0, "
      "tier: spine}, {name: s1, tier: spine}, {name: c0, tier: core}]",
      "cluster.fabric.edges=[{from: node0/nic0, to: west, bandwidth: 400 Gb/s}, "
      "{from: node0/nic1, to: west, bandwidth: 400 Gb/s}, "
      "{from: node1/nic0, to: west, bandwidth: 400 Gb/s}, "
      "{from: node1/nic1, to: west, bandwidth: 400 Gb/s}, "
      "{from: node2/nic0, to: east, bandwidth: 400 Gb/s}, "
      "{from: node2/nic1, to: east, bandwidth: 400 Gb/s}, "
      "{from: node3/nic0, to: east, bandwidth: 400 Gb/s}, "
      "{from: node3/nic1, to: east, bandwidth: 400 Gb/s}, "
      "{from: west, to: s0, bandwidth: 400 Gb/s}, {from: east, to: s1, bandwidth: 400 Gb/s}, "
      "{from: s0, to: c0, bandwidth: 200 Gb/s}, {from: s1, to: c0, bandwidth: 200 Gb/s}]"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

TEST(BusiestLinks, TheTierIsThatOfTheLinkWhateverItIsCalled) {
  const Simulation simulation = SimulateShipped("llama3-405b-1024xh100-bf16", Listed({}));
  const metrics::LinkUse* core = Tier(simulation, "spine to core");
  const metrics::LinkUse* spine = Tier(simulation, "leaf to spine");
  ASSERT_NE(core, nullptr);
  ASSERT_NE(spine, nullptr);
  EXPECT_NE(core->name.find("c0"), std::string::npos) << core->name;
  EXPECT_EQ(spine->name.find("c0"), std::string::npos) << spine->name;
  // The same bytes through half the width.
  EXPECT_EQ(core->bytes, spine->bytes);
  EXPECT_NEAR(core->utilisation.value() / spine->utilisation.value(), 2.0, 1e-9);
}

TEST(BusiestLinks, AFaultOfTheWholeStepIsInForceWindowOrNot) {
  const auto spine = [](const std::string& window) {
    const Simulation simulation = SimulateShipped(
        "llama3-405b-1024xh100-bf16",
        Listed({"perturbations=[{kind: link_bandwidth, links: [west -> s0], factor: 10 %" + window +
                "}]"}));
    const metrics::LinkUse* link = Tier(simulation, "leaf to spine");
    return link == nullptr ? metrics::LinkUse{} : *link;
  };
  const metrics::LinkUse always = spine("");
  const metrics::LinkUse window = spine(", from: 0 s, until: 1000 s");
  EXPECT_NEAR(always.capacity.value(), 5e9, 1.0);
  EXPECT_EQ(window.capacity, always.capacity);
  EXPECT_NEAR(window.utilisation.value(), always.utilisation.value(), 1e-9);
  EXPECT_GT(window.utilisation.value(), 0.9) << "the thin link bounds the step";
}

}  // namespace
}  // namespace quadrille::simulate
