#include "tools/validate/kernel_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/base/check.h"
#include "sim/base/parallel_for.h"

namespace quadrille::tools {
namespace {

using compute::GemmConstants;

// Constants stay as they are unless the loss falls below this share of what it is with them: fitted
// again to the rows that they were fitted to, they come out the same.
constexpr double kWorthwhile = 0.99;

double RoundedTo3(double value) {
  if (value == 0.0) return 0.0;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 2.0);
  // Below a thousandth nothing is told apart from none.
  return std::abs(value) < 1e-3 ? 0.0 : std::round(value / unit) * unit;
}

std::string FamilyOf(const MeasuredKernel& kernel) {
  if (const auto* gemm = std::get_if<GemmQuestion>(&kernel.question)) {
    return fmt::format("{} x {}", gemm->shape.n, gemm->shape.k);
  }
  if (const auto* attention = std::get_if<AttentionQuestion>(&kernel.question)) {
    return fmt::format("{}", attention->passes.front().shape.query_length);
  }
  return fmt::format("{}", std::get<MemoryBoundQuestion>(kernel.question).in_row.value());
}

// Keeps the rate of a training step by the droop.
class StepRate {
 public:
  StepRate(const KernelSection& section, const compute::GpuEfficiency& efficiency)
      : gpu_(section.rows.front()->hardware->gpu), shapes_(SustainedGemms()) {
    const auto& gemm = std::get<GemmQuestion>(section.rows.front()->question);
    section_ = gemm.section;
    operand_ = gemm.operand;
    for (const model::GemmShape& shape : shapes_) {
      before_.push_back(Seconds(SectionOf(efficiency, section_), shape));
    }
  }

  // Sets the droop such that the mean logarithm of what the shapes take is as at first.
  void Keep(compute::GpuEfficiency* efficiency) const {
    GemmConstants& constants = SectionOf(*efficiency, section_);
    // The droop slows the math alone, so that the time goes by a little less than it.
    constexpr double kSlope = 0.95;
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
      double excess = 0.0;
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        excess += std::log(Seconds(constants, shapes_[i]) / before_[i]);
      }
      excess /= static_cast<double>(shapes_.size());
      if (std::abs(excess) < 2e-4) return;
      const double droop = (1.0 + constants.sustained_droop) * std::exp(-excess / kSlope) - 1.0;
      constants.sustained_droop = std::clamp(droop, 0.0, 0.6);
    }
  }

 private:
  [[nodiscard]] double Seconds(const GemmConstants& constants,
                               const model::GemmShape& shape) const {
    return compute::GemmSeconds(gpu_, constants, shape, operand_, {});
  }

  const topology::GpuSpec& gpu_;
  std::vector<model::GemmShape> shapes_;
  GemmSection section_ = GemmSection::k16Bit;
  DataType operand_ = DataType::kBf16;
  std::vector<double> before_;
};

std::vector<double> Relative(const std::vector<double>& log_errors) {
  std::vector<double> errors;
  errors.reserve(log_errors.size());
  for (const double error : log_errors) errors.push_back(std::exp(error) - 1.0);
  return errors;
}

class SectionFit {
 public:
  SectionFit(const compute::GpuEfficiency& start, const KernelCalibrationOptions& options,
             KernelFit* fit)
      : start_(start), options_(options), fit_(fit) {
    const bool gemm = fit_->section.key.rfind("gemm", 0) == 0;
    for (std::size_t i = 0; i < fit_->section.constants.size(); ++i) {
      const KernelConstant& constant = fit_->section.constants[i];
      if (constant.held.empty()) {
        const double value = constant.read(start_);
        free_.push_back(i);
        const double inside = std::clamp(value, constant.lower, constant.upper);
        within_bounds_ = within_bounds_ && inside == value;
        problem_.variables.push_back(
            {inside, constant.lower, constant.upper, constant.logarithmic});
      } else if (constant.held == kFollowsSteps && gemm) {
        follows_ = true;
      }
    }
    if (follows_) rate_.emplace_back(fit_->section, start_);
    for (const MeasuredKernel* row : fit_->section.rows) problem_.groups.push_back(FamilyOf(*row));
    problem_.loss = options_.loss;
    problem_.pull = options_.pull;
    problem_.log_errors = [this](const std::vector<double>& values) {
      return LogErrors(With(values));
    };
  }

  // The fitted constants, rounded.
  [[nodiscard]] compute::GpuEfficiency Run() {
    fit_->fitted = !free_.empty();
    compute::GpuEfficiency result = start_;
    fit_->errors_before = Relative(LogErrors(start_));
    if (fit_->fitted) {
      const FitOutcome outcome =
          FitConstants(problem_, options_.folds, options_.threads, options_.search);
      std::vector<double> rounded;
      for (const double value : outcome.values) rounded.push_back(RoundedTo3(value));
      result = With(rounded);
      Round(&result);
      if (within_bounds_ && Loss(result) > kWorthwhile * Loss(start_)) result = start_;
      fit_->errors_cross_validated = Relative(outcome.cross_validated);
      Note(result);
      for (std::size_t v = 0; v < free_.size(); ++v) {
        fit_->constants[free_[v]].smallest = outcome.smallest[v];
        fit_->constants[free_[v]].largest = outcome.largest[v];
      }
    } else {
      Note(result);
    }
    fit_->errors_after = Relative(LogErrors(result));
    return result;
  }

 private:
  [[nodiscard]] compute::GpuEfficiency With(const std::vector<double>& values) const {
    compute::GpuEfficiency efficiency = start_;
    for (std::size_t v = 0; v < free_.size(); ++v) {
      fit_->section.constants[free_[v]].write(values[v], &efficiency);
    }
    if (follows_ && fit_->fitted) rate_.front().Keep(&efficiency);
    return efficiency;
  }

  // Also what follows.
  void Round(compute::GpuEfficiency* efficiency) const {
    for (const KernelConstant& constant : fit_->section.constants) {
      if (constant.held == kFollowsSteps) {
        constant.write(RoundedTo3(constant.read(*efficiency)), efficiency);
      }
    }
  }

  [[nodiscard]] std::vector<double> LogErrors(const compute::GpuEfficiency& efficiency) const {
    std::vector<double> errors;
    errors.reserve(fit_->section.rows.size());
    for (const MeasuredKernel* row : fit_->section.rows) {
      errors.push_back(std::log(PredictedSeconds(*row, efficiency) / row->measured_s));
    }
    return errors;
  }

  [[nodiscard]] double Loss(const compute::GpuEfficiency& efficiency) const {
    return LossOf(LogErrors(efficiency), {}, options_.loss);
  }

  void Note(const compute::GpuEfficiency& result) const {
    for (const KernelConstant& constant : fit_->section.constants) {
      const double value = constant.read(result);
      fit_->constants.push_back({constant.key, constant.unit, constant.read(start_), value, value,
                                 value, constant.lower, constant.upper, constant.held});
    }
  }

  const compute::GpuEfficiency& start_;
  const KernelCalibrationOptions& options_;
  KernelFit* fit_;
  std::vector<std::size_t> free_;
  bool within_bounds_ = true;  // the constants to fit, as they are
  bool follows_ = false;
  std::vector<StepRate> rate_;  // one where the droop follows
  FitProblem problem_;
};

void CalibrateGpu(const std::string& gpu, const std::vector<const MeasuredKernel*>& rows,
                  const KernelCalibrationOptions& options, KernelCalibrationReport* report,
                  const std::function<void()>& done) {
  compute::GpuEfficiency efficiency = rows.front()->hardware->efficiency;
  for (KernelSection& section : KernelSectionsOf(rows, options.freed)) {
    for (KernelConstant& constant : section.constants) {
      const bool held =
          std::find(options.held.begin(), options.held.end(), constant.key) != options.held.end();
      if (held && constant.held.empty()) constant.held = "as asked";
    }
    const bool chip = section.key == "gemm_16bit";
    KernelFit& fit = report->fits.emplace_back();
    fit.gpu = gpu;
    fit.section = std::move(section);
    efficiency = SectionFit(efficiency, options, &fit).Run();
    if (chip && fit.fitted) {
      for (GemmConstants* other :
           {&efficiency.gemm_fp8, &efficiency.gemm_fp8_block, &efficiency.gemm_fp4}) {
        other->burst_dip_at = efficiency.gemm_16bit.burst_dip_at;
      }
    }
    done();
  }
  report->fitted.emplace(gpu, std::move(efficiency));
}

}  // namespace

bool FittedKernelConstant::AtBound() const {
  const double slack = 0.002 * (upper - lower);
  return held.empty() && (value <= lower + slack || value >= upper - slack);
}

std::vector<model::GemmShape> SustainedGemms() {
  struct Weight {
    std::int64_t n;
    std::int64_t k;
  };
  // Llama 3 405B and 70B under TP 8, 8B, and GPT-3 175B: (columns, rows) of a GPU's weights.
  constexpr Weight kWeights[] = {{2304, 16384}, {16384, 2048}, {13312, 16384}, {16384, 6656},
                                 {2560, 8192},  {8192, 2048},  {14336, 8192},  {8192, 7168},
                                 {6144, 4096},  {4096, 4096},  {28672, 4096},  {4096, 14336},
                                 {12288, 4096}, {16032, 16384}};
  std::vector<model::GemmShape> shapes;
  for (const std::int64_t tokens : {4096, 8192}) {
    for (const Weight& w : kWeights) {
      shapes.push_back({.m = tokens, .n = w.n, .k = w.k});
      shapes.push_back({.m = tokens, .n = w.k, .k = w.n});
      shapes.push_back({.m = w.n, .n = w.k, .k = tokens});
    }
  }
  return shapes;
}

KernelCalibrationReport CalibrateKernels(const std::vector<MeasuredKernel>& kernels,
                                         const KernelCalibrationOptions& options) {
  std::map<std::string, std::vector<const MeasuredKernel*>> by_gpu;
  for (const MeasuredKernel& kernel : kernels) {
    if (kernel.status == RowStatus::kOk) by_gpu[kernel.hardware->gpu.name].push_back(&kernel);
  }
  double sections = 0.0;
  for (const auto& [gpu, rows] : by_gpu) {
    sections += static_cast<double>(KernelSectionsOf(rows, options.freed).size());
  }
  double finished = 0.0;
  KernelCalibrationReport report;
  for (const auto& [gpu, rows] : by_gpu) {
    CalibrateGpu(gpu, rows, options, &report, [&] {
      finished += 1.0;
      if (options.progress) options.progress(Ratio(finished / sections));
    });
  }
  return report;
}

}  // namespace quadrille::tools
