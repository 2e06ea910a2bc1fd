// Tables of measured GEMMs that descriptions of GPUs name.
#include "sim/scenario/gemm_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/compute/gemm_residuals.h"
#include "sim/scenario/scenario_loader.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

namespace fs = std::filesystem;
using compute::GemmFormat;

constexpr model::GemmShape kShape{.m = 4096, .n = 4096, .k = 4096};

// A directory of descriptions with the GPU `mine`, which is `plain` with a table.
class GemmTables : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "gemm-tables-" + std::to_string(getpid());
    fs::create_directories(root_ + "/gpus");
    Describe("mine", "[mine.csv]");
    Measure("mine", 1.0);
  }
  void TearDown() override { fs::remove_all(root_); }

  void Describe(const std::string& name, const std::string& tables) const {
    std::ofstream(root_ + "/gpus/" + name + ".yaml")
        << "name: " << name << "\nbase: plain\nefficiency: {gemm_tables: " << tables << "}\n";
  }
  // Shapes that all run at 50 TFLOP/s, half of the peak of `plain`, times `factor`.
  void Measure(const std::string& name, double factor) const {
    std::ofstream file(root_ + "/gpus/" + name + ".csv");
    file << "dtype,m,n,k,time_us\n# source: invented for tests\n";
    for (const int m : {2048, 4096, 8192}) {
      for (const int n : {2048, 4096, 8192}) {
        for (const int k : {2048, 4096, 8192}) {
          const double flops = 2.0 * m * n * k;
          file << "bf16," << m << ',' << n << ',' << k << ',' << factor * flops / 50e6 << '\n';
        }
      }
    }
  }
  [[nodiscard]] LoadOptions Options(std::vector<std::string> overrides) const {
    LoadOptions options = TestLibrary();
    options.scenario_path = {root_};
    options.overrides = std::move(overrides);
    return options;
  }
  [[nodiscard]] Scenario Load(std::vector<std::string> overrides) const {
    auto scenario = LoadScenarioText(SmallRun(), "small.yaml", Options(std::move(overrides)));
    if (scenario) return *scenario;
    ADD_FAILURE() << ToString(scenario.error());
    return {};
  }
  [[nodiscard]] std::string Problems(std::vector<std::string> overrides) const {
    const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", Options(std::move(overrides)));
    return scenario ? "" : ToString(scenario.error());
  }
  [[nodiscard]] double Factor(std::vector<std::string> overrides) const {
    const Scenario s = Load(std::move(overrides));
    if (s.efficiency.gemm_residuals == nullptr) return 1.0;
    return s.efficiency.gemm_residuals->Factor(kShape, GemmFormat::k16Bit);
  }

  std::string root_;
};

TEST_F(GemmTables, CorrectTheFormulaUnlessTheRunWantsItAlone) {
  const Scenario mine = Load({"cluster.gpu=mine"});
  EXPECT_EQ(mine.compute_fidelity, compute::Fidelity::kTable);
  ASSERT_NE(mine.efficiency.gemm_residuals, nullptr);
  const double factor = mine.efficiency.gemm_residuals->Factor(kShape, GemmFormat::k16Bit);
  EXPECT_GT(factor, 1.3) << "measured at half of the peak, predicted at four fifths";
  EXPECT_LT(factor, 1.7);
  EXPECT_EQ(Load({"cluster.gpu=mine", "kernels.fidelity=analytic"}).compute_fidelity,
            compute::Fidelity::kAnalytic);
  EXPECT_EQ(Load({}).compute_fidelity, compute::Fidelity::kAnalytic);
  EXPECT_EQ(Load({}).efficiency.gemm_residuals, nullptr);
}

TEST_F(GemmTables, ArePartOfTheHashAndCiteTheirSource) {
  const Scenario mine = Load({"cluster.gpu=mine"});
  const auto& sources = mine.efficiency.sources;
  EXPECT_TRUE(std::any_of(sources.begin(), sources.end(), [](const auto& note) {
    return note.constant == "gemm_tables.mine" && note.source == "invented for tests" &&
           note.kind == compute::ConstantSource::Kind::kMeasured;
  }));
  Measure("mine", 1.1);
  EXPECT_NE(Load({"cluster.gpu=mine"}).hash, mine.hash);
}

TEST_F(GemmTables, DoNotTakeBackWhatARunChangesOfItsGpu) {
  const double factor = Factor({"cluster.gpu=mine"});
  EXPECT_EQ(Factor({"cluster.gpu=mine", "cluster.gpu.peak_16bit=200 TFLOP/s"}), factor);
  EXPECT_EQ(Factor({"cluster.gpu=mine", "cluster.gpu.efficiency.gemm_16bit.peak_share=0.4"}),
            factor);
}

TEST_F(GemmTables, AreComparedWithTheFormulaThatAnOverlayFits) {
  const double factor = Factor({"cluster.gpu=mine"});
  std::ofstream(root_ + "/fitted.yaml")
      << "gpus: {mine: {efficiency: {gemm_16bit: {peak_share: 0.6}}}}\n";
  EXPECT_LT(Factor({"include=" + root_ + "/fitted.yaml", "cluster.gpu=mine"}), factor);
}

TEST_F(GemmTables, OfAnotherGpuAddToTheOwnAndAreComparedWithItsFormula) {
  Describe("kin", "[kin.csv]");
  Measure("kin", 1.0);
  const double alone = Factor({"cluster.gpu=kin"});
  EXPECT_EQ(alone, Factor({"cluster.gpu=mine"}));
  Describe("kin", "[kin.csv, mine.csv]");
  const double both = Factor({"cluster.gpu=kin"});
  EXPECT_GT(both, alone) << "27 rows more that say the same";
  // Described as slower, `mine` is no longer slower than described.
  std::ofstream(root_ + "/gpus/mine.yaml")
      << "name: mine\nbase: plain\npeak_16bit: 60 TFLOP/s\nefficiency: {gemm_tables: [mine.csv]}\n";
  EXPECT_LT(Factor({"cluster.gpu=kin"}), both);
}

TEST_F(GemmTables, ProblemsSayWhere) {
  const std::string file = root_ + "/gpus/mine.yaml";
  Describe("mine", "[nowhere.csv]");
  EXPECT_EQ(Problems({"cluster.gpu=mine"}),
            file + ":3:28: " + root_ + "/gpus/nowhere.csv: no such file");
  Describe("mine", "[mine.csv, mine.csv]");
  EXPECT_EQ(Problems({"cluster.gpu=mine"}), file + ":3:38: mine.csv is named twice");
  Describe("mine", "mine.csv");
  EXPECT_NE(Problems({"cluster.gpu=mine"}).find(file + ":3:27: "), std::string::npos);
  Describe("mine", "[other.csv]");
  Measure("other", 1.0);
  EXPECT_NE(Problems({"cluster.gpu=mine"}).find("there is no GPU named 'other'"),
            std::string::npos);
  Describe("mine", "[mine.csv]");
  std::ofstream(root_ + "/gpus/mine.csv") << "dtype,m,n,k,time_us\nbf16,1,2,x,4\n";
  EXPECT_EQ(Problems({"cluster.gpu=mine"}),
            root_ + "/gpus/mine.csv:2:10: k 'x' is not a positive integer");
  std::ofstream(root_ + "/gpus/mine.csv") << "dtype,m,n,k\n";
  EXPECT_EQ(Problems({"cluster.gpu=mine"}), root_ + "/gpus/mine.csv:1:1: no column 'time_us'");
}

// The rule that drops formats whose correction does not hold on shapes left out leaves all that is
// shipped: a table that brings nothing is not to be shipped.
TEST(ShippedGemmTables, HelpOnShapesLeftOut) {
  LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  const auto formats = [&](const std::string& gpu) {
    options.overrides = {"cluster.gpu=" + gpu};
    const auto s = LoadScenarioText(
        "model: {layers: 1, hidden: 64, ffn_hidden: 256, heads: 1, vocabulary: 128}\n"
        "cluster: dgx-h100-superpod\ngpus: 1\nkernels: {attention: unfused}\n"
        "training: {sequence_length: 128, global_batch: 1, precision: fp16}\n",
        "run.yaml", options);
    EXPECT_TRUE(s) << ToString(s.error());
    std::string kept;
    if (!s || s->efficiency.gemm_residuals == nullptr) return kept;
    const auto& residuals = *s->efficiency.gemm_residuals;
    if (residuals.HelpsOnShapesLeftOut(GemmFormat::k16Bit)) kept += "16bit ";
    if (residuals.HelpsOnShapesLeftOut(GemmFormat::kFp8)) kept += "fp8 ";
    if (residuals.HelpsOnShapesLeftOut(GemmFormat::kFp8Block)) kept += "fp8_block ";
    if (residuals.HelpsOnShapesLeftOut(GemmFormat::kFp4)) kept += "fp4 ";
    return kept;
  };
  EXPECT_EQ(formats("v100-sxm"), "") << "nothing is shipped";
  EXPECT_EQ(formats("a100-pcie"), "16bit ");
  EXPECT_EQ(formats("a100-sxm-80gb"), "16bit ");
  EXPECT_EQ(formats("a100-sxm-40gb"), "16bit ") << "by its base";
  EXPECT_EQ(formats("h100-sxm"), "16bit fp8 ");
  EXPECT_EQ(formats("h200-sxm"), "16bit fp8 ");
  EXPECT_EQ(formats("b200"), "16bit fp8 fp4 ");
  EXPECT_EQ(formats("gb200"), "16bit fp8 ");
  EXPECT_EQ(formats("b300"), "16bit ");
  EXPECT_EQ(formats("gb300"), "16bit ");
}

}  // namespace
}  // namespace quadrille::scenario
