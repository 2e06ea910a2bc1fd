// Network fidelity `flow`: the links above the NICs are shared, too.
#include <gtest/gtest.h>

#include "scenario_run.h"

namespace quadrille::simulate {
namespace {

const std::vector<std::string> kSmall = {"training.global_batch=128"};

std::vector<std::string> With(std::vector<std::string> overrides, const char* more) {
  overrides.emplace_back(more);
  return overrides;
}

TEST(FabricLoads, ANonBlockingRailFabricChangesNothing) {
  const auto endpoint =
      SimulateShipped("llama3-405b-1024xh100-bf16", With(kSmall, "network.fidelity=endpoint"));
  const auto flow =
      SimulateShipped("llama3-405b-1024xh100-bf16", With(kSmall, "network.fidelity=flow"));
  EXPECT_FALSE(flow.compiled.machine.fabric.empty());
  EXPECT_EQ(flow.report.step_time, endpoint.report.step_time);
  EXPECT_EQ(flow.report.fingerprint, endpoint.report.fingerprint);
}

TEST(FabricLoads, FoldedAndUnfoldedRunsShareLinksAlike) {
  const std::vector<std::string> run = {"training.global_batch=64", "network.fidelity=flow"};
  SimulateOptions unfold;
  unfold.unfold = true;
  const auto folded = SimulateShipped("llama3-405b-1024xh100-bf16", run);
  const auto unfolded = SimulateShipped("llama3-405b-1024xh100-bf16", run, unfold);
  EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
}

TEST(FabricLoads, AnOversubscribedSpineSlowsWhatCrossesIt) {
  // Two pods of 3,072 GPUs behind a layer that is 1:7: pipeline messages between them share it.
  const std::vector<std::string> meta = {"cluster=meta-roce-24k", "nodes=768", "parallel.data=48",
                                         "training.global_batch=384"};
  const auto endpoint =
      SimulateShipped("llama3-405b-1024xh100-bf16", With(meta, "network.fidelity=endpoint"));
  const auto flow =
      SimulateShipped("llama3-405b-1024xh100-bf16", With(meta, "network.fidelity=flow"));
  EXPECT_GT(Family(flow.report, "pp").total, Family(endpoint.report, "pp").total);
  EXPECT_GE(flow.report.step_time, endpoint.report.step_time);
}

}  // namespace
}  // namespace quadrille::simulate
