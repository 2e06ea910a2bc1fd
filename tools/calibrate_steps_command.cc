#include "tools/calibrate_steps_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/report/text_table.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/calibrate_common.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/calibration.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/measured_step.h"
#include "tools/validate/peer_steps.h"
#include "tools/validate/shipped_model.h"
#include "tools/validate/software_stack.h"
#include "tools/validate/step_validation.h"

namespace quadrille::tools {
namespace {

struct CalibrateArguments : RunArguments {
  std::vector<std::string> files;
  std::string output;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::vector<std::string> constants = {"derate", "spread",     "attention",
                                        "eager",  "fixed-step", "nic"};
  std::vector<std::string> owners;
  std::string arch;
  bool newest = false;
  bool sparse = false;
  int folds = 5;
  int threads = 0;
};

std::vector<ConstantKind> KindsOf(const std::vector<std::string>& names) {
  std::vector<ConstantKind> kinds;
  for (const std::string& name : names) {
    if (name == "derate") {
      kinds.insert(kinds.end(), {ConstantKind::kDerate16Bit, ConstantKind::kDerateFp8,
                                 ConstantKind::kDerateFp4});
    }
    if (name == "spread") kinds.push_back(ConstantKind::kSpeedSpread);
    if (name == "attention") kinds.push_back(ConstantKind::kAlibiAttention);
    if (name == "nic") kinds.push_back(ConstantKind::kNicEfficiency);
    if (name == "eager") kinds.push_back(ConstantKind::kEagerFactor);
    if (name == "fixed-step") {
      kinds.insert(kinds.end(), {ConstantKind::kFixedStep, ConstantKind::kOwnerBroadcast});
    }
  }
  return kinds;
}

std::string ReportText(const CalibrationReport& report) {
  using report::Align;
  report::TextTable constants({{"constant"},
                               {"rows", Align::kRight},
                               {"before", Align::kRight},
                               {"fitted", Align::kRight},
                               {"over folds", Align::kRight}});
  for (const FittedConstant& c : report.constants) {
    constants.AddRow({c.Name(), fmt::format("{}", c.rows), fmt::format("{:.3f}", c.initial),
                      fmt::format("{:.3f}", c.value),
                      !c.held ? fmt::format("{:.3f} to {:.3f}", c.smallest, c.largest)
                      : c.value == c.initial ? "held"
                                             : "settled"});
  }
  report::TextTable errors(ErrorColumns("errors of the fit rows"));
  AddErrors("before", report.errors_before, &errors);
  AddErrors("after", report.errors_after, &errors);
  AddErrors("cross-validated", report.errors_cross_validated, &errors,
            "no folds, or one group of rows");
  AddErrors("leave one source out", report.errors_without_source, &errors, "all rows are of one");
  AddErrors("leave one generation out", report.errors_without_generation, &errors,
            "all rows are of one");
  return constants.Render(OutputStyle()) + "\n" + errors.Render(OutputStyle());
}

Result<CalibrationReport> Fit(const CalibrateArguments& arguments,
                              const std::vector<MeasuredStep>& steps,
                              std::vector<StepOutcome>* outcomes) {
  StepValidationOptions options;
  options.load = LoadOptionsOf(arguments);
  options.threads = arguments.threads;
  const auto stacks = LoadStacks(options.load.shipped_directory + "/clusters/stacks");
  if (!stacks) return tl::unexpected(stacks.error());
  report::ProgressBar simulating("simulating", report::DetectTerminal(STDERR_FILENO));
  options.progress = [&](Ratio done) { simulating.Update(done); };
  *outcomes = ValidateSteps(steps, *stacks, options);
  simulating.Clear();
  std::vector<bool> used =
      arguments.newest ? NewestReleases(steps) : std::vector<bool>(steps.size(), true);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    used[i] = used[i] && Counts(steps[i]) && !StartsWithAny(steps[i].id, arguments.exclude) &&
              (arguments.arch.empty() || (*outcomes)[i].stratum.arch == arguments.arch);
  }
  CalibrationOptions calibration;
  calibration.kinds = KindsOf(arguments.constants);
  calibration.owners = arguments.owners;
  calibration.folds = arguments.folds;
  calibration.threads = arguments.threads;
  calibration.sparse = arguments.sparse;
  report::ProgressBar fitting("fitting", report::DetectTerminal(STDERR_FILENO));
  calibration.progress = [&](Ratio done) { fitting.Update(done); };
  return Calibrate(*outcomes, used, calibration);
}

// The GPUs and stacks that --of names. Errors: those that are none.
Result<std::vector<std::string>> WantedOwners(const CalibrateArguments& arguments) {
  const scenario::LoadOptions load = LoadOptionsOf(arguments);
  const auto stacks = LoadStacks(load.shipped_directory + "/clusters/stacks");
  if (!stacks) return tl::unexpected(stacks.error());
  std::set<std::string> known;
  for (const SoftwareStack& stack : *stacks) known.insert(stack.name);
  AddDescriptions(load, "gpus", &known);
  return WantedNames(arguments.owners, known, "GPU or software stack");
}

int CalibrateFile(CalibrateArguments arguments) {
  PrintWarnings(CheckFileName("--output", arguments.output, {"yaml", "yml"}));
  const Diagnostics misnamed = CheckOverlayName(LoadOptionsOf(arguments), arguments.output);
  if (!misnamed.empty()) {
    PrintProblems(misnamed);
    return kWrongInput;
  }
  Result<std::vector<std::string>> owners = WantedOwners(arguments);
  if (!owners) {
    PrintProblems(owners.error());
    return kWrongInput;
  }
  arguments.owners = std::move(*owners);
  std::vector<MeasuredStep> steps;
  std::string sources;
  for (const std::string& file : arguments.files) {
    int status = kDone;
    const std::optional<CsvTable> table = ReadTable(file, status);
    if (!table) return status;
    const Result<std::vector<MeasuredStep>> read = ReadStepTable(*table);
    if (!read) {
      PrintProblems(read.error());
      return kWrongInput;
    }
    sources += (sources.empty() ? "" : ", ") + file;
    for (const MeasuredStep& step : *read) {
      if (arguments.only.empty() || StartsWithAny(step.id, arguments.only)) steps.push_back(step);
    }
  }
  if (steps.empty() && !arguments.only.empty()) {
    PrintProblems(
        {{{},
          fmt::format("--only {}: no id of the files begins so", fmt::join(arguments.only, ","))}});
    return kWrongInput;
  }
  const scenario::LoadOptions load = LoadOptionsOf(arguments);
  FillShippedModels(load, &steps);
  std::vector<StepOutcome> outcomes;
  const Result<CalibrationReport> report = Fit(arguments, steps, &outcomes);
  if (!report) {
    PrintProblems(report.error());
    return kFileTrouble;
  }
  if (report->rows.empty()) {
    PrintProblems({{{}, "no row of the file can be fitted to"}});
    return kAnswerIsNo;
  }
  if (report->constants.empty()) {
    PrintProblems({{{}, "enough rows for no constant of those that --constants and --of name"}});
    return kAnswerIsNo;
  }
  if (!arguments.output.empty()) {
    const auto written = report::WriteFile(arguments.output, OverlayText(*report, sources));
    if (!written) {
      PrintProblems(written.error());
      return kFileTrouble;
    }
  }
  return PrintOutput(ReportText(*report));
}

}  // namespace

void AddCalibrateSteps(CLI::App& command, const std::string& executable, int& status) {
  auto arguments = std::make_shared<CalibrateArguments>();
  arguments->executable = executable;
  command.add_option("files", arguments->files, "CSV files of measured steps")
      ->type_name("FILE.csv");
  command.add_option("--output,-o", arguments->output, "Write the constants as a YAML overlay")
      ->type_name("FILE.yaml")
      ->check(NamesAFile());
  AddScenarioPath(command, &arguments->scenario_path);
  command.add_option("--only", arguments->only, "Only rows whose id begins so")->delimiter(',');
  command.add_option("--exclude", arguments->exclude, "No rows whose id begins so")->delimiter(',');
  command
      .add_option("--constants", arguments->constants,
                  "derate, spread, attention, eager, fixed-step, nic")
      ->delimiter(',')
      ->check(CLI::IsMember({"derate", "spread", "attention", "eager", "fixed-step", "nic"}));
  command.add_option("--of", arguments->owners, "Only constants of these GPUs and stacks")
      ->delimiter(',');
  command.add_option("--arch", arguments->arch, "Only dense or only moe models")
      ->check(CLI::IsMember({"dense", "moe"}));
  command.add_flag("--newest", arguments->newest, "Only the newest release of a configuration");
  command.add_flag("--sparse", arguments->sparse,
                   "As few constants as the rows need: hold what files take over from elsewhere, "
                   "and settle at neutral what comes out negligibly far from it");
  command.add_option("--folds", arguments->folds, "Folds of the cross-validation")
      ->check(CLI::Range(0, 100));
  AddThreads(command, &arguments->threads);
  command.callback([arguments, &command, &status] {
    if (!command.get_subcommands().empty()) return;
    if (arguments->files.empty()) throw CLI::RequiredError("files");
    status = CalibrateFile(*arguments);
  });
}

}  // namespace quadrille::tools
