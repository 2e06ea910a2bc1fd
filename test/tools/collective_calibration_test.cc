#include "tools/validate/collective_calibration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "sim/scenario/scenario_loader.h"
#include "tools/validate/collective_pricing.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/statistics.h"

namespace quadrille::tools {
namespace {

using model::CollectiveKind;

scenario::LoadOptions Shipped() {
  scenario::LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  return options;
}

MeasuredCollective Row(CollectiveKind kind, int nodes, std::int64_t bytes,
                       const std::string& cluster = "dgx-h100-superpod") {
  MeasuredCollective row;
  row.system = "mine";
  row.cluster = cluster;
  row.kind = kind;
  row.nodes = nodes;
  row.gpus = 8 * nodes;
  row.bytes = Bytes(bytes);
  return row;
}

// Rows of 1 MiB to 8 GiB, priced on `cluster` after `change`.
std::vector<MeasuredCollective> Synthetic(
    const std::vector<std::pair<CollectiveKind, int>>& kinds_and_nodes,
    const std::function<void(network::CollectiveConstants*)>& change,
    const std::string& cluster = "dgx-h100-superpod") {
  HardwareLibrary library(Shipped());
  const scenario::Scenario* hardware = library.Find(cluster, "");
  network::CollectiveConstants constants = hardware->collectives;
  change(&constants);
  std::vector<MeasuredCollective> rows;
  for (const auto& [kind, nodes] : kinds_and_nodes) {
    for (std::int64_t bytes = std::int64_t{1} << 20; bytes <= std::int64_t{8} << 30; bytes *= 4) {
      rows.push_back(Row(kind, nodes, bytes, cluster));
      rows.back().measured_s = CollectiveSeconds(rows.back(), hardware->cluster, constants);
    }
  }
  return rows;
}

CollectiveFit Fit(const std::vector<MeasuredCollective>& rows,
                  std::vector<std::string> constants = {},
                  const CollectiveOwner& owner = {"dgx-h100-superpod", false}) {
  CollectiveCalibrationOptions options;
  options.constants = std::move(constants);
  options.threads = 1;
  auto fit = FitCollectives(rows, owner, options, Shipped());
  EXPECT_TRUE(fit);
  return fit ? std::move(*fit) : CollectiveFit{};
}

const FreedConstant* Freed(const CollectiveFit& fit, std::string_view key) {
  for (const FreedConstant& freed : fit.freed) {
    if (freed.constant->key == key) return &freed;
  }
  return nullptr;
}

double Median(const std::vector<double>& errors) { return Summarise(errors).median; }

TEST(FitCollectives, FindsWhatASiteDiffersBy) {
  const auto rows = Synthetic({{CollectiveKind::kAllGather, 2}}, [](auto* c) {
    c->network_latency = FromSeconds(70e-6);
    c->ring_nic_efficiency = 0.8;
  });
  const CollectiveFit fit = Fit(rows);
  EXPECT_GT(Median(fit.errors_before), 0.1);
  EXPECT_LT(Median(fit.errors_after), 0.01);
  EXPECT_LT(Median(fit.errors_without_size), 0.01);
  ASSERT_NE(Freed(fit, "ring_nic_efficiency"), nullptr);
  EXPECT_NEAR(Freed(fit, "ring_nic_efficiency")->value, 0.8, 0.01);
  EXPECT_EQ(Freed(fit, "ring_nic_efficiency")->before, 0.96);
  EXPECT_EQ(fit.freed.size(), 2U) << "no more constants than there are differences";
  EXPECT_TRUE(fit.errors_without_system.empty()) << "one system alone";
}

TEST(FitCollectives, TakesALawApartIntoItsThreeConstants) {
  const auto rows = Synthetic({{CollectiveKind::kAllReduce, 1}}, [](auto* c) {
    c->nvlink_all_reduce = {FromSeconds(40e-6), BytesPerSecond(430e9), FromSeconds(12e-6)};
  });
  const CollectiveFit fit = Fit(rows, {"nvlink_all_reduce"});
  ASSERT_EQ(fit.freed.size(), 3U);
  EXPECT_NEAR(Freed(fit, "nvlink_all_reduce.alpha")->value, 40e-6, 2e-6);
  EXPECT_NEAR(Freed(fit, "nvlink_all_reduce.bandwidth")->value, 430e9, 4e9);
  EXPECT_NEAR(Freed(fit, "nvlink_all_reduce.gamma_per_sqrt_megabyte")->value, 12e-6, 1e-6);
}

TEST(FitCollectives, AWrongRowMovesLittle) {
  auto rows = Synthetic({{CollectiveKind::kAllGather, 2}, {CollectiveKind::kReduceScatter, 2}},
                        [](auto* c) { c->ring_nic_efficiency = 0.8; });
  rows[3].measured_s *= 4.0;
  const CollectiveFit fit = Fit(rows, {"ring_nic_efficiency"});
  EXPECT_NEAR(Freed(fit, "ring_nic_efficiency")->value, 0.8, 0.01);
}

TEST(FitCollectives, FreesNothingThatTheRowsDoNotTell) {
  auto rows =
      Synthetic({{CollectiveKind::kAllGather, 2}}, [](auto* c) { c->ring_nic_efficiency = 0.8; });
  rows.resize(2);
  const CollectiveFit few = Fit(rows);
  EXPECT_TRUE(few.freed.empty());
  EXPECT_EQ(few.errors_before.size(), 2U) << "still said";
  const auto kept = std::find_if(few.kept.begin(), few.kept.end(),
                                 [](const auto& k) { return k.key == "ring_nic_efficiency"; });
  ASSERT_NE(kept, few.kept.end());
  EXPECT_EQ(kept->reason, "1 constants need 3 rows, there are 2");
  // Asked for, and of another collective.
  const CollectiveFit other =
      Fit(Synthetic({{CollectiveKind::kAllGather, 2}}, [](auto*) {}), {"network_send_receive"});
  EXPECT_TRUE(other.freed.empty());
  ASSERT_EQ(other.kept.size(), 2U);
  EXPECT_EQ(other.kept[0].reason, "no row depends on it");
  // Rows that the shipped constants predict to the picosecond leave nothing to free.
  EXPECT_TRUE(Fit(Synthetic({{CollectiveKind::kAllGather, 2}}, [](auto*) {})).freed.empty());
}

TEST(FitCollectives, LeavesOutWhatHasNoTimeNoKindOrIsTooSmall) {
  auto rows = Synthetic({{CollectiveKind::kAllGather, 2}}, [](auto*) {});
  const std::size_t all = rows.size();
  rows[1].measured_s = 0.0;
  rows[2].kind.reset();
  rows[3].bytes = Bytes(1024);
  rows[4].cluster = "dgx-a100-superpod";
  EXPECT_EQ(Fit(rows).rows.size(), all - 4);
  EXPECT_TRUE(Fit({}).rows.empty());
}

// The machines that a table prices teach it together; a site is not asked where its own constants
// matter.
TEST(FitCollectives, FitsATableToAllThatItPrices) {
  const auto faster = [](auto* c) { c->nvlink_all_reduce.bandwidth = BytesPerSecond(440e9); };
  auto rows = Synthetic({{CollectiveKind::kAllReduce, 1}}, faster, "dgx-h100-superpod");
  const auto second = Synthetic({{CollectiveKind::kAllReduce, 1}}, faster, "dgx-h200-superpod");
  rows.insert(rows.end(), second.begin(), second.end());
  for (std::size_t i = second.size(); i < rows.size(); ++i) rows[i].system = "other";
  const std::size_t priced = rows.size();
  const auto site = Synthetic(
      {{CollectiveKind::kAllReduce, 2}}, [](auto*) {}, "aws-p5-h100");
  rows.insert(rows.end(), site.begin(), site.end());
  const CollectiveFit fit = Fit(rows, {"nvlink_all_reduce.bandwidth"}, {"h100", true});
  EXPECT_EQ(fit.rows.size(), priced) << "EFA has latencies of its own";
  ASSERT_EQ(fit.freed.size(), 1U);
  EXPECT_NEAR(fit.freed[0].value, 440e9, 2e9);
  EXPECT_EQ(fit.errors_without_system.size(), priced);
}

TEST(FitCollectives, RefusesAClusterThatIsNone) {
  const auto rows = std::vector{Row(CollectiveKind::kAllGather, 2, 1 << 30, "nowhere")};
  auto timed = rows;
  timed[0].measured_s = 1.0;
  EXPECT_FALSE(FitCollectives(timed, {"nowhere", false}, {}, Shipped()));
}

// A run that includes what is written prices collectives as the fit does.
TEST(CollectiveOverlayText, IsTakenByARun) {
  const auto rows =
      Synthetic({{CollectiveKind::kAllGather, 2}, {CollectiveKind::kAllReduce, 1}}, [](auto* c) {
        c->network_latency = FromSeconds(70e-6);
        c->nvlink_all_reduce.bandwidth = BytesPerSecond(430e9);
      });
  const std::vector<std::string> constants = {"network_latency", "nvlink_all_reduce.bandwidth"};
  for (const CollectiveOwner& owner :
       {CollectiveOwner{"dgx-h100-superpod", false}, CollectiveOwner{"h100", true}}) {
    const CollectiveFit fit = Fit(rows, constants, owner);
    const std::string file = fmt::format("{}/overlay-{}.yaml", ::testing::TempDir(), owner.name);
    std::ofstream(file) << CollectiveOverlayText({fit}, "my \"own\" rows.csv");
    const auto run = scenario::LoadScenarioText(
        fmt::format("model: {{layers: 1, hidden: 64, ffn_hidden: 256, heads: 1, vocabulary: 128}}\n"
                    "include: {}\ncluster: dgx-h100-superpod\ngpus: 1\n"
                    "training: {{sequence_length: 128, global_batch: 1}}\n",
                    file),
        "run.yaml", Shipped());
    ASSERT_TRUE(run) << ToString(run.error());
    EXPECT_NEAR(ToSeconds(run->collectives.network_latency), 70e-6, 1e-6);
    EXPECT_NEAR(run->collectives.nvlink_all_reduce.bandwidth.value(), 430e9, 2e9);
    EXPECT_EQ(run->collectives.nvlink_all_reduce.alpha, fit.constants.nvlink_all_reduce.alpha);
    EXPECT_EQ(run->collectives.ring_nic_efficiency, 0.96) << "what was not fitted stays";
  }
}

TEST(AllCollectiveConstants, CanBeReadAndSetWithinTheirBounds) {
  network::CollectiveConstants constants;
  for (const CollectiveConstant& constant : AllCollectiveConstants()) {
    const double middle = 0.5 * (constant.lower + constant.upper);
    constant.set(&constants, middle);
    EXPECT_NEAR(constant.get(constants), middle, 1e-6 * middle) << constant.key;
    EXPECT_TRUE(Names(constant.key, constant));
  }
  EXPECT_TRUE(Names("nvlink_all_reduce", AllCollectiveConstants()[8]));
  EXPECT_FALSE(Names("nvlink_all", AllCollectiveConstants()[8]));
}

}  // namespace
}  // namespace quadrille::tools
