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

}  // namespace
}  // namespace quadrille::simulate
