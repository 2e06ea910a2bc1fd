#include "tools/compare_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/log.h"
#include "sim/report/compare_json.h"
#include "sim/report/compare_table.h"
#include "sim/report/file_output.h"
#include "sim/report/operation_recorder.h"
#include "sim/report/progress.h"
#include "sim/report/terminal.h"
#include "sim/simulate/compare_row.h"
#include "sim/simulate/rank_orders.h"
#include "sim/simulate/report_page.h"
#include "sim/simulate/schedule_variants.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

using simulate::ScheduleSpec;
using simulate::ScheduleVariant;

struct CompareArguments {
  std::vector<std::string> files;
  RunArguments run;  // without the file
  std::string schedules;
  std::string rank_orders;
  std::string format = "table";
  std::string output;
};

std::optional<scenario::Scenario> Load(const CompareArguments& arguments, std::size_t index,
                                       int& status) {
  RunArguments run = arguments.run;
  run.file = arguments.files[index];
  std::optional<scenario::Scenario> scenario = LoadRun(run, status);
  if (scenario) PrintWarnings(scenario->warnings);
  return scenario;
}

// Simulates one row after the other and adds it to the comparison, or to what was refused.
class Comparer {
 public:
  Comparer(std::size_t rows, bool with_timelines)
      : rows_(rows),
        with_timelines_(with_timelines),
        progress_("comparing", report::DetectTerminal(STDERR_FILENO)) {}

  void Simulate(ScheduleVariant variant) {
    simulate::SimulateOptions options;
    std::optional<report::OperationRecorder> recorder;
    simulate::MakeSink make_sink;
    if (with_timelines_) {
      options.record_stages = true;
      make_sink = [&recorder](const program::Program& program) {
        recorder.emplace(program);
        return &*recorder;
      };
    }
    options.progress = [this](Ratio done) {
      progress_.Update(
          Ratio((static_cast<double>(done_) + done.value()) / static_cast<double>(rows_)));
    };
    const Result<simulate::Simulation> simulation = SimulateVariant(variant, options, make_sink);
    if (simulation) {
      comparison.runs.push_back(CompareRow(variant, *simulation));
      for (const Diagnostic& warning : simulation->compiled.warnings) Note(warning, variant.label);
      if (recorder) comparison.runs.back().timeline = TimelineOf(*simulation, *recorder, rows_);
      spdlog::debug("{}: {:.4f} s", variant.label, ToSeconds(simulation->report.step_time));
    } else {
      Refuse(variant.label, simulation.error());
    }
    ++done_;
  }

  void Refuse(const std::string& label, const Diagnostics& problems) {
    comparison.refused.push_back({label, report::ReasonText(problems)});
  }

  void Finish() {
    progress_.Clear();
    for (auto& [warning, labels] : warnings_) {
      if (labels.size() < comparison.runs.size()) {
        warning.message += fmt::format(" ({})", fmt::join(labels, ", "));
      }
      PrintWarnings({warning});
    }
    SortByStepTime(comparison);
  }

  report::Comparison comparison;

 private:
  // A warning that several rows share is said once.
  void Note(const Diagnostic& warning, const std::string& label) {
    for (auto& [known, labels] : warnings_) {
      if (ToString(known) == ToString(warning)) return labels.push_back(label);
    }
    warnings_.push_back({warning, {label}});
  }

  std::vector<std::pair<Diagnostic, std::vector<std::string>>> warnings_;  // and whose they are
  std::size_t rows_;
  bool with_timelines_;
  std::size_t done_ = 0;
  report::ProgressBar progress_;
};

int CompareSchedules(const CompareArguments& arguments, report::Comparison& comparison,
                     std::vector<scenario::Scenario>& scenarios) {
  int status = kDone;
  std::optional<scenario::Scenario> scenario = Load(arguments, 0, status);
  if (!scenario) return status;
  std::vector<ScheduleSpec> specs = simulate::AllSchedules(*scenario);
  if (!arguments.schedules.empty()) {
    Result<std::vector<ScheduleSpec>> parsed = simulate::ParseScheduleList(arguments.schedules);
    if (!parsed) {
      PrintProblems(parsed.error());
      return kWrongInput;
    }
    specs = std::move(*parsed);
  }
  Comparer comparer(specs.size(), arguments.format == "html");
  comparer.comparison.title = scenario->name;
  for (const ScheduleSpec& spec : specs) {
    Result<ScheduleVariant> variant = simulate::MakeVariant(*scenario, spec);
    if (variant) {
      comparer.Simulate(std::move(*variant));
    } else {
      comparer.Refuse(spec.label, variant.error());
    }
  }
  comparer.Finish();
  comparison = std::move(comparer.comparison);
  scenarios.push_back(std::move(*scenario));
  return kDone;
}

int CompareRuns(const CompareArguments& arguments, report::Comparison& comparison,
                std::vector<scenario::Scenario>& scenarios) {
  if (!arguments.schedules.empty()) {
    PrintProblems({{{}, "--schedules compares schedules of one run, not of several"}});
    return kWrongInput;
  }
  Comparer comparer(arguments.files.size(), arguments.format == "html");
  comparer.comparison.of_schedules = false;
  for (std::size_t i = 0; i < arguments.files.size(); ++i) {
    int status = kDone;
    std::optional<scenario::Scenario> scenario = Load(arguments, i, status);
    if (!scenario) return status;
    ScheduleVariant variant;
    variant.label = scenario->name;
    for (const report::ComparedRun& other : comparer.comparison.runs) {
      if (other.label == variant.label) variant.label = arguments.files[i];
    }
    variant.own = true;
    variant.scenario = *scenario;
    scenarios.push_back(std::move(*scenario));
    comparer.comparison.title += (i == 0 ? "" : " against ") + variant.label;
    comparer.Simulate(std::move(variant));
  }
  comparer.Finish();
  comparison = std::move(comparer.comparison);
  return kDone;
}

int CompareRankOrders(const CompareArguments& arguments, report::Comparison& comparison,
                      std::vector<scenario::Scenario>& scenarios) {
  if (!arguments.schedules.empty() || arguments.files.size() > 1) {
    PrintProblems({{{}, "--rank-order compares orders of one run under its own schedule"}});
    return kWrongInput;
  }
  int status = kDone;
  std::optional<scenario::Scenario> scenario = Load(arguments, 0, status);
  if (!scenario) return status;
  Result<std::vector<ScheduleVariant>> variants =
      simulate::RankOrderVariants(*scenario, arguments.rank_orders);
  if (!variants) {
    PrintProblems(variants.error());
    return kWrongInput;
  }
  Comparer comparer(variants->size(), arguments.format == "html");
  comparer.comparison.of_schedules = false;
  comparer.comparison.title = scenario->name + " by rank order";
  for (ScheduleVariant& variant : *variants) comparer.Simulate(std::move(variant));
  comparer.Finish();
  comparison = std::move(comparer.comparison);
  scenarios.push_back(std::move(*scenario));
  return kDone;
}

int Write(const CompareArguments& arguments, const std::string& text) {
  if (arguments.output.empty() || arguments.output == "-") return PrintOutput(text);
  const Result<void> written = report::WriteFile(arguments.output, text);
  if (written) return kDone;
  PrintProblems(written.error());
  return kFileTrouble;
}

int Compare(const CompareArguments& arguments) {
  if (arguments.format == "html" && arguments.output.empty() && isatty(STDOUT_FILENO) != 0) {
    PrintProblems({{{}, "a report page is not for a terminal; name a file with --output"}});
    return kWrongInput;
  }
  static const std::map<std::string, std::vector<std::string>> kEndings = {
      {"table", {"text"}}, {"json", {"json"}}, {"csv", {"csv"}}, {"html", {"html", "htm"}}};
  PrintWarnings(CheckFileName("--output", arguments.output, kEndings.at(arguments.format)));
  report::Comparison comparison;
  std::vector<scenario::Scenario> scenarios;
  const int status =
      !arguments.rank_orders.empty() ? CompareRankOrders(arguments, comparison, scenarios)
      : arguments.files.size() == 1  ? CompareSchedules(arguments, comparison, scenarios)
                                     : CompareRuns(arguments, comparison, scenarios);
  if (status != kDone) return status;
  std::string text;
  if (arguments.format == "json") {
    text = report::RenderCompareJson(comparison);
  } else if (arguments.format == "csv") {
    text = report::RenderCompareCsv(comparison);
  } else if (arguments.format == "html") {
    text = simulate::RenderComparePage(comparison, scenarios);
  } else {
    const bool to_terminal = arguments.output.empty();
    text =
        report::RenderCompareTable(comparison, to_terminal ? OutputStyle() : report::TableStyle{});
  }
  const int written = Write(arguments, text);
  if (written != kDone) return written;
  return comparison.runs.empty() ? kAnswerIsNo : kDone;
}

}  // namespace

void AddCompareCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<CompareArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand(
      "compare", "One run under several schedules, or several runs, side by side");
  command->add_option("runs", arguments->files, "One run file, or several")
      ->required()
      ->type_name("RUN.yaml")
      ->check(NamesAFile());
  command
      ->add_option(
          "--schedules", arguments->schedules,
          "Schedules with their sizes: 1f1b,interleaved:vp=2:group=12 (also slices, waves, "
          "memory-limit); default: all")
      ->type_name("LIST")
      ->check(NotEmpty());
  command
      ->add_option("--rank-order", arguments->rank_orders,
                   "Instead, one run under several orders of its ranks, innermost dimension first: "
                   "tp-cp-pp-dp,tp-cp-dp-pp")
      ->type_name("LIST")
      ->check(NotEmpty());
  command
      ->add_option("--set", arguments->run.overrides,
                   "Override a key of every run: --set parallel.tensor=4 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddScenarioPath(*command, &arguments->run.scenario_path);
  command->add_option("--format", arguments->format, "table, json, csv or html")
      ->check(CLI::IsMember({"table", "json", "csv", "html"}));
  command->add_option("--output,-o", arguments->output, "File instead of standard output")
      ->type_name("FILE")
      ->check(NamesAFile());
  command->callback([arguments, &status] { status = Compare(*arguments); });
}

}  // namespace quadrille::tools
