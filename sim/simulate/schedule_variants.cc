#include "sim/simulate/schedule_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "schedules/registry.h"
#include "sim/base/nearest.h"
#include "sim/report/choice_text.h"
#include "sim/report/number_text.h"
#include "sim/scenario/default_sends.h"
#include "sim/scenario/scenario_hash.h"
#include "sim/simulate/compare_row.h"
#include "sim/simulate/layout_choice.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;
using schedules::Placement;
using schedules::ScheduleEntry;
using schedules::ScheduleRequest;

constexpr std::array<std::string_view, 5> kOptions = {"vp", "group", "slices", "waves",
                                                      "memory-limit"};

std::optional<std::int32_t>* FieldOf(ScheduleSpec& spec, std::string_view option) {
  if (option == "vp") return &spec.virtual_stages;
  if (option == "group") return &spec.group;
  if (option == "slices") return &spec.slices;
  if (option == "waves") return &spec.waves;
  if (option == "memory-limit") return &spec.memory_limit;
  return nullptr;
}

std::string Suggestion(std::string_view nearest) {
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

void ParseOption(ScheduleSpec& spec, const std::string& text, Diagnostics& problems) {
  const std::size_t equals = text.find('=');
  const std::string option = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  std::optional<std::int32_t>* field = FieldOf(spec, option);
  if (field == nullptr) {
    problems.push_back({{},
                        fmt::format("schedule '{}': there is no option '{}'{}", spec.label, option,
                                    Suggestion(Nearest(option, kOptions)))});
    return;
  }
  if (option == "group" && value == "auto") {
    *field = schedules::kAutomaticGroup;
    return;
  }
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1) {
    problems.push_back({{},
                        fmt::format("schedule '{}': {} needs a whole number from 1, not '{}'",
                                    spec.label, option, value)});
    return;
  }
  *field = number;
}

ScheduleRequest RequestFor(const Scenario& run, const ScheduleSpec& spec) {
  ScheduleRequest request;
  request.pipeline = run.parallel.pipeline;
  request.microbatches = run.microbatches;
  request.costs = run.schedule.request.costs;
  request.group = spec.group.value_or(0);
  request.slices = spec.slices.value_or(0);
  request.waves = spec.waves.value_or(0);
  request.memory_limit = spec.memory_limit.value_or(0);
  return request;
}

bool LeavesSizesOpen(const ScheduleSpec& spec) {
  return !spec.virtual_stages && !spec.group && !spec.slices && !spec.waves && !spec.memory_limit;
}

// Chunks that the layers of one pipeline are dealt to. A bidirectional schedule has two copies of P
// stages.
std::int32_t ChunksPerRank(const ScheduleEntry& entry, std::int32_t virtual_stages) {
  return entry.placement == Placement::kBidirectional ? 1 : virtual_stages;
}

// What the run leaves open is what it would be if the run named this schedule. Returns what that is
// where it differs from the run.
std::string ChooseSends(Scenario& scenario, const Scenario& run) {
  const bool open = std::any_of(
      run.assumptions.begin(), run.assumptions.end(),
      [](const scenario::Assumption& assumption) { return assumption.key == "overlap.p2p"; });
  if (!open) return "";
  const program::PointToPoint sends =
      scenario::DefaultPointToPoint(scenario.schedule.name, scenario.parallel.virtual_stages);
  if (sends == run.overlap.point_to_point) return "";
  scenario.overlap.point_to_point = sends;
  return fmt::format("point-to-point {}, which is the default with it", report::NameOf(sends));
}

Result<Simulation> SimulateRecorded(const Scenario& scenario, const SimulateOptions& options,
                                    const MakeSink& make_sink) {
  if (!make_sink) return Simulate(scenario, options);
  Result<CompiledStep> compiled = CompileStep(scenario, options.unfold);
  if (!compiled) return tl::unexpected<Diagnostics>(compiled.error());
  SimulateOptions recording = options;
  recording.sink = make_sink(compiled->program);
  return Run(scenario, std::move(*compiled), recording);
}

}  // namespace

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<ScheduleSpec>> ParseScheduleList(const std::string& text) {
  std::vector<ScheduleSpec> specs;
  Diagnostics problems;
  std::vector<std::string_view> names;
  for (const ScheduleEntry& entry : schedules::BuiltInSchedules()) names.push_back(entry.name);
  for (const std::string& item : Split(text, ',')) {
    const std::vector<std::string> parts = Split(item, ':');
    ScheduleSpec spec;
    spec.name = parts.front();
    spec.label = item;
    if (schedules::FindSchedule(spec.name) == nullptr) {
      problems.push_back({{},
                          fmt::format("there is no schedule named '{}'{}", spec.name,
                                      Suggestion(Nearest(spec.name, names)))});
    }
    for (std::size_t i = 1; i < parts.size(); ++i) ParseOption(spec, parts[i], problems);
    const bool known = std::any_of(specs.begin(), specs.end(), [&](const ScheduleSpec& other) {
      return other.label == spec.label;
    });
    if (!known) specs.push_back(std::move(spec));
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(problems);
  return specs;
}

std::vector<ScheduleSpec> AllSchedules(const Scenario& run) {
  std::vector<ScheduleSpec> specs;
  const auto add = [&](std::string_view name) {
    ScheduleSpec spec;
    spec.name = name;
    spec.label = name;
    specs.push_back(std::move(spec));
  };
  if (run.schedule.order) {
    add(run.schedule.order_file);
  } else {
    add(run.schedule.name);
  }
  for (const ScheduleEntry& entry : schedules::BuiltInSchedules()) {
    if (entry.name != specs.front().name) add(entry.name);
  }
  return specs;
}

Result<ScheduleVariant> MakeVariant(const Scenario& run, const ScheduleSpec& spec) {
  ScheduleVariant variant;
  variant.label = spec.label;
  variant.scenario = run;
  if (run.schedule.order && spec.name == run.schedule.order_file) {
    variant.own = true;
    variant.label = std::filesystem::path(spec.name).filename().string();
    return variant;
  }
  if (!run.schedule.order && spec.name == run.schedule.name && LeavesSizesOpen(spec)) {
    variant.own = true;
    const auto built = schedules::BuildSchedule(spec.name, run.schedule.request);
    if (!built) return tl::unexpected<Diagnostics>(built.error());
    return variant;
  }
  const ScheduleEntry* entry = schedules::FindSchedule(spec.name);
  if (entry == nullptr) return Error(fmt::format("there is no schedule named '{}'", spec.name));
  ScheduleRequest request = RequestFor(run, spec);
  std::vector<std::int32_t> choices;
  if (spec.virtual_stages) {
    choices = {*spec.virtual_stages};
  } else {
    if (run.parallel.virtual_stages > 1) choices.push_back(run.parallel.virtual_stages);
    choices.push_back(entry->default_virtual_stages);
  }
  Diagnostics refusal;
  for (std::int32_t virtual_stages : choices) {
    request.virtual_stages = virtual_stages;
    const auto built = schedules::BuildSchedule(spec.name, request);
    if (!built) {
      refusal = built.error();
      continue;
    }
    Scenario& scenario = variant.scenario;
    scenario.schedule.name = spec.name;
    scenario.schedule.order.reset();
    scenario.schedule.order_file.clear();
    scenario.schedule.request = request;
    scenario.parallel.virtual_stages = virtual_stages;
    const Result<LayoutChoice> layout =
        ChooseLayout(run, run.parallel.pipeline, ChunksPerRank(*entry, virtual_stages));
    if (!layout) return tl::unexpected<Diagnostics>(layout.error());
    scenario.layout = layout->options;
    variant.layout = layout->difference;
    if (const std::string sends = ChooseSends(scenario, run); !sends.empty()) {
      variant.layout += (variant.layout.empty() ? "" : "; ") + sends;
    }
    scenario.hash = scenario::HashOf(scenario);
    return variant;
  }
  return tl::unexpected<Diagnostics>(refusal);
}

Result<Simulation> SimulateVariant(ScheduleVariant& variant, const SimulateOptions& options,
                                   const MakeSink& make_sink) {
  Scenario& scenario = variant.scenario;
  const ScheduleEntry* entry = schedules::FindSchedule(scenario.schedule.name);
  const bool from_costs = !scenario.schedule.order && entry != nullptr && entry->needs_costs;
  if (!from_costs) return SimulateRecorded(scenario, options, make_sink);
  const Result<Simulation> first = Simulate(scenario, options);
  if (!first) return tl::unexpected<Diagnostics>(first.error());
  schedules::TaskCosts costs = MeasureCosts(*first);
  costs.pair_cost = scenario.schedule.request.costs.pair_cost;
  scenario.schedule.request.costs = costs;
  scenario.hash = scenario::HashOf(scenario);
  variant.costs =
      fmt::format("built from F {}, I {}, W {}, hop {}, measured on its order for equal costs",
                  report::TimeText(costs.forward), report::TimeText(costs.backward_input),
                  report::TimeText(costs.backward_weight), report::TimeText(costs.latency));
  return SimulateRecorded(scenario, options, make_sink);
}

}  // namespace quadrille::simulate
