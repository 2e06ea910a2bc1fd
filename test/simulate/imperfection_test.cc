// The fabric and its imperfections, from a run file to the step time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenario_run.h"
#include "sim/metrics/memory_timeline.h"
#include "sim/runtime/static_evaluator.h"
#include "sim/simulate/resolve_perturbations.h"
#include "topology/placement.h"

namespace quadrille::simulate {
namespace {

using program::RankState;

// A job of TP 8 x DP 8 on two pods of four nodes, two nodes to a rack, 1:7 between the pods.
constexpr const char* kTwoPods = R"(
model: llama3-8b
cluster: meta-roce-24k
nodes: 8
parallel: {tensor: 8, pipeline: 1, data: 8}
training: {sequence_length: 8192, micro_batch: 1, global_batch: 16}
overlap: {gradient_reduce: false, parameter_gather: false}
network: {fidelity: flow, interference: false}
)";

// A job of TP 8 x PP 4 x DP 16 on two scalable units of a SuperPOD.
constexpr const char* kTwoUnits = R"(
model: llama3-8b
cluster: dgx-h100-superpod
nodes: 64
parallel: {tensor: 8, pipeline: 4, data: 16}
training: {sequence_length: 8192, micro_batch: 1, global_batch: 128}
network: {fidelity: flow}
)";

Result<scenario::Scenario> Load(const std::string& text, std::vector<std::string> overrides) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(directory);
  const std::filesystem::path file = directory / "run.yaml";
  std::ofstream(file) << text;
  scenario::LoadOptions options;
  options.shipped_directory = kScenarios;
  options.overrides = std::move(overrides);
  return scenario::LoadScenario(file.string(), options);
}

Simulation MustRun(const std::string& text, std::vector<std::string> overrides,
                   bool unfold = false) {
  const auto loaded = Load(text, std::move(overrides));
  if (!loaded) {
    ADD_FAILURE() << ToString(loaded.error());
    return {};
  }
  SimulateOptions options;
  options.unfold = unfold;
  return MustSimulate(*loaded, options);
}

// What is wrong with a run, from loading to the end.
std::string Trouble(const std::string& text, std::vector<std::string> overrides) {
  const auto loaded = Load(text, std::move(overrides));
  if (!loaded) return ToString(loaded.error());
  const auto simulation = Simulate(*loaded, {});
  return simulation ? "" : ToString(simulation.error());
}

std::vector<std::string> Perturbed(std::vector<std::string> overrides, const std::string& list) {
  overrides.push_back("perturbations=" + list);
  return overrides;
}

const std::vector<std::string> kPods = {"cluster.fabric.units_per_pod=2"};

// ---- the fabric by hand ----

TEST(ThinSpine, SlowsARingAcrossPodsByTheFactorComputedByHand) {
  // Eight rings, one per rail, of eight members, one on each node. Dealt over the pods in turn,
  // every hop leaves its pod: 4 hops x 8 rails ask each pod's uplinks for 32 x 0.96 NICs and find
  // 32 / 7. In order only one hop does: 8 x 0.96 NICs of 32 / 7.
  const std::vector<std::string> dealt = {"cluster.fabric.units_per_pod=2",
                                          "placement.order=strided", "placement.stride=4"};
  const auto transfer_of = [](const Simulation& simulation) {
    // The sharing of the optimizer's states moves all parameters twice through every NIC.
    return ToSeconds(Family(simulation.report, "dp").total);
  };
  std::vector<std::string> endpoint = kPods;
  endpoint.emplace_back("network.fidelity=endpoint");
  const Simulation alone = MustRun(kTwoPods, endpoint);
  const double bandwidth = transfer_of(alone);
  EXPECT_NEAR(transfer_of(MustRun(kTwoPods, dealt)) / bandwidth, 7 * 0.96, 0.1);
  EXPECT_NEAR(transfer_of(MustRun(kTwoPods, kPods)) / bandwidth, 8 * 0.96 * 7 / 32, 0.03);
}

TEST(ThinSpine, FoldedAndUnfoldedRunsAgree) {
  for (const char* routing : {"network.routing=adaptive", "network.routing=ecmp"}) {
    std::vector<std::string> overrides = kPods;
    overrides.emplace_back(routing);
    overrides.emplace_back("network.ecmp_flows_per_pair=1");
    const Simulation folded = MustRun(kTwoPods, overrides);
    const Simulation unfolded = MustRun(kTwoPods, overrides, true);
    EXPECT_NEAR(static_cast<double>(folded.report.step_time.count()),
                static_cast<double>(unfolded.report.step_time.count()), 1000.0)
        << routing;
    EXPECT_LE(folded.report.simulated_ranks, unfolded.report.simulated_ranks);
  }
}

TEST(Fabric, WithoutOverloadedLinksFoldingIsAsCoarseAsWithoutAFabric) {
  const Simulation flow = MustRun(kTwoUnits, {});
  const Simulation endpoint = MustRun(kTwoUnits, {"network.fidelity=endpoint"});
  EXPECT_EQ(flow.report.simulated_ranks, endpoint.report.simulated_ranks);
  EXPECT_EQ(flow.report.fingerprint, endpoint.report.fingerprint);
}

// ---- faults of the fabric ----

TEST(FabricFaults, LostLinksSplitOnlyWhatTheyTouchAndFoldExactly) {
  // Spine 0 of four carries a quarter of what leaves a leaf; without three of them the pipeline's
  // hops between the units share the last.
  const std::string lost =
      "[{kind: switch_down, switches: [spine0, spine1, spine2, spine3, "
      "spine4, spine5, spine6]}]";
  const Simulation nominal = MustRun(kTwoUnits, {});
  const Simulation folded = MustRun(kTwoUnits, Perturbed({}, lost));
  const Simulation unfolded = MustRun(kTwoUnits, Perturbed({}, lost), true);
  EXPECT_GT(Family(folded.report, "pp").total, Family(nominal.report, "pp").total);
  EXPECT_LT(folded.report.simulated_ranks, 512);
  EXPECT_NEAR(static_cast<double>(folded.report.step_time.count()),
              static_cast<double>(unfolded.report.step_time.count()), 5000.0);
}

TEST(FabricFaults, AWindowIsBetweenAllAndNothing) {
  const auto time = [](const std::string& window) {
    const std::string fault = "[{kind: background_traffic, share: 97 %" + window + "}]";
    return MustRun(kTwoPods, Perturbed(kPods, fault)).report.step_time;
  };
  const Duration nominal = MustRun(kTwoPods, kPods).report.step_time;
  const Duration always = time("");
  EXPECT_GT(always, nominal);
  const Duration half = time(", from: 0 s, until: 1 s");
  EXPECT_GT(half, nominal);
  EXPECT_LT(half, always);
  EXPECT_EQ(time(", from: 1000 s"), nominal);
  const Duration flapping = time(", period: 20 ms, duty: 50 %");
  EXPECT_GT(flapping, nominal);
  EXPECT_LT(flapping, always);
}

TEST(FabricFaults, HalfOfTheThinLayerTakenIsTwiceTheTime) {
  const auto transfer_of = [](const std::string& fault) {
    return ToSeconds(Family(MustRun(kTwoPods, Perturbed(kPods, fault)).report, "dp").total);
  };
  const double nominal = transfer_of("[]");
  EXPECT_NEAR(transfer_of("[{kind: background_traffic, share: 50 %, tier: spine-core}]") / nominal,
              2.0, 0.02);
  // Below, a quarter of the width is still wide enough.
  EXPECT_NEAR(transfer_of("[{kind: background_traffic, share: 25 %, tier: leaf-spine}]") / nominal,
              1.0, 1e-9);
}

TEST(FabricFaults, AThinLinkSlowsOnlyWhatCrossesIt) {
  const std::string thin = "[{kind: link_bandwidth, links: [leaf0 -> spine0], factor: 1 %}]";
  const Simulation nominal = MustRun(kTwoPods, kPods);
  const Simulation slow = MustRun(kTwoPods, Perturbed(kPods, thin));
  EXPECT_GT(slow.report.step_time, nominal.report.step_time);
  const Simulation unfolded = MustRun(kTwoPods, Perturbed(kPods, thin), true);
  EXPECT_NEAR(static_cast<double>(slow.report.step_time.count()),
              static_cast<double>(unfolded.report.step_time.count()), 1000.0);
}

TEST(NicFaults, ALostNicLeavesSevenEighthsToEveryGpuOfItsNode) {
  const auto simulate = [](const std::string& fault) {
    return MustRun(kTwoPods, Perturbed({"network.fidelity=endpoint"}, fault)).report.step_time;
  };
  EXPECT_EQ(simulate("[{kind: nic_down, ranks: [3]}]"),
            simulate("[{kind: nic_bandwidth, nodes: [0], factor: 0.875}]"));
  EXPECT_EQ(simulate("[{kind: rail_down, rails: [0, 5]}]"),
            simulate("[{kind: nic_bandwidth, factor: 0.75}]"));
  EXPECT_GT(simulate("[{kind: nic_down, ranks: [3]}]"), simulate("[]"));
}

TEST(NicFaults, EntriesOfOneWindowLoseTheirNicsTogether) {
  const auto simulate = [](const std::string& fault) {
    return MustRun(kTwoPods, Perturbed({"network.fidelity=endpoint"}, fault)).report.step_time;
  };
  EXPECT_EQ(simulate("[{kind: nic_down, ranks: [3]}, {kind: nic_down, ranks: [3, 4]}]"),
            simulate("[{kind: nic_down, ranks: [3, 4]}]"));
  EXPECT_EQ(simulate("[{kind: nic_down, ranks: [0, 1]}, {kind: nic_down, ranks: [2, 3]}]"),
            simulate("[{kind: nic_bandwidth, nodes: [0], factor: 0.5}]"));
  const std::string cut =
      Trouble(kTwoPods, Perturbed({},
                                  "[{kind: nic_down, ranks: [0, 1, 2, 3]}, {kind: nic_down, ranks: "
                                  "[4, 5, 6, 7]}]"));
  EXPECT_NE(cut.find("perturbations.1.ranks: node 0 would lose its last NIC"), std::string::npos)
      << cut;
}

TEST(NicFaults, ANodeIsItsRanks) {
  const auto simulate = [](const std::string& fault) {
    return MustRun(kTwoPods, Perturbed(kPods, fault)).report.step_time;
  };
  EXPECT_EQ(simulate("[{kind: gpu_speed, nodes: [1], factor: 0.9}]"),
            simulate("[{kind: gpu_speed, ranks: [15, 8, 9, 10, 11, 12, 13, 14], factor: 0.9}]"));
}

// ---- what cannot be ----

// ---- others' traffic, and what nobody meets ----

TEST(BackgroundTraffic, OfOneLinkIsThatLinkThinned) {
  const auto simulate = [](const std::string& fault) {
    return MustRun(kTwoPods, Perturbed(kPods, fault)).report.step_time;
  };
  EXPECT_EQ(simulate("[{kind: background_traffic, links: [leaf0 -> spine0], share: 75 %}]"),
            simulate("[{kind: link_bandwidth, links: [leaf0 -> spine0], factor: 0.25}]"));
}

TEST(BackgroundTraffic, BetweenTwoLeavesTakesTheLinksOneWay) {
  const auto loaded =
      Load(kTwoPods,
           Perturbed(kPods, "[{kind: background_traffic, links: [leaf0 -> leaf1], share: 40 %}]"));
  ASSERT_TRUE(loaded);
  const auto cluster = topology::BuildCluster(loaded->cluster);
  ASSERT_TRUE(cluster);
  const parallel::RankLayout ranks(loaded->parallel);
  const auto gpus = topology::Place(*cluster, ranks.world_size(), loaded->placement);
  ASSERT_TRUE(gpus);
  const auto resolved = ResolvePerturbations(*loaded, ranks, *cluster, *gpus);
  ASSERT_TRUE(resolved);
  ASSERT_EQ(resolved->fabric.size(), 1u);
  EXPECT_DOUBLE_EQ(resolved->fabric[0].factor, 0.6);
  const std::int32_t spines = cluster->shape().spines_per_group;
  ASSERT_EQ(resolved->fabric[0].thin.size(), static_cast<std::size_t>(2 * spines));
  for (topology::LinkId id : resolved->fabric[0].thin) {
    const topology::Link& link = cluster->link(id);
    const bool up = cluster->NameOf(link.from) == "leaf0";
    const bool down = cluster->NameOf(link.to) == "leaf1";
    EXPECT_TRUE(up != down) << cluster->NameOf(id);
  }
  EXPECT_NE(Trouble(kTwoPods, Perturbed(kPods,
                                        "[{kind: background_traffic, links: [leaf0 -> "
                                        "leaf2], share: 40 %}]"))
                .find("no spine joins leaf0 and leaf2"),
            std::string::npos);
}

TEST(WithoutEffect, IsWarnedOf) {
  const auto warnings = [](const std::vector<std::string>& overrides, const std::string& list) {
    return ToString(MustRun(kTwoPods, Perturbed(overrides, list)).compiled.warnings);
  };
  std::vector<std::string> hashed = kPods;
  hashed.insert(hashed.end(), {"network.routing=ecmp", "network.ecmp_flows_per_pair=1"});
  // One flow a pair leaves some of the links free: every link is crossed or warned of.
  int free = 0;
  const auto cluster = topology::BuildCluster(Load(kTwoPods, kPods)->cluster);
  ASSERT_TRUE(cluster);
  for (std::int32_t spine = 0; spine < cluster->shape().spines_per_group; ++spine) {
    const std::string link = "[leaf0 -> spine" + std::to_string(spine) + "]";
    const std::string thin =
        warnings(hashed, "[{kind: link_bandwidth, links: " + link + ", factor: 0.5}]");
    const std::string down = warnings(hashed, "[{kind: link_down, links: " + link + "}]");
    EXPECT_EQ(thin.empty(), down.empty()) << link << thin << down;
    if (thin.empty()) continue;
    ++free;
    EXPECT_NE(thin.find("perturbations.0 has no effect: no transfer"), std::string::npos) << thin;
    EXPECT_EQ(MustRun(kTwoPods, hashed).report.step_time,
              MustRun(kTwoPods, Perturbed(hashed, "[{kind: link_bandwidth, links: " + link +
                                                      ", factor: 0.5}]"))
                  .report.step_time)
        << link;
  }
  EXPECT_GT(free, 0);
  EXPECT_LT(free, cluster->shape().spines_per_group);
  EXPECT_EQ(warnings(kPods, "[{kind: link_bandwidth, links: [leaf0 -> spine0], factor: 0.5}]"), "");
  EXPECT_NE(
      warnings(kPods, "[{kind: gpu_speed, factor: 0.5, from: 900 s}]").find("it begins 900 s"),
      std::string::npos);
  // Each replica on a node of its own, TP alone: no NIC is used.
  const auto alone = Load(kTwoPods, {"nodes=1", "parallel.data=1", "training.global_batch=2",
                                     "perturbations=[{kind: nic_bandwidth, factor: 0.5}]"});
  ASSERT_TRUE(alone);
  EXPECT_NE(ToString(MustSimulate(*alone, {}).compiled.warnings).find("no transfer of these ranks"),
            std::string::npos);
}

TEST(Partitions, CannotRunAndSayWhereTheyAreWritten) {
  const auto trouble = [](const std::string& perturbation) {
    const std::string text = std::string(kTwoPods) +
                             "perturbations:\n  - {kind: gpu_speed, ranks: "
                             "[1], factor: 0.9}\n  - " +
                             perturbation + "\n";
    const auto loaded = Load(text, kPods);
    if (!loaded) return loaded.error();
    const auto simulation = Simulate(*loaded, {});
    return simulation ? Diagnostics() : simulation.error();
  };
  std::string spines = "spine0";
  for (int i = 1; i < 32; ++i) spines += ", spine" + std::to_string(i);
  const std::vector<std::string> cuts = {
      "{kind: nic_bandwidth, factor: 0}",
      "{kind: nvlink_bandwidth, factor: 0, from: 1 ms}",
      "{kind: gpu_speed, ranks: [3], factor: 0}",
      "{kind: nic_down, ranks: [0, 1, 2, 3, 4, 5, 6, 7]}",
      "{kind: rail_down, rails: [0, 1, 2, 3, 4, 5, 6, 7]}",
      "{kind: switch_down, switches: [leaf1]}",
      "{kind: switch_down, switches: [" + spines + "]}",
      "{kind: link_bandwidth, links: [leaf0 -> spine0], factor: 0}",
      "{kind: background_traffic, share: 1}",
  };
  for (const std::string& cut : cuts) {
    const Diagnostics problems = trouble(cut);
    ASSERT_EQ(problems.size(), cut.find("leaf1]") == std::string::npos ? 1u : 2u)
        << cut << ToString(problems);
    EXPECT_TRUE(AllAre(ProblemKind::kCannotRun, problems)) << cut;
    EXPECT_EQ(problems[0].position.line, 11) << cut;
    EXPECT_GE(problems[0].position.column, 5) << cut;
    EXPECT_NE(problems[0].position.file.find("run.yaml"), std::string::npos) << cut;
  }
  // Rails of two entries are lost together.
  const auto rails =
      trouble("{kind: rail_down, rails: [0, 1, 2, 3]}\n  - {kind: rail_down, rails: [4, 5, 6, 7]}");
  EXPECT_NE(ToString(rails).find("no rail would be left"), std::string::npos) << ToString(rails);
}

TEST(Partitions, AreErrorsThatNameThePlace) {
  const auto trouble = [](const std::string& fault) {
    return Trouble(kTwoPods, Perturbed(kPods, fault));
  };
  EXPECT_NE(trouble("[{kind: nic_down, ranks: [0, 1, 2, 3, 4, 5, 6, 7]}]")
                .find("perturbations.0.ranks: node 0 would lose its last NIC"),
            std::string::npos);
  EXPECT_NE(trouble("[{kind: switch_down, switches: [leaf1]}]")
                .find("perturbations.0.switches: node 2 would lose its last NIC"),
            std::string::npos);
  EXPECT_NE(trouble("[{kind: rail_down, rails: [0, 1, 2, 3, 4, 5, 6, 7]}]").find("no rail would"),
            std::string::npos);
  std::string cores = "core0";
  const auto loaded = Load(kTwoPods, kPods);
  ASSERT_TRUE(loaded);
  const auto cluster = topology::BuildCluster(loaded->cluster);
  ASSERT_TRUE(cluster);
  for (std::int32_t i = 1; i < cluster->count(topology::VertexKind::kCore); ++i) {
    cores += ", core" + std::to_string(i);
  }
  const std::string cut = trouble("[{kind: switch_down, switches: [" + cores + "]}]");
  EXPECT_NE(cut.find("the fabric is partitioned: no way from node"), std::string::npos) << cut;
}

TEST(Partitions, NamesOfLinksAndSwitchesAreChecked) {
  const auto trouble = [](const std::string& fault) {
    return Trouble(kTwoPods, Perturbed(kPods, fault));
  };
  EXPECT_NE(trouble("[{kind: link_down, links: [leaf0 -> spine99]}]")
                .find("no switch 'spine99' in the cluster; did you mean 'spine"),
            std::string::npos);
  EXPECT_NE(trouble("[{kind: link_down, links: [leaf0 -> leaf1]}]")
                .find("no cable joins leaf0 and leaf1"),
            std::string::npos);
  EXPECT_NE(trouble("[{kind: link_down, links: [leaf0]}]").find("write leaf0 -> spine1"),
            std::string::npos);
  EXPECT_NE(trouble("[{kind: expert_imbalance, sigma: 10 %}]").find("nothing to be uneven"),
            std::string::npos);
  EXPECT_NE(Trouble(kTwoPods, Perturbed({"network.fidelity=endpoint"},
                                        "[{kind: background_traffic, share: 10 %}]"))
                .find("only network.fidelity: flow sees"),
            std::string::npos);
}

// ---- routing ----

TEST(Routing, ChunksTakeTheWaysOfTheRunsPolicyAndSeed) {
  const auto ways = [](network::Routing routing, std::uint64_t seed) {
    std::vector<std::vector<std::uint32_t>> found;
    auto loaded = Load(kTwoPods, {"cluster.fabric.units_per_pod=2", "network.fidelity=chunk"});
    if (!loaded) {
      ADD_FAILURE() << ToString(loaded.error());
      return found;
    }
    loaded->network.routing = routing;
    loaded->seed = seed;
    const auto compiled = CompileStep(*loaded, false);
    if (!compiled) {
      ADD_FAILURE() << ToString(compiled.error());
      return found;
    }
    for (std::int32_t way = 0; way < 16; ++way) {
      found.push_back(compiled->machine.chunk.route(RankId(0), RankId(63), way));
      EXPECT_FALSE(found.back().empty()) << "between pods lie switches";
    }
    return found;
  };
  using network::Routing;
  EXPECT_EQ(ways(Routing::kAdaptive, 1), ways(Routing::kAdaptive, 2)) << "a round robin";
  EXPECT_NE(ways(Routing::kEcmp, 1), ways(Routing::kAdaptive, 1));
  EXPECT_NE(ways(Routing::kEcmp, 1), ways(Routing::kEcmp, 2)) << "a hash of the seed";
}

// ---- an edge list ----

constexpr const char* kListed = R"(
model: llama3-8b
cluster: edge-list-example
nodes: 4
parallel: {tensor: 8, pipeline: 1, data: 4}
training: {sequence_length: 8192, micro_batch: 1, global_batch: 8}
overlap: {gradient_reduce: false, parameter_gather: false}
network: {fidelity: flow, interference: false}
)";

TEST(EdgeLists, AreFabricsLikeAnyOther) {
  // Eight rings of four nodes in order, a hop each way between the leaves: per direction eight
  // times 0.96 of a GPU's quarter of a NIC, 2 x 0.96 NICs in all, through one of a NIC's width.
  const Simulation flow = MustRun(kListed, {});
  const Simulation alone = MustRun(kListed, {"network.fidelity=endpoint"});
  EXPECT_NEAR(
      ToSeconds(Family(flow.report, "dp").total) / ToSeconds(Family(alone.report, "dp").total),
      2 * 0.96, 0.02);
  EXPECT_NEAR(static_cast<double>(MustRun(kListed, {}, true).report.step_time.count()),
              static_cast<double>(flow.report.step_time.count()), 1000.0);
  const std::string cut = Trouble(kListed, Perturbed({}, "[{kind: switch_down, switches: [top]}]"));
  EXPECT_NE(cut.find("the fabric is partitioned: no way from node1/gpu0 to node2/gpu0"),
            std::string::npos)
      << cut;
}

TEST(EdgeLists, ACableWithoutCapacityAndAnIslandAreErrorsWithTheirPlace) {
  EXPECT_NE(Trouble(kListed, {"cluster.fabric.edges=[{from: node0/nic0, to: west, bandwidth: 0 "
                              "Gb/s}]"})
                .find("edges.0.bandwidth: must not be zero"),
            std::string::npos);
  EXPECT_NE(Trouble(kListed, {"cluster.nic.bandwidth=0 Gb/s"}).find("bandwidth: must not be zero"),
            std::string::npos);
  const std::string island = Trouble(
      kListed, {"nodes=1", "parallel.data=1",
                "cluster.fabric.edges=[{from: node0/nic0, to: west, bandwidth: 1 Gb/s}, {from: "
                "node0/nic1, to: east, bandwidth: 1 Gb/s}]"});
  EXPECT_NE(island.find("the fabric is partitioned: node0/gpu0 cannot reach"), std::string::npos)
      << island;
}

// ---- one slow GPU ----

TEST(Straggler, OneGpuInAThousandCostsWhatTheLongestPathSays) {
  const std::vector<std::string> base = {"training.global_batch=64", "network.fidelity=alpha-beta",
                                         "network.interference=false"};
  const auto run = [&](const std::vector<std::string>& overrides, bool unfold) {
    SimulateOptions options;
    options.unfold = unfold;
    return SimulateShipped("llama3-405b-1024xh100-bf16", overrides, options);
  };
  const std::vector<std::string> slow =
      Perturbed(base, "[{kind: gpu_speed, ranks: [317], factor: 95 %}]");
  const Simulation nominal = run(base, false);
  const Simulation folded = run(slow, false);
  const Simulation unfolded = run(slow, true);
  EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
  EXPECT_LT(folded.report.simulated_ranks, 256);
  EXPECT_EQ(unfolded.report.simulated_ranks, 1024);
  // The sweep has no events: its end is the length of the longest path.
  runtime::RunOptions options;
  options.perturbations = folded.compiled.perturbations;
  const auto path =
      runtime::EvaluateStatic(folded.compiled.program, folded.compiled.machine, options);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->end, folded.result.end);
  // It lies on the path in the steady phase, not in all of it.
  const double cost =
      ToSeconds(folded.report.step_time) / ToSeconds(nominal.report.step_time) - 1.0;
  EXPECT_GT(cost, 0.02);
  EXPECT_LT(cost, 1.0 / 0.95 - 1.0);
}

// ---- chunks ----

// Eight GPUs on each of two nodes: rings within a node, across nodes, and messages.
constexpr const char* kSmall = R"(
model: llama3-8b
cluster: dgx-h100-superpod
nodes: 2
parallel: {tensor: 4, pipeline: 2, data: 2}
training: {sequence_length: 8192, micro_batch: 1, global_batch: 4}
network: {fidelity: flow, interference: false}
)";

TEST(Chunks, AreWithinFivePercentOfTheFluidsKindByKind) {
  const Simulation flow = MustRun(kSmall, {});
  const Simulation chunk = MustRun(kSmall, {"network.fidelity=chunk"});
  for (const char* family : {"tp", "pp", "dp"}) {
    const double fluid = ToSeconds(Family(flow.report, family).total);
    const double cut = ToSeconds(Family(chunk.report, family).total);
    EXPECT_GT(fluid, 0.0) << family;
    EXPECT_NEAR(cut / fluid, 1.0, 0.05) << family;
    EXPECT_EQ(Family(chunk.report, family).bytes, Family(flow.report, family).bytes) << family;
  }
  EXPECT_NEAR(ToSeconds(chunk.report.step_time) / ToSeconds(flow.report.step_time), 1.0, 0.02);
}

TEST(Chunks, AreForSmallRunsOnly) {
  EXPECT_NE(Trouble(kTwoUnits, {"network.fidelity=chunk"})
                .find("chunk validates runs of up to 64 GPUs, not 512"),
            std::string::npos);
  EXPECT_NE(Trouble(kSmall, Perturbed({"network.fidelity=chunk"},
                                      "[{kind: gpu_speed, factor: 0.5, until: 1 s}]"))
                .find("perturbations.0: network.fidelity chunk knows no windows"),
            std::string::npos);
}

TEST(Chunks, DoNotDependOnTheOrderOfTies) {
  const auto loaded = Load(kSmall, {"network.fidelity=chunk"});
  ASSERT_TRUE(loaded);
  SimulateOptions options;
  const Simulation straight = MustSimulate(*loaded, options);
  options.shuffle_ties = 77;
  EXPECT_EQ(MustSimulate(*loaded, options).report.fingerprint, straight.report.fingerprint);
}

// ---- imbalance ----

constexpr const char* kExperts = R"(
model: mixtral-8x7b
cluster: dgx-h100-superpod
nodes: 4
parallel: {tensor: 1, pipeline: 4, expert: 8, data: 8}
training: {sequence_length: 4096, micro_batch: 1, global_batch: 64}
network: {fidelity: alpha-beta, interference: false}
)";

TEST(ExpertImbalance, SlowsTheStepFoldsExactlyAndIsTheSameForBothEvaluators) {
  const std::vector<std::string> uneven =
      Perturbed({}, "[{kind: expert_imbalance, sigma: 20 %, seed: 3}]");
  const Simulation even = MustRun(kExperts, {});
  const Simulation folded = MustRun(kExperts, uneven);
  const Simulation unfolded = MustRun(kExperts, uneven, true);
  EXPECT_GT(folded.report.step_time, even.report.step_time);
  EXPECT_EQ(folded.report.step_time, unfolded.report.step_time);
  EXPECT_EQ(folded.report.peak_memory, unfolded.report.peak_memory);
  runtime::RunOptions options;
  options.perturbations = folded.compiled.perturbations;
  const auto swept =
      runtime::EvaluateStatic(folded.compiled.program, folded.compiled.machine, options);
  ASSERT_TRUE(swept);
  EXPECT_EQ(swept->fingerprint, folded.result.fingerprint);
}

TEST(ExpertImbalance, TheFullestGpuHoldsWhatAnEvenlyFullOneHolds) {
  const auto loaded = Load(kExperts, {});
  const auto fuller = Load(kExperts, {"experts.load_factor=1.5"});
  ASSERT_TRUE(loaded && fuller);
  const Simulation mean = MustSimulate(*loaded, {});
  const Simulation full = MustSimulate(*fuller, {});
  const program::Program& program = mean.compiled.program;
  const auto peak_at = [&](const Simulation& run, double load) {
    return metrics::TraceMemory(program.programs[0], run.result.ranks[0],
                                [&](std::int16_t) { return load; })
        .peak;
  };
  EXPECT_NEAR(static_cast<double>(peak_at(mean, 1.5).value()),
              static_cast<double>(full.report.stages[0].peak_memory.value()), 1e4);
  EXPECT_EQ(peak_at(mean, 1.0), mean.report.stages[0].peak_memory);
  EXPECT_GT(full.report.stages[0].peak_memory, mean.report.stages[0].peak_memory);
  // Drawn loads differ, and the report speaks of the GPU that has most.
  const Simulation uneven =
      MustRun(kExperts, Perturbed({}, "[{kind: expert_imbalance, sigma: 20 %, seed: 3}]"));
  EXPECT_GT(uneven.report.peak_memory, mean.report.peak_memory);
}

}  // namespace
}  // namespace quadrille::simulate
