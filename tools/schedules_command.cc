#include "tools/schedules_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "schedules/ascii_timeline.h"
#include "schedules/batched_calls.h"
#include "schedules/call_by_call.h"
#include "schedules/check.h"
#include "schedules/draw_svg.h"
#include "schedules/evaluate.h"
#include "schedules/registry.h"
#include "schedules/task_costs_text.h"
#include "schedules/text.h"
#include "sim/program/point_to_point.h"
#include "sim/report/file_output.h"
#include "sim/report/terminal.h"
#include "sim/report/text_table.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

using schedules::PipelineSchedule;
using schedules::ScheduleEntry;
using schedules::ScheduleEvaluation;
using schedules::ScheduleRequest;
using schedules::TaskCosts;
using Json = nlohmann::ordered_json;

struct Arguments {
  const CLI::App* command = nullptr;  // the subcommand that is called
  std::string name;
  std::string file;
  std::optional<int> pipeline;
  std::optional<int> microbatches;
  std::optional<int> virtual_stages;
  std::string group;
  std::optional<int> slices;
  std::optional<int> waves;
  std::optional<int> memory_limit;
  std::string costs;
  std::string latency;
  std::string pair;
  std::string format = "table";
  std::string output;
  double width = 0;
  bool header = false;
  bool timeline = false;
};

int Fail(const Diagnostics& problems, int status) {
  PrintProblems(problems);
  return status;
}

int Fail(std::string message, int status) {
  return Fail(Diagnostics{Diagnostic{{}, std::move(message)}}, status);
}

// Far above the order of any schedule that is run: 64 ranks of 1,024 microbatches take 2 MiB.
constexpr std::size_t kMaxOrderBytes = std::size_t{1} << 28;

// Nothing, after a message, when it cannot be read. C's streams, because a directory makes C++'s
// iterators throw.
std::optional<std::string> ReadFile(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  bool good = file != nullptr;
  std::array<char, 1 << 16> block{};
  while (good) {
    if (text.size() > kMaxOrderBytes) {
      Fail(fmt::format("cannot read {}: larger than {} MiB", path, kMaxOrderBytes >> 20),
           kFileTrouble);
      if (file != stdin) std::fclose(file);
      return std::nullopt;
    }
    const std::size_t count = std::fread(block.data(), 1, block.size(), file);
    text.append(block.data(), count);
    if (count == block.size()) continue;
    good = std::ferror(file) == 0;
    break;
  }
  if (!good) Fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)), kFileTrouble);
  if (file != nullptr && file != stdin) std::fclose(file);
  if (!good) return std::nullopt;
  return text;
}

Result<int> ParseGroup(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "auto") return schedules::kAutomaticGroup;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    return Error(fmt::format("--group: expected a whole number from 1 or auto, not '{}'", text));
  }
  return value;
}

// The request that the flags make. All wrong flags are reported at once.
Result<ScheduleRequest> RequestOf(const Arguments& arguments) {
  Diagnostics problems;
  const auto collect = [&](const Diagnostics& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  const auto costs = schedules::ParseTaskCosts(arguments.costs, arguments.latency, arguments.pair);
  if (!costs) collect(costs.error());
  const auto group = ParseGroup(arguments.group);
  if (!group) collect(group.error());
  // Zero is a request's "default"; given on the command line it is a mistake.
  const auto value = [&](const char* flag, const std::optional<int>& given) {
    if (given && *given < 1) {
      problems.push_back({{}, fmt::format("{} must be at least 1, not {}", flag, *given)});
    }
    return given.value_or(0);
  };
  const ScheduleRequest request{.pipeline = value("--pp", arguments.pipeline),
                                .microbatches = value("--microbatches", arguments.microbatches),
                                .virtual_stages = value("--vp", arguments.virtual_stages),
                                .group = group.value_or(0),
                                .slices = value("--slices", arguments.slices),
                                .waves = value("--waves", arguments.waves),
                                .memory_limit = value("--memory-limit", arguments.memory_limit),
                                .costs = costs.value_or(TaskCosts{})};
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  return request;
}

// Costs that change nothing of what is printed: legal, and not what one would do.
void WarnOfIdleCosts(const Arguments& arguments, const PipelineSchedule& schedule, bool timed) {
  IdleOptions idle(*arguments.command);
  const ScheduleEntry* entry = schedules::FindSchedule(arguments.name);
  if (!timed && !(entry != nullptr && entry->needs_costs)) {
    const std::string why =
        fmt::format("on the order of {}, which costs do not change", arguments.name);
    for (const char* option : {"--costs", "--latency", "--pair"}) idle.Check(option, false, why);
  } else if (timed) {
    bool pairs = false;
    for (const auto& slots : schedule.ranks) {
      for (const schedules::Slot& slot : slots) pairs = pairs || slot.second.has_value();
    }
    idle.Check("--pair", pairs, "on an order without fused pairs");
  }
  PrintWarnings(idle.problems());
}

// A value or the exit status that its absence means (already reported).
template <typename T>
using OrStatus = tl::expected<T, int>;

OrStatus<PipelineSchedule> BuildNamed(const Arguments& arguments, const ScheduleRequest& request) {
  auto schedule = schedules::BuildSchedule(arguments.name, request);
  if (!schedule) return tl::unexpected<int>(Fail(schedule.error(), kWrongInput));
  return *std::move(schedule);
}

OrStatus<PipelineSchedule> ReadOrder(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text) return tl::unexpected<int>(kFileTrouble);
  auto schedule = schedules::ParseSchedule(*text, path);
  if (!schedule) return tl::unexpected<int>(Fail(schedule.error(), kWrongInput));
  return *std::move(schedule);
}

std::string Timeline(const PipelineSchedule& schedule, const ScheduleEvaluation& evaluation,
                     const TaskCosts& costs) {
  const report::Terminal terminal = report::DetectTerminal(STDOUT_FILENO);
  return DrawAsciiTimeline(schedule, evaluation, costs,
                           {.width = static_cast<int>(terminal.width), .colour = terminal.color});
}

// ---- list ----

const char* PlacementName(schedules::Placement placement) {
  switch (placement) {
    case schedules::Placement::kLoop: return "loop";
    case schedules::Placement::kV: return "v";
    case schedules::Placement::kBidirectional: return "bidir";
  }
  return "?";
}

int RunList(const Arguments& arguments) {
  if (arguments.format == "json") {
    Json list = Json::array();
    for (const ScheduleEntry& entry : schedules::BuiltInSchedules()) {
      list.push_back({{"name", entry.name},
                      {"description", entry.description},
                      {"default_virtual_stages", entry.default_virtual_stages},
                      {"placement", PlacementName(entry.placement)},
                      {"needs_costs", entry.needs_costs},
                      {"source", entry.source}});
    }
    return PrintOutput(list.dump(2) + '\n');
  }
  report::TextTable table({{"name"},
                           {"description"},
                           {"vp", report::Align::kRight},
                           {"placement"},
                           {"costs"},
                           {"source"}});
  for (const ScheduleEntry& entry : schedules::BuiltInSchedules()) {
    table.AddRow({std::string(entry.name), std::string(entry.description),
                  std::to_string(entry.default_virtual_stages), PlacementName(entry.placement),
                  entry.needs_costs ? "yes" : "no", std::string(entry.source)});
  }
  return PrintOutput(arguments.format == "csv" ? table.RenderCsv()
                                               : table.Render(OutputStyle(), /*indent=*/0));
}

// ---- print ----

int RunPrint(const Arguments& arguments) {
  IdleOptions idle(*arguments.command);
  idle.Check("--header", !arguments.timeline, "with --timeline");
  if (!idle.problems().empty()) return Fail(idle.problems(), kWrongInput);
  const auto request = RequestOf(arguments);
  if (!request) return Fail(request.error(), kWrongInput);
  const auto schedule = BuildNamed(arguments, *request);
  if (!schedule) return schedule.error();
  WarnOfIdleCosts(arguments, *schedule, arguments.timeline);
  if (!arguments.timeline) return PrintOutput(PrintSchedule(*schedule, arguments.header));
  const auto evaluation = EvaluateSchedule(*schedule, request->costs);
  if (!evaluation) return Fail(evaluation.error(), StatusOf(evaluation.error()));
  return PrintOutput(Timeline(*schedule, *evaluation, request->costs));
}

// ---- check ----

template <typename T, typename Format>
std::string Joined(const std::vector<T>& values, std::string_view separator, Format format) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += separator;
    text += format(value);
  }
  return text;
}
std::string Number(double value) { return fmt::format("{:.6g}", value); }
std::string Units(Duration time) { return Number(schedules::ToUnits(time)); }
std::string Count(std::int32_t value) { return std::to_string(value); }

// How an order fares where sends are not eager.
struct OtherSends {
  std::string posted_ahead;    // why it deadlocks; empty: it runs
  std::string blocking;        // likewise
  bool batched = false;        // the blocking calls are Megatron-LM's batches, else one per message
  Duration blocking_makespan;  // where it runs
};

OtherSends TryOtherSends(const PipelineSchedule& schedule, const TaskCosts& costs) {
  OtherSends sends;
  sends.posted_ahead = program::OvertakingMessage(schedule);
  const auto batches = schedules::MegatronBatchesOf(schedule, {});
  sends.batched = batches.has_value();
  const Result<Duration> makespan =
      batches ? schedules::EvaluateBlocking(*batches, costs).map([](const auto& e) {
        return e.makespan;
      })
              : schedules::EvaluateCallByCall(schedule, costs);
  if (makespan) {
    sends.blocking_makespan = *makespan;
  } else {
    sends.blocking = makespan.error().front().message;
  }
  return sends;
}

Json SendsJson(const OtherSends& sends) {
  const auto reason = [](const std::string& why) {
    return why.empty() ? Json(nullptr) : Json(why);
  };
  const bool runs = sends.blocking.empty();
  return {{"assumed", "eager"},
          {"posted_ahead",
           {{"runs", sends.posted_ahead.empty()}, {"reason", reason(sends.posted_ahead)}}},
          {"blocking",
           {{"runs", runs},
            {"calls", sends.batched ? "batched" : "one per message"},
            {"makespan", runs ? Json(schedules::ToUnits(sends.blocking_makespan)) : Json(nullptr)},
            {"reason", reason(sends.blocking)}}}};
}

std::string SendsText(const OtherSends& sends) {
  std::string text =
      "sends                 eager: a message leaves when its action ends; in other modes:\n"
      "  posted ahead        ";
  text += sends.posted_ahead.empty() ? "runs" : "deadlocks: " + sends.posted_ahead;
  text += "\n  blocking            ";
  if (!sends.blocking.empty()) return text + sends.blocking + "\n";
  return text + fmt::format("runs {}, makespan {}\n",
                            sends.batched ? "in Megatron-LM's batches" : "with a call per message",
                            Units(sends.blocking_makespan));
}

Json CheckJson(const PipelineSchedule& schedule, const ScheduleEvaluation& result,
               const TaskCosts& costs) {
  Json idle = Json::array();
  for (const Duration time : result.idle_inside_span) idle.push_back(schedules::ToUnits(time));
  return {{"schema_version", 1},
          {"valid", true},
          {"schedule", schedule.name},
          {"pipeline", schedule.pipeline},
          {"microbatches", schedule.microbatches},
          {"virtual_stages", schedule.virtual_stages},
          {"costs", ToString(costs)},
          {"makespan", schedules::ToUnits(result.makespan)},
          {"bubble",
           {{"of_makespan", result.bubble_of_makespan.value()},
            {"of_ideal", result.bubble_of_ideal.value()},
            {"of_span", result.bubble_of_span.value()}}},
          {"idle_inside_span", idle},
          {"peak_activations", result.peak_activations},
          {"peak_activations_release_at_input_gradient",
           result.peak_activations_release_at_input_gradient},
          {"messages", result.messages},
          {"sends", SendsJson(TryOtherSends(schedule, costs))}};
}

std::string CheckCsv(const ScheduleEvaluation& result) {
  return fmt::format(
      "makespan,bubble_of_makespan,bubble_of_ideal,bubble_of_span,idle_inside_span,peak_"
      "activations,"
      "peak_activations_release_at_input_gradient,messages\n{},{:.6g},{:.6g},{:.6g},{},{},{},{}\n",
      Units(result.makespan), result.bubble_of_makespan.value(), result.bubble_of_ideal.value(),
      result.bubble_of_span.value(), Joined(result.idle_inside_span, "|", Units),
      Joined(result.peak_activations, "|", Count),
      Joined(result.peak_activations_release_at_input_gradient, "|", Count), result.messages);
}

std::string CheckTable(const PipelineSchedule& schedule, const ScheduleEvaluation& result,
                       const TaskCosts& costs) {
  std::string text = fmt::format(
      "{}: {} ranks, {} microbatches, {} chunk{} per rank; every action once, causal, no deadlock "
      "with eager sends\n"
      "costs                 {}\n"
      "makespan              {}\n"
      "bubble of makespan    {:.2f} %  (idle over ranks x makespan)\n"
      "bubble of ideal       {:.2f} %  (idle over busy)\n"
      "bubble of span        {:.2f} %  (largest over ranks, inside the rank's own span)\n"
      "messages              {}\n{}\n",
      schedule.name.empty() ? "order" : schedule.name, schedule.pipeline, schedule.microbatches,
      schedule.virtual_stages, schedule.virtual_stages == 1 ? "" : "s", ToString(costs),
      Units(result.makespan), 100 * result.bubble_of_makespan.value(),
      100 * result.bubble_of_ideal.value(), 100 * result.bubble_of_span.value(), result.messages,
      SendsText(TryOtherSends(schedule, costs)));
  report::TextTable table({{"rank", report::Align::kRight},
                           {"idle inside span", report::Align::kRight},
                           {"peak activations", report::Align::kRight},
                           {"released at I", report::Align::kRight}});
  for (std::size_t r = 0; r < result.idle_inside_span.size(); ++r) {
    table.AddRow({std::to_string(r), Units(result.idle_inside_span[r]),
                  std::to_string(result.peak_activations[r]),
                  std::to_string(result.peak_activations_release_at_input_gradient[r])});
  }
  return text + table.Render(OutputStyle(), /*indent=*/0);
}

// The order is bad: the problems on standard error, and as data for those who asked for JSON.
int Invalid(const Arguments& arguments, Diagnostics problems) {
  for (Diagnostic& problem : problems) problem.position.file = arguments.file;
  if (arguments.format == "json") {
    Json list = Json::array();
    for (const Diagnostic& problem : problems) list.push_back(problem.message);
    const int status = PrintOutput(
        Json({{"schema_version", 1}, {"valid", false}, {"problems", list}}).dump(2) + '\n');
    if (status != kDone) return status;
  }
  return Fail(problems, kAnswerIsNo);
}

int RunCheck(const Arguments& arguments) {
  IdleOptions idle(*arguments.command);
  idle.Check("--timeline", arguments.format == "table", "with --format " + arguments.format);
  if (!idle.problems().empty()) return Fail(idle.problems(), kWrongInput);
  const auto costs = schedules::ParseTaskCosts(arguments.costs, arguments.latency, arguments.pair);
  if (!costs) return Fail(costs.error(), kWrongInput);
  const auto schedule = ReadOrder(arguments.file);
  if (!schedule) return schedule.error();
  if (Diagnostics problems = CheckSchedule(*schedule); !problems.empty()) {
    return Invalid(arguments, std::move(problems));
  }
  const auto result = EvaluateSchedule(*schedule, *costs);
  if (!result) return Fail(result.error(), StatusOf(result.error()));
  WarnOfIdleCosts(arguments, *schedule, /*timed=*/true);
  if (arguments.format == "json") {
    return PrintOutput(CheckJson(*schedule, *result, *costs).dump(2) + '\n');
  }
  if (arguments.format == "csv") return PrintOutput(CheckCsv(*result));
  std::string text = CheckTable(*schedule, *result, *costs);
  if (arguments.timeline) text += '\n' + Timeline(*schedule, *result, *costs);
  return PrintOutput(text);
}

// ---- draw ----

OrStatus<PipelineSchedule> OrderToDraw(const Arguments& arguments, const ScheduleRequest& request) {
  if (!arguments.file.empty()) {
    auto schedule = ReadOrder(arguments.file);
    if (!schedule) return schedule;
    if (Diagnostics problems = CheckSchedule(*schedule); !problems.empty()) {
      return tl::unexpected<int>(Invalid(arguments, std::move(problems)));
    }
    return schedule;
  }
  return BuildNamed(arguments, request);
}

int RunDraw(const Arguments& arguments) {
  if (arguments.name.empty() == arguments.file.empty()) {
    return Fail("draw: give either the name of a schedule or --file", kWrongInput);
  }
  if (arguments.file.empty() && (!arguments.pipeline || !arguments.microbatches)) {
    return Fail("draw: a built-in schedule needs --pp and --microbatches", kWrongInput);
  }
  IdleOptions idle(*arguments.command);
  for (const char* option :
       {"--pp", "--microbatches", "--vp", "--group", "--slices", "--waves", "--memory-limit"}) {
    idle.Check(option, arguments.file.empty(), "with --file, whose order has its sizes");
  }
  idle.Check("--output", !arguments.timeline, "with --timeline");
  idle.Check("--width", !arguments.timeline, "with --timeline");
  if (!idle.problems().empty()) return Fail(idle.problems(), kWrongInput);
  const auto request = RequestOf(arguments);
  if (!request) return Fail(request.error(), kWrongInput);
  const auto schedule = OrderToDraw(arguments, *request);
  if (!schedule) return schedule.error();
  const auto evaluation = EvaluateSchedule(*schedule, request->costs);
  if (!evaluation) return Fail(evaluation.error(), StatusOf(evaluation.error()));
  WarnOfIdleCosts(arguments, *schedule, /*timed=*/true);
  if (arguments.timeline) return PrintOutput(Timeline(*schedule, *evaluation, request->costs));
  PrintWarnings(CheckFileName("--output", arguments.output, {"svg"}));
  const std::string svg =
      DrawSvg(*schedule, *evaluation, request->costs, {.width = arguments.width, .title = {}});
  const bool to_terminal = arguments.output.empty() || arguments.output == "-";
  if (to_terminal) return PrintOutput(svg);
  const Result<void> written = report::WriteFile(arguments.output, svg);
  return written ? kDone : Fail(written.error(), kFileTrouble);
}

// ---- options ----

void AddFormat(CLI::App& command, Arguments& arguments) {
  command.add_option("--format", arguments.format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
}

void AddCosts(CLI::App& command, Arguments& arguments) {
  command.add_option("--costs", arguments.costs,
                     "time of a chunk's actions, as F=1,B=2,I=1,W=1 (I: input gradient, W: weight "
                     "gradient, B: both)");
  command.add_option("--latency", arguments.latency, "time of a hop between ranks, default 0");
  command.add_option("--pair", arguments.pair,
                     "a fused pair: its duration, sum (F+B, the default) or serial");
}

void AddOrderOptions(CLI::App& command, Arguments& arguments, bool sizes_required) {
  CLI::Option* name = command.add_option("name", arguments.name, "a built-in schedule (see list)");
  CLI::Option* pipeline = command.add_option("--pp", arguments.pipeline, "pipeline ranks, P");
  CLI::Option* microbatches = command.add_option("--microbatches", arguments.microbatches,
                                                 "microbatches per pipeline and step, M");
  if (sizes_required) {
    name->required();
    pipeline->required();
    microbatches->required();
  }
  command.add_option("--vp", arguments.virtual_stages, "virtual stages (chunks) per rank, v");
  command.add_option("--group", arguments.group,
                     "microbatch group N of interleaved schedules, a number or auto (PyTorch's)");
  command.add_option("--slices", arguments.slices, "sequence slices, Q");
  command.add_option("--waves", arguments.waves, "waves of hanayo");
  command.add_option("--memory-limit", arguments.memory_limit,
                     "cap on activations: in stages for zb-auto, in chunks for v-auto");
  AddCosts(command, arguments);
}

}  // namespace

void AddSchedulesCommand(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("schedules", "list, print, check and draw pipeline schedules");
  command->require_subcommand(0, 1);
  const auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* description,
                       int (*run)(const Arguments&)) -> CLI::App& {
    CLI::App* sub = command->add_subcommand(name, description);
    sub->callback([arguments, run, sub, &status] {
      arguments->command = sub;
      status = run(*arguments);
    });
    return *sub;
  };
  AddFormat(add("list", "the built-in schedules; what is done without a subcommand", RunList),
            *arguments);
  command->callback([command, arguments, &status] {
    if (command->get_subcommands().empty()) status = RunList(*arguments);
  });

  CLI::App& print = add("print", "an order, one line per rank", RunPrint);
  AddOrderOptions(print, *arguments, /*sizes_required=*/true);
  print.add_flag("--header", arguments->header, "with the header that check reads");
  print.add_flag("--timeline", arguments->timeline, "as a timeline instead, cut to the terminal");

  CLI::App& check = add("check", "validate an order file and evaluate it", RunCheck);
  check.add_option("file", arguments->file, "order file, - for standard input")->required();
  AddCosts(check, *arguments);
  AddFormat(check, *arguments);
  check.add_flag("--timeline", arguments->timeline, "draw it below the table, cut to the terminal");

  CLI::App& draw = add("draw", "a picture of a schedule as SVG", RunDraw);
  AddOrderOptions(draw, *arguments, /*sizes_required=*/false);
  draw.add_option("--file", arguments->file, "an order file instead of a built-in schedule");
  draw.add_option("--output,-o", arguments->output, "SVG file; standard output if - or not given")
      ->check(NamesAFile());
  draw.add_option("--width", arguments->width, "of the picture in pixels")
      ->check(CLI::Range(200.0, 100000.0));
  draw.add_flag("--timeline", arguments->timeline, "as text on the terminal instead");
}

}  // namespace quadrille::tools
