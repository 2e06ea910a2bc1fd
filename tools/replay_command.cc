#include "tools/replay_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/base/log.h"
#include "sim/report/choice_text.h"
#include "sim/report/file_output.h"
#include "sim/report/number_text.h"
#include "sim/report/operation_recorder.h"
#include "sim/report/progress.h"
#include "sim/report/step_csv.h"
#include "sim/report/step_json.h"
#include "sim/report/step_table.h"
#include "sim/report/terminal.h"
#include "sim/report/timeline_text.h"
#include "sim/report/trace_writer.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/many_steps.h"
#include "sim/simulate/report_page.h"
#include "sim/simulate/simulate.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

// Up to so many operations the critical path is followed unasked: 64 MB of times.
constexpr std::int64_t kPathOperations = 10'000'000;

struct ReplayArguments {
  const CLI::App* command = nullptr;
  RunArguments run;
  std::string format = "table";
  std::string tokens;
  std::string json_file;
  std::string html_file;
  std::string trace_file;
  std::string trace_level = "window";
  std::string trace_layout = "merged";
  std::vector<std::int32_t> trace_ranks;
  std::vector<std::int32_t> trace_microbatches = {4, 2};
  bool trace_exact = false;
  std::uint64_t shuffle_ties = 0;
  std::int32_t steps = 1;
  int threads = 0;
  bool unfold = false;
  bool critical_path = false;
  bool no_critical_path = false;  // neither: where it costs little
  bool timeline = false;
  bool strict = false;
};

report::TraceOptions TraceOptionsOf(const ReplayArguments& arguments) {
  report::TraceOptions options;
  options.layout = arguments.trace_layout == "kineto" ? report::TraceLayout::kKineto
                                                      : report::TraceLayout::kMerged;
  options.level = arguments.trace_level == "kernel"   ? report::TraceLevel::kKernel
                  : arguments.trace_level == "action" ? report::TraceLevel::kAction
                                                      : report::TraceLevel::kWindow;
  options.first_microbatches = arguments.trace_microbatches[0];
  options.last_microbatches = arguments.trace_microbatches[1];
  options.fractional_microseconds = arguments.trace_exact;
  return options;
}

std::string Render(const ReplayArguments& arguments, const report::RunDescription& run,
                   const simulate::Simulation& simulation) {
  const metrics::StepReport& step = simulation.report;
  if (arguments.format == "json") return report::RenderJson(run, step);
  if (arguments.format == "csv") return report::RenderCsv(run, step);
  const report::TableStyle style = OutputStyle();
  std::string text = report::RenderTable(run, step, style);
  if (arguments.timeline) {
    const simulate::CompiledStep& compiled = simulation.compiled;
    text += "\n" + report::RenderTimelineText(compiled.schedule, compiled.program,
                                              simulation.result, style);
  }
  return text;
}

// Gives every record to several sinks.
class Sinks : public program::RecordSink {
 public:
  void Add(program::RecordSink* sink) { sinks_.push_back(sink); }
  [[nodiscard]] bool empty() const { return sinks_.empty(); }
  void Consume(std::span<const program::OpRecord> records) override {
    for (program::RecordSink* sink : sinks_) sink->Consume(records);
  }

 private:
  std::vector<program::RecordSink*> sinks_;
};

// Files are written only after the whole run is known, and each is whole or absent.
int WriteFiles(const ReplayArguments& arguments, const report::RunDescription& run,
               const simulate::Simulation& simulation, report::TraceWriter* trace,
               const std::string& page) {
  if (trace != nullptr) {
    trace->ShowPath(simulation.path);
    const Result<report::TraceSummary> summary =
        trace->Close(simulation.compiled.program, simulation.result, simulation.report);
    if (!summary) {
      PrintProblems(summary.error());
      return kFileTrouble;
    }
    if (!summary->warning.empty()) spdlog::warn("{}", summary->warning);
    spdlog::info("trace: {} slices in {}", summary->slices, arguments.trace_file);
  }
  const std::pair<std::string, std::string> files[] = {
      {arguments.json_file,
       arguments.json_file.empty() ? "" : report::RenderJson(run, simulation.report)},
      {arguments.html_file, page}};
  for (const auto& [path, content] : files) {
    if (path.empty()) continue;
    const Result<void> written = report::WriteFile(path, content);
    if (!written) {
      PrintProblems(written.error());
      return kFileTrouble;
    }
  }
  return kDone;
}

// Outputs that go to no file, and two into one file, which would leave the later one.
Diagnostics CheckOutputFiles(const ReplayArguments& arguments) {
  const std::pair<const char*, const std::string&> outputs[] = {{"--json", arguments.json_file},
                                                                {"--html", arguments.html_file},
                                                                {"--trace", arguments.trace_file}};
  Diagnostics problems;
  for (const auto& [option, path] : outputs) {
    if (path == "-") {
      problems.push_back({{},
                          fmt::format("{} -: name a file; --format json|csv is what writes to "
                                      "standard output",
                                      option)});
      continue;
    }
    for (const auto& [other, other_path] : outputs) {
      if (&path == &other_path) break;
      std::error_code ignored;
      if (path.empty() || other_path.empty() ||
          std::filesystem::weakly_canonical(path, ignored) !=
              std::filesystem::weakly_canonical(other_path, ignored)) {
        continue;
      }
      problems.push_back({{}, fmt::format("{} and {} name one file: {}", other, option, path)});
    }
  }
  return problems;
}

// Options that do nothing in this call.
Diagnostics CheckEffects(const ReplayArguments& arguments) {
  IdleOptions idle(*arguments.command);
  const bool kineto = arguments.trace_layout == "kineto";
  idle.Check("--timeline", arguments.format == "table", "with --format " + arguments.format);
  idle.Check("--trace-level", !kineto || arguments.trace_level == "kernel",
             "with --trace-layout kineto, which holds every kernel");
  idle.Check("--trace-microbatches", !kineto && arguments.trace_level == "window",
             kineto ? "with --trace-layout kineto, which holds every kernel"
                    : "with --trace-level " + arguments.trace_level);
  idle.Check("--trace-exact", kineto,
             "without --trace-layout kineto: merged traces have fractions anyway");
  idle.Check("--threads", arguments.steps > 1, "without --steps");
  return idle.problems();
}

void WarnOfFileNames(const ReplayArguments& arguments) {
  PrintWarnings(CheckFileName("--json", arguments.json_file, {"json"}));
  PrintWarnings(CheckFileName("--html", arguments.html_file, {"html", "htm"}));
  PrintWarnings(CheckFileName("--trace", arguments.trace_file, {"json"}));
}

// Says on standard error, when asked to, what each phase made and how long it took.
class Phases {
 public:
  void Loaded(const scenario::Scenario& scenario) {
    Say("load", fmt::format("run {}, scenario {:016x}, seed {}, {} assumptions, {} warnings",
                            scenario.name, scenario.hash, scenario.seed,
                            scenario.assumptions.size(), scenario.warnings.size()));
    spdlog::info("derived: {}, {} microbatches", report::ParallelText(scenario.parallel),
                 scenario.microbatches);
  }

  void Compiled(const simulate::CompiledStep& compiled) {
    std::size_t actions = 0;
    for (const auto& slots : compiled.schedule.ranks) actions += slots.size();
    std::map<std::int32_t, std::int32_t> classes;
    for (const program::SimulatedRank& rank : compiled.program.ranks) ++classes[rank.multiplicity];
    std::string folded;
    for (const auto& [multiplicity, count] : classes) {
      folded += fmt::format("{}{} of {}", folded.empty() ? "" : ", ", count, multiplicity);
    }
    Say("compile", fmt::format("schedule {}, {} actions, {} stage programs, {} process groups",
                               compiled.schedule.name, actions, compiled.program.programs.size(),
                               compiled.program.groups.size()));
    spdlog::info("folded: {} ranks into {} classes ({})", compiled.program.world_size,
                 compiled.program.ranks.size(), folded);
    spdlog::info(
        "evaluator: event-driven executor, which alone accounts for every instant of a rank");
  }

  void Executed(const program::RunResult& result) {
    Say("execute", fmt::format("{} operations, {} events, {} solves of shared links",
                               result.operations, result.events, result.solves));
  }

 private:
  void Say(const char* phase, const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    spdlog::info("{}: {} ({:.1f} ms)", phase, what,
                 std::chrono::duration<double, std::milli>(now - began_).count());
    began_ = now;
  }

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// One replay, from the words of the call to the last byte of its outputs. A phase returns kDone,
// or, with its problems printed, the status that ends the program.
class Replayer {
 public:
  explicit Replayer(const ReplayArguments& arguments) : arguments_(arguments) {}

  int Run() {
    for (const auto phase : {&Replayer::CheckCall, &Replayer::Load, &Replayer::Compile,
                             &Replayer::OpenSinks, &Replayer::Simulate, &Replayer::Write}) {
      if (const int status = (this->*phase)(); status != kDone) return status;
    }
    return arguments_.strict && simulation_.report.out_of_memory ? SayItDoesNotFit() : kDone;
  }

 private:
  int CheckCall() {
    const Diagnostics idle = CheckEffects(arguments_);
    const Diagnostics clashes = CheckOutputFiles(arguments_);
    PrintProblems(idle);
    PrintProblems(clashes);
    const bool tokens = ReadRunTokens(arguments_.tokens, &run_tokens_);
    if (!tokens || !idle.empty() || !clashes.empty()) return kWrongInput;
    WarnOfFileNames(arguments_);
    return kDone;
  }

  // Why --strict ends the call with 1.
  int SayItDoesNotFit() const {
    const metrics::StepReport& step = simulation_.report;
    PrintProblems({{{},
                    fmt::format("--strict: out of memory: the peak of {} at stage {} is over "
                                "the {} that {} has for it",
                                report::BytesText(step.peak_memory), step.peak_memory_stage,
                                report::BytesText(step.memory_capacity), run_.gpu.name)}});
    return kAnswerIsNo;
  }

  int Load() {
    int status = kDone;
    scenario_ = LoadRun(arguments_.run, status);
    if (!scenario_) return status;
    phases_.Loaded(*scenario_);
    PrintWarnings(scenario_->warnings);
    run_ = simulate::DescribeRun(*scenario_);
    run_.run_tokens = run_tokens_;
    if (arguments_.steps > 1 && !simulate::StepsDiffer(*scenario_)) {
      PrintWarnings({{{},
                      "--steps: no perturbation of the run is drawn anew in each step, so all "
                      "steps are alike"}});
    }
    for (const std::int32_t rank : arguments_.trace_ranks) {
      const std::int64_t last = scenario_->parallel.world_size() - 1;
      if (rank < 0 || rank > last) {
        PrintProblems({{{}, fmt::format("--trace-ranks {}: ranks are 0 to {}", rank, last)}});
        return kWrongInput;
      }
      options_.record_ranks.push_back(RankId(rank));
    }
    return kDone;
  }

  int Compile() {
    options_.unfold = arguments_.unfold;
    options_.shuffle_ties = arguments_.shuffle_ties;
    Result<simulate::CompiledStep> compiled =
        simulate::CompileStep(*scenario_, options_.unfold, options_.record_ranks);
    if (!compiled) {
      PrintProblems(compiled.error());
      return StatusOf(compiled.error());
    }
    compiled_ = std::move(*compiled);
    phases_.Compiled(compiled_);
    options_.critical_path = arguments_.critical_path ||
                             (!arguments_.no_critical_path &&
                              program::CountOperations(compiled_.program) <= kPathOperations);
    return kDone;
  }

  // What receives the operations while they are simulated.
  int OpenSinks() {
    if (!arguments_.trace_file.empty()) {
      Result<std::unique_ptr<report::TraceWriter>> opened = report::OpenTrace(
          arguments_.trace_file, compiled_.program, run_, TraceOptionsOf(arguments_));
      if (!opened) {
        PrintProblems(opened.error());
        return kFileTrouble;
      }
      trace_ = std::move(*opened);
      sinks_.Add(trace_.get());
    }
    if (!arguments_.html_file.empty()) sinks_.Add(&recorder_.emplace(compiled_.program));
    if (sinks_.empty()) return kDone;
    options_.record_stages = arguments_.trace_ranks.empty();
    options_.sink = &sinks_;
    return kDone;
  }

  int Simulate() {
    report::ProgressBar progress("simulating", report::DetectTerminal(STDERR_FILENO));
    options_.progress = [&progress](Ratio done) { progress.Update(done); };
    Result<simulate::Simulation> simulation =
        simulate::Run(*scenario_, std::move(compiled_), options_);
    if (simulation && arguments_.steps > 1) {
      Result<std::vector<Duration>> steps =
          simulate::SimulateSteps(*scenario_, options_, simulation->report.step_time,
                                  arguments_.steps, arguments_.threads, options_.progress);
      if (steps) {
        simulation->report.steps = std::move(*steps);
      } else {
        simulation = tl::unexpected<Diagnostics>(std::move(steps.error()));
      }
    }
    progress.Clear();
    options_.progress = nullptr;
    if (!simulation) {
      PrintProblems(simulation.error());
      return StatusOf(simulation.error());
    }
    simulation_ = std::move(*simulation);
    PrintWarnings(simulation_.compiled.warnings);
    for (const Diagnostic& warning : simulation_.compiled.warnings) {
      run_.warnings.push_back(ToString(warning));
    }
    phases_.Executed(simulation_.result);
    return kDone;
  }

  int Write() {
    const std::string page =
        recorder_ ? simulate::RenderReplayPage(*scenario_, simulation_, *recorder_) : "";
    const int written = WriteFiles(arguments_, run_, simulation_, trace_.get(), page);
    return written == kDone ? PrintOutput(Render(arguments_, run_, simulation_)) : written;
  }

  const ReplayArguments& arguments_;
  Phases phases_;
  std::optional<TokenCount> run_tokens_;
  std::optional<scenario::Scenario> scenario_;
  report::RunDescription run_;
  simulate::SimulateOptions options_;
  simulate::CompiledStep compiled_;  // until it runs
  std::unique_ptr<report::TraceWriter> trace_;
  std::optional<report::OperationRecorder> recorder_;
  Sinks sinks_;
  simulate::Simulation simulation_;
};

}  // namespace

void AddReplayCommand(CLI::App& app, const std::string& executable, int& status) {
  auto arguments = std::make_shared<ReplayArguments>();
  arguments->run.executable = executable;
  CLI::App* command = app.add_subcommand("replay", "Simulate one training step and report it");
  arguments->command = command;
  arguments->run.Add(*command);
  command->add_option("--format", arguments->format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  AddRunTokens(*command, &arguments->tokens);
  command->add_option("--json", arguments->json_file, "Also write the JSON report to a file")
      ->type_name("FILE")
      ->check(NamesAFile());
  command
      ->add_option("--html", arguments->html_file,
                   "Also write a report page that opens in a browser, without a network")
      ->type_name("FILE")
      ->check(NamesAFile());
  command->add_flag("--timeline", arguments->timeline,
                    "Draw the actions of every stage below the table, cut to the terminal");
  CLI::Option* trace =
      command
          ->add_option("--trace", arguments->trace_file,
                       "Write a Chrome trace, compressed when the name ends in .gz")
          ->type_name("FILE")
          ->check(NamesAFile());
  command->add_option("--trace-level", arguments->trace_level, "action, window or kernel")
      ->needs(trace)
      ->check(CLI::IsMember({"action", "window", "kernel"}));
  command
      ->add_option("--trace-layout", arguments->trace_layout,
                   "merged (one file) or kineto (one file per rank)")
      ->needs(trace)
      ->check(CLI::IsMember({"merged", "kineto"}));
  command
      ->add_option("--trace-ranks", arguments->trace_ranks,
                   "Ranks to trace instead of one per pipeline stage: 0,8,16")
      ->needs(trace)
      ->delimiter(',');
  command
      ->add_option("--trace-microbatches", arguments->trace_microbatches,
                   "With --trace-level window: how many microbatches at the begin and at the end "
                   "show their kernels (default: 4,2)")
      ->needs(trace)
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::NonNegativeNumber)
      ->type_name("FIRST,LAST");
  command
      ->add_flag("--trace-exact", arguments->trace_exact,
                 "With --trace-layout kineto: fractions of microseconds (Holistic Trace "
                 "Analysis then needs HTA_DISABLE_NS_ROUNDING=1)")
      ->needs(trace);
  command
      ->add_option("--shuffle-ties", arguments->shuffle_ties,
                   "Serve simultaneous events in another order; no result changes")
      ->type_name("SEED")
      ->check(IsASeed());
  command->add_flag("--unfold", arguments->unfold,
                    "Simulate every rank instead of one per class of equal ranks");
  command
      ->add_option("--steps", arguments->steps,
                   "Simulate so many steps, each with its own draws of jitter, for their spread")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  AddThreads(*command, &arguments->threads, "Threads for --steps");
  CLI::Option* follow =
      command->add_flag("--critical-path", arguments->critical_path,
                        "Follow the critical path (default: up to 10 million operations)");
  command->add_flag("--no-critical-path", arguments->no_critical_path, "Never follow it")
      ->excludes(follow);
  command->add_flag("--strict", arguments->strict, "Exit with 1 when memory does not fit");
  command->callback([arguments, &status] { status = Replayer(*arguments).Run(); });
}

}  // namespace quadrille::tools
