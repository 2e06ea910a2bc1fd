#include "tools/calibrate_kernels_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/report/text_table.h"
#include "tools/calibrate_common.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/kernel_calibration.h"
#include "tools/validate/measured_kernel.h"

namespace quadrille::tools {
namespace {

struct KernelArguments : RunArguments {
  std::vector<std::string> files;
  std::string output;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::vector<std::string> constants = {"gemm", "attention", "memory"};
  std::vector<std::string> owners;
  std::vector<std::string> freed;
  std::vector<std::string> held;
  int folds = 5;
  int threads = 0;
};

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether --constants names the kind of the kernel.
bool IsOfKind(const MeasuredKernel& kernel, const std::vector<std::string>& kinds) {
  if (std::holds_alternative<GemmQuestion>(kernel.question)) return Contains(kinds, "gemm");
  if (std::holds_alternative<AttentionQuestion>(kernel.question)) {
    return Contains(kinds, "attention");
  }
  return Contains(kinds, "memory");
}

// Four digits; what a search leaves of nothing is nothing.
std::string Short(double value) {
  if (std::abs(value) >= 1000.0) return fmt::format("{:.0f}", value);
  return std::abs(value) < 1e-4 ? "0" : fmt::format("{:.4g}", value);
}

std::string Note(const FittedKernelConstant& constant) {
  if (!constant.held.empty()) {
    return constant.held == kFollowsSteps ? constant.held : "held: " + constant.held;
  }
  if (!constant.AtBound()) return "";
  return fmt::format(
      "at its bound of {}",
      Short(constant.value - constant.lower < constant.upper - constant.value ? constant.lower
                                                                              : constant.upper));
}

std::string ReportText(const KernelCalibrationReport& report) {
  using report::Align;
  report::TextTable constants({{"GPU"},
                               {"kernels"},
                               {"constant"},
                               {"before", Align::kRight},
                               {"fitted", Align::kRight},
                               {"over folds", Align::kRight},
                               {""}});
  report::TextTable errors(ErrorColumns("errors of the fit rows"));
  for (const KernelFit& fit : report.fits) {
    const std::string& name = fit.section.name;
    for (const FittedKernelConstant& c : fit.constants) {
      // Constants of sections that are not fitted are in the GPU's file.
      if (!fit.fitted || (!c.held.empty() && c.value == c.initial && c.value == 0.0)) continue;
      constants.AddRow(
          {fit.gpu, name, fmt::format("{}{}{}", c.key, *c.unit ? ", " : "", c.unit),
           Short(c.initial), Short(c.value),
           c.held.empty() ? fmt::format("{:.3g} to {:.3g}", c.smallest, c.largest) : "", Note(c)});
    }
    const std::string head = fmt::format("{} {}", fit.gpu, name);
    AddErrors(head + (fit.fitted ? ": before" : ": not fitted, too few rows"), fit.errors_before,
              &errors);
    if (!fit.fitted) continue;
    AddErrors(head + ": after", fit.errors_after, &errors);
    if (!fit.errors_cross_validated.empty()) {
      AddErrors(head + ": cross-validated", fit.errors_cross_validated, &errors);
    }
  }
  return constants.Render(OutputStyle()) + "\n" + errors.Render(OutputStyle());
}

std::string SkippedText(const std::map<std::string, int>& skipped) {
  std::string text = skipped.empty() ? "" : "\nNot used:\n";
  for (const auto& [reason, rows] : skipped) text += fmt::format("{:>6} {}\n", rows, reason);
  return text;
}

// Reads the files and leaves what the options want; `skipped` says why of rows that nothing can be
// made of, and how many. Nothing, with the problem printed and `status` set, on failure.
std::optional<std::vector<MeasuredKernel>> ReadFiles(const KernelArguments& arguments,
                                                     HardwareLibrary& library,
                                                     std::map<std::string, int>* skipped,
                                                     int& status) {
  std::vector<MeasuredKernel> kernels;
  std::size_t named = 0;
  for (const std::string& file : arguments.files) {
    const std::optional<CsvTable> table = ReadTable(file, status);
    if (!table) return std::nullopt;
    Result<std::vector<MeasuredKernel>> read = ReadKernelTable(*table, library);
    if (!read) {
      PrintProblems(read.error());
      status = kWrongInput;
      return std::nullopt;
    }
    for (MeasuredKernel& kernel : *read) {
      if (!arguments.only.empty() && !StartsWithAny(kernel.group, arguments.only)) continue;
      ++named;
      if (kernel.status != RowStatus::kOk) ++(*skipped)[kernel.reason];
      const bool wanted =
          kernel.status == RowStatus::kOk && !StartsWithAny(kernel.group, arguments.exclude) &&
          IsOfKind(kernel, arguments.constants) &&
          (arguments.owners.empty() || Contains(arguments.owners, kernel.hardware->gpu.name));
      if (wanted) kernels.push_back(std::move(kernel));
    }
  }
  if (named == 0 && !arguments.only.empty()) {
    PrintProblems({{{},
                    fmt::format("--only {}: no group of the files begins so",
                                fmt::join(arguments.only, ","))}});
    status = kWrongInput;
    return std::nullopt;
  }
  return kernels;
}

Result<std::vector<std::string>> WantedGpus(const KernelArguments& arguments) {
  std::set<std::string> known;
  AddDescriptions(LoadOptionsOf(arguments), "gpus", &known);
  return WantedNames(arguments.owners, known, "GPU");
}

int CalibrateFiles(KernelArguments arguments) {
  PrintWarnings(CheckFileName("--output", arguments.output, {"yaml", "yml"}));
  const Diagnostics misnamed = CheckOverlayName(LoadOptionsOf(arguments), arguments.output);
  if (!misnamed.empty()) {
    PrintProblems(misnamed);
    return kWrongInput;
  }
  Result<std::vector<std::string>> owners = WantedGpus(arguments);
  if (!owners) {
    PrintProblems(owners.error());
    return kWrongInput;
  }
  arguments.owners = std::move(*owners);
  HardwareLibrary library(LoadOptionsOf(arguments));
  int status = kDone;
  std::map<std::string, int> skipped;
  const auto kernels = ReadFiles(arguments, library, &skipped, status);
  if (!kernels) return status;
  KernelCalibrationOptions options;
  options.freed.sustained_droop = Contains(arguments.freed, "sustained_droop");
  options.freed.memory_classes = Contains(arguments.freed, "memory_classes");
  options.held = arguments.held;
  options.folds = arguments.folds;
  options.threads = arguments.threads;
  report::ProgressBar fitting("fitting", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&](Ratio done) { fitting.Update(done); };
  const KernelCalibrationReport report = CalibrateKernels(*kernels, options);
  fitting.Clear();
  if (std::none_of(report.fits.begin(), report.fits.end(),
                   [](const KernelFit& fit) { return fit.fitted; })) {
    PrintProblems({{{},
                    kernels->empty() ? "no row of the files can be fitted to"
                                     : "too few rows for the constants of any kernel"}});
    return kAnswerIsNo;
  }
  if (!arguments.output.empty()) {
    const auto written = report::WriteFile(
        arguments.output, KernelOverlayText(report, options.freed,
                                            fmt::format("{}", fmt::join(arguments.files, ", "))));
    if (!written) {
      PrintProblems(written.error());
      return kFileTrouble;
    }
  }
  return PrintOutput(ReportText(report) + SkippedText(skipped));
}

}  // namespace

void AddCalibrateKernels(CLI::App& command, const std::string& executable, int& status) {
  auto arguments = std::make_shared<KernelArguments>();
  arguments->executable = executable;
  command.add_option("files", arguments->files, "CSV files of measured kernels")
      ->required()
      ->type_name("FILE.csv");
  command.add_option("--output,-o", arguments->output, "Write the constants as a YAML overlay")
      ->type_name("FILE.yaml")
      ->check(NamesAFile());
  AddScenarioPath(command, &arguments->scenario_path);
  command.add_option("--only", arguments->only, "Only rows whose group begins so")->delimiter(',');
  command.add_option("--exclude", arguments->exclude, "No rows whose group begins so")
      ->delimiter(',');
  command.add_option("--constants", arguments->constants, "gemm, attention, memory")
      ->delimiter(',')
      ->check(CLI::IsMember({"gemm", "attention", "memory"}));
  command.add_option("--of", arguments->owners, "Only constants of these GPUs")->delimiter(',');
  command
      .add_option("--free", arguments->freed,
                  "Fit also sustained_droop, memory_classes, which steps were fitted beside")
      ->delimiter(',')
      ->check(CLI::IsMember({"sustained_droop", "memory_classes"}));
  command.add_option("--hold", arguments->held, "Do not fit these constants: launch,peak_share")
      ->delimiter(',')
      ->check(CLI::IsMember(KernelConstantKeys()));
  command.add_option("--folds", arguments->folds, "Folds of the cross-validation")
      ->check(CLI::Range(0, 100));
  AddThreads(command, &arguments->threads);
  command.callback([arguments, &status] { status = CalibrateFiles(*arguments); });
}

}  // namespace quadrille::tools
