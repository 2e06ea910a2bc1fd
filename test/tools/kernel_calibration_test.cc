// Constants come back from tables that were made with them.
#include "tools/validate/kernel_calibration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario_loader.h"
#include "tools/validate/csv_table.h"

namespace quadrille::tools {
namespace {

scenario::LoadOptions Shipped() {
  scenario::LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  return options;
}

// A table whose times are those of the shipped constants after `change`.
class Table {
 public:
  Table(std::string header, const std::vector<std::string>& rows,
        const std::function<void(compute::GpuEfficiency*)>& change)
      : library_(Shipped()) {
    std::string text = std::move(header) + ",time_us\n";
    for (const std::string& row : rows) text += row + ",1\n";
    kernels_ = ReadKernelTable(CsvTable::Parse(text, "t.csv").value(), library_).value();
    truth_ = kernels_.front().hardware->efficiency;
    change(&truth_);
    for (MeasuredKernel& kernel : kernels_) kernel.measured_s = PredictedSeconds(kernel, truth_);
  }

  // Every `period`-th kernel is measured `factor` times too slow.
  void Spoil(std::size_t period, double factor) {
    for (std::size_t i = 0; i < kernels_.size(); i += period) kernels_[i].measured_s *= factor;
  }

  [[nodiscard]] KernelCalibrationReport Fit(KernelCalibrationOptions options = {}) const {
    options.threads = 1;
    return CalibrateKernels(kernels_, options);
  }

  [[nodiscard]] const compute::GpuEfficiency& shipped() const {
    return kernels_.front().hardware->efficiency;
  }
  [[nodiscard]] const compute::GpuEfficiency& truth() const { return truth_; }
  [[nodiscard]] std::vector<MeasuredKernel>& kernels() { return kernels_; }
  [[nodiscard]] const topology::GpuSpec& gpu() const { return kernels_.front().hardware->gpu; }

 private:
  HardwareLibrary library_;
  std::vector<MeasuredKernel> kernels_;
  compute::GpuEfficiency truth_;
};

constexpr const char* kGemmColumns = "gpu,dtype,layout,inputs,m,n,k";

std::vector<std::string> GemmRows(const std::string& head) {
  std::vector<std::string> rows;
  for (const int m : {1024, 2048, 4096, 16384}) {
    for (const int n : {512, 2048, 5120, 12288}) {
      for (const int k : {256, 1024, 4096, 16384}) {
        rows.push_back(fmt::format("{},{},{},{}", head, m, n, k));
      }
    }
  }
  return rows;
}

void FasterHopper(compute::GpuEfficiency* efficiency) {
  compute::GemmConstants& c = efficiency->gemm_16bit;
  c.peak_share = 0.9;
  c.prologue_k = 60;
  c.launch = FromSeconds(4e-6);
  c.bandwidth_share = 0.7;
}

const FittedKernelConstant& Constant(const KernelFit& fit, const std::string& key) {
  for (const FittedKernelConstant& constant : fit.constants) {
    if (constant.key == key) return constant;
  }
  ADD_FAILURE() << key;
  return fit.constants.front();
}

double Median(const std::vector<double>& errors) { return Summarise(errors).median; }

// Mean logarithm of what the GEMMs of a training step take.
double StepRate(const topology::GpuSpec& gpu, const compute::GemmConstants& constants) {
  double sum = 0.0;
  const auto shapes = SustainedGemms();
  for (const model::GemmShape& shape : shapes) {
    sum += std::log(compute::GemmSeconds(gpu, constants, shape, DataType::kBf16, {}));
  }
  return sum / static_cast<double>(shapes.size());
}

TEST(CalibrateKernels, FindsTheConstantsThatMadeATableOfGemms) {
  const Table table(kGemmColumns, GemmRows("H100-SXM,bfloat16,TN,randn"), FasterHopper);
  const KernelCalibrationReport report = table.Fit();
  ASSERT_EQ(report.fits.size(), 1U);
  const KernelFit& fit = report.fits.front();
  EXPECT_EQ(fit.gpu, "h100-sxm");
  EXPECT_EQ(fit.section.name, "gemm_16bit");
  EXPECT_GT(Median(fit.errors_before), 0.05);
  EXPECT_LT(Median(fit.errors_after), 0.01);
  EXPECT_LT(Median(fit.errors_cross_validated), 0.01);
  EXPECT_NEAR(Constant(fit, "peak_share").value, 0.9, 0.02);
  EXPECT_NEAR(Constant(fit, "launch").value, 4.0, 0.2);
  EXPECT_NEAR(Constant(fit, "bandwidth_share").value, 0.7, 0.02);
  EXPECT_EQ(report.fitted.at("h100-sxm").gemm_16bit.peak_share, Constant(fit, "peak_share").value);
}

TEST(CalibrateKernels, EveryNinthKernelThreeTimesTooSlowDoesNotMoveThem) {
  Table table(kGemmColumns, GemmRows("H100-SXM,bfloat16,TN,randn"), FasterHopper);
  table.Spoil(9, 3.0);
  const KernelCalibrationReport report =
      table.Fit({.folds = 0, .loss = {.outlier = 0.1, .tail = 0.0}});
  const KernelFit& fit = report.fits.front();
  EXPECT_TRUE(fit.errors_cross_validated.empty());
  EXPECT_LT(Median(fit.errors_after), 0.01);
  EXPECT_NEAR(Constant(fit, "peak_share").value, 0.9, 0.02);
  EXPECT_NEAR(Constant(fit, "launch").value, 4.0, 0.3);
}

TEST(CalibrateKernels, TheDroopFollowsSuchThatAStepKeepsItsRateUnlessItIsFreed) {
  const Table table(kGemmColumns, GemmRows("H100-SXM,bfloat16,TN,randn"),
                    [](compute::GpuEfficiency* e) {
                      e->gemm_16bit.peak_share = 0.9;
                      e->gemm_16bit.sustained_droop = 0.3;
                    });
  const double before = StepRate(table.gpu(), table.shipped().gemm_16bit);
  const KernelCalibrationReport held = table.Fit({.folds = 0});
  EXPECT_EQ(Constant(held.fits.front(), "sustained_droop").held, kFollowsSteps);
  EXPECT_NEAR(StepRate(table.gpu(), held.fitted.at("h100-sxm").gemm_16bit), before, 0.003);
  const KernelCalibrationReport freed = table.Fit({.freed = {.sustained_droop = true}, .folds = 0});
  EXPECT_EQ(Constant(freed.fits.front(), "sustained_droop").held, "");
  EXPECT_NEAR(Constant(freed.fits.front(), "sustained_droop").value, 0.3, 0.05);
  EXPECT_GT(std::abs(StepRate(table.gpu(), freed.fitted.at("h100-sxm").gemm_16bit) - before), 0.01);
}

TEST(CalibrateKernels, TellsTheCastFromTheGemmAndHoldsWhatIsMeasuredWithItOnly) {
  const Table table(kGemmColumns, GemmRows("H100-SXM,fp8,TN,randn; incl. activation quantisation"),
                    [](compute::GpuEfficiency* e) {
                      e->gemm_fp8.operand_cast_launch = FromSeconds(12e-6);
                      e->gemm_fp8.operand_cast_bytes = 4.0;
                    });
  const KernelCalibrationReport report = table.Fit({.folds = 0});
  const KernelFit& fit = report.fits.front();
  EXPECT_NEAR(Constant(fit, "operand_cast_launch").value, 12.0, 0.7);
  EXPECT_NEAR(Constant(fit, "operand_cast_bytes").value, 4.0, 0.4);
  EXPECT_EQ(Constant(fit, "launch").value, Constant(fit, "launch").initial);
  EXPECT_NE(Constant(fit, "launch").held, "");
  EXPECT_NE(Constant(fit, "burst_dip_at").held, "");
}

TEST(CalibrateKernels, FewRowsMoveTheLevelAndFewerNothing) {
  std::vector<std::string> rows = GemmRows("H100-SXM,bfloat16,TN,randn");
  rows.resize(20);
  const KernelCalibrationReport twenty = Table(kGemmColumns, rows, FasterHopper).Fit({.folds = 0});
  EXPECT_EQ(Constant(twenty.fits.front(), "peak_share").held, "");
  EXPECT_EQ(Constant(twenty.fits.front(), "partial_wave").held, "too few rows");
  rows.resize(4);
  const KernelCalibrationReport four = Table(kGemmColumns, rows, FasterHopper).Fit();
  EXPECT_FALSE(four.fits.front().fitted);
  EXPECT_EQ(four.fits.front().errors_before, four.fits.front().errors_after);
  EXPECT_EQ(KernelOverlayText(four, {}, "t.csv").find("gpus:"), std::string::npos);
}

TEST(CalibrateKernels, AHeldConstantStaysAndAFamilyIsPredictedByTheOthers) {
  Table table(kGemmColumns, GemmRows("H100-SXM,bfloat16,TN,randn"), FasterHopper);
  std::size_t spoilt = 0;
  for (MeasuredKernel& kernel : table.kernels()) {
    const auto& shape = std::get<GemmQuestion>(kernel.question).shape;
    if (shape.n != 2048 || shape.k != 4096) continue;
    kernel.measured_s *= 2.0;
    ++spoilt;
  }
  const KernelCalibrationReport report = table.Fit({.held = {"launch"}, .folds = 4});
  const KernelFit& fit = report.fits.front();
  EXPECT_EQ(Constant(fit, "launch").value, Constant(fit, "launch").initial);
  EXPECT_EQ(Constant(fit, "launch").held, "as asked");
  std::size_t halved = 0;
  for (const double error : fit.errors_cross_validated) halved += error < -0.4 ? 1 : 0;
  EXPECT_EQ(halved, spoilt);
}

TEST(CalibrateKernels, FindsAttentionMeasuredForwardAndBothWaysTogether) {
  std::vector<std::string> rows;
  for (const char* pass : {"fwd", "fwd+bwd"}) {
    for (const int length : {512, 1024, 2048, 4096, 8192, 16384}) {
      for (const int heads : {8, 32}) {
        rows.push_back(fmt::format("A100-SXM,FlashAttention-2,bf16,{},1,1,{},{},{},128,128", pass,
                                   length, heads, heads));
      }
    }
  }
  std::size_t forward = 0;
  std::size_t backward = 0;
  const Table table(
      "gpu,impl,dtype,pass,causal,batch,seqlen,heads,kv_heads,qk_head_dim,v_head_dim", rows,
      [&](compute::GpuEfficiency* e) {
        for (std::size_t i = 0; i < e->attention.size(); ++i) {
          const auto& entry = e->attention[i];
          if (entry.backend != model::AttentionBackend::kFlash2 || entry.head_dim != 128) continue;
          if (entry.causal) (entry.backward ? backward : forward) = i;
        }
        e->attention[forward].asymptote = FlopsPerSecond(150e12);
        e->attention[backward].asymptote = FlopsPerSecond(120e12);
      });
  const KernelCalibrationReport report = table.Fit({.folds = 0});
  ASSERT_EQ(report.fits.size(), 1U);
  EXPECT_LT(Median(report.fits.front().errors_after), 0.01);
  const compute::GpuEfficiency& fitted = report.fitted.at("a100-sxm-80gb");
  EXPECT_NEAR(fitted.attention[forward].asymptote.value() * 1e-12, 150.0, 3.0);
  EXPECT_NEAR(fitted.attention[backward].asymptote.value() * 1e-12, 120.0, 3.0);
  EXPECT_EQ(fitted.attention[backward].launch, table.shipped().attention[backward].launch);
}

std::vector<std::string> CastRows() {
  std::vector<std::string> rows;
  for (int i = 0; i < 24; ++i) {
    rows.push_back(fmt::format("H100-SXM,cast_bf16_to_fp8_static,bf16,{},{}", 1024 << (i % 4),
                               200'000 * (i + 1) * (i + 1)));
  }
  return rows;
}

void SlowerCast(compute::GpuEfficiency* efficiency) {
  for (auto& entry : efficiency->measured_memory_bound) {
    if (entry.kernel != "cast_bf16_to_fp8_static") continue;
    entry.launch = FromSeconds(5e-6);
    entry.bandwidth_share = 0.6;
  }
}

TEST(CalibrateKernels, FindsMemoryBoundKernelsAndTheClassesOfAStepOnlyWhenFreed) {
  const Table table("gpu,op,dtype,cols,bytes", CastRows(), SlowerCast);
  const KernelCalibrationReport report = table.Fit({.folds = 0});
  EXPECT_NEAR(Constant(report.fits.front(), "launch").value, 5.0, 0.1);
  EXPECT_NEAR(Constant(report.fits.front(), "bandwidth_share").value, 0.6, 0.02);
  EXPECT_EQ(KernelOverlayText(report, {}, "t.csv").find("memory_bound:\n        bandwidth_share"),
            std::string::npos);
  EXPECT_NE(KernelOverlayText(report, {.memory_classes = true}, "t.csv")
                .find("memory_bound:\n        bandwidth_share:\n          cast: {value: 0."),
            std::string::npos);
}

TEST(KernelOverlay, IsWhatARunTakesByInclude) {
  std::vector<MeasuredKernel> kernels;
  const Table gemms(kGemmColumns, GemmRows("H100-SXM,bfloat16,TN,randn"), FasterHopper);
  const Table casts("gpu,op,dtype,cols,bytes", CastRows(), SlowerCast);
  std::vector<std::string> attention;
  for (const int length : {1024, 2048, 4096, 8192}) {
    attention.push_back(fmt::format("H100-SXM,cuDNN,bf16,fwd,1,4,{},16,16,128,128", length));
  }
  const Table forward(
      "gpu,impl,dtype,pass,causal,batch,seqlen,heads,kv_heads,qk_head_dim,v_head_dim", attention,
      [](compute::GpuEfficiency* e) {
        for (auto& entry : e->attention) entry.asymptote = entry.asymptote * 0.8;
      });
  for (const Table* table : {&gemms, &casts, &forward}) {
    const auto& rows = const_cast<Table*>(table)->kernels();
    kernels.insert(kernels.end(), rows.begin(), rows.end());
  }
  const KernelCalibrationReport report = CalibrateKernels(kernels, {.folds = 0, .threads = 1});
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "kernel_overlay_test.yaml";
  std::ofstream(path) << KernelOverlayText(report, {.memory_classes = true},
                                           "a \"quoted\" table.csv");
  const auto run = scenario::LoadScenarioText(
      fmt::format("model: {{layers: 1, hidden: 64, ffn_hidden: 256, heads: 1, vocabulary: 128}}\n"
                  "cluster: dgx-h100-superpod\ngpus: 1\ninclude: {}\n"
                  "training: {{sequence_length: 128, global_batch: 1, precision: bf16}}\n",
                  path.string()),
      "run.yaml", Shipped());
  std::filesystem::remove(path);
  ASSERT_TRUE(run) << ToString(run.error());
  const compute::GpuEfficiency& fitted = report.fitted.at("h100-sxm");
  const compute::GpuEfficiency& loaded = run->efficiency;
  EXPECT_EQ(loaded.gemm_16bit.peak_share, fitted.gemm_16bit.peak_share);
  EXPECT_EQ(loaded.gemm_16bit.launch, fitted.gemm_16bit.launch);
  EXPECT_EQ(loaded.gemm_fp8.peak_share, fitted.gemm_fp8.peak_share) << "not in the overlay";
  ASSERT_EQ(loaded.attention.size(), fitted.attention.size());
  for (std::size_t i = 0; i < loaded.attention.size(); ++i) {
    EXPECT_NEAR(loaded.attention[i].asymptote.value() / fitted.attention[i].asymptote.value(), 1.0,
                0.01)
        << i;
    EXPECT_EQ(loaded.attention[i].tail, fitted.attention[i].tail) << i;
  }
  ASSERT_EQ(loaded.measured_memory_bound.size(), fitted.measured_memory_bound.size());
  for (std::size_t i = 0; i < loaded.measured_memory_bound.size(); ++i) {
    EXPECT_NEAR(loaded.measured_memory_bound[i].bandwidth_share,
                fitted.measured_memory_bound[i].bandwidth_share, 1e-3)
        << i;
  }
  const auto cast = static_cast<std::size_t>(model::MemoryBoundClass::kCast);
  EXPECT_NEAR(loaded.memory_bound.bandwidth_share[cast], 0.6, 0.02);
}

TEST(KernelTable, SaysWhatIsWrongWithATable) {
  HardwareLibrary library(Shipped());
  const auto read = [&](const std::string& text) {
    return ReadKernelTable(CsvTable::Parse(text, "t.csv").value(), library);
  };
  EXPECT_FALSE(read("gpu,time_us\nH100-SXM,1\n"));
  const auto cell = read("gpu,dtype,m,n,k,time_us\nH100-SXM,bfloat16,many,1,1,1\n");
  ASSERT_FALSE(cell);
  EXPECT_NE(ToString(cell.error()).find("t.csv:2"), std::string::npos);
  const auto unknown = read("gpu,dtype,m,n,k,time_us\nH101,bfloat16,1,1,1,1\n");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->front().status, RowStatus::kSkipped);
  EXPECT_TRUE(CalibrateKernels(*unknown, {}).fits.empty());
}

}  // namespace
}  // namespace quadrille::tools
