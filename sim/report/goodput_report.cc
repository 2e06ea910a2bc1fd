#include "sim/report/goodput_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/report/number_text.h"
#include "sim/report/version.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;
using reliability::GoodputReport;
using reliability::kRunStates;
using reliability::RunState;
using reliability::Spread;
using reliability::ToSeconds;
using reliability::WallTime;

constexpr int kGoodputSchema = 1;

// "54 d", "3.09 h", "10 min", "2.84 s".
std::string WallText(WallTime time) {
  const double seconds = ToSeconds(time);
  if (seconds >= 2 * 86'400.0) return fmt::format("{:.4g} d", seconds / 86'400.0);
  if (seconds >= 2 * 3'600.0) return fmt::format("{:.4g} h", seconds / 3'600.0);
  if (seconds >= 120.0) return fmt::format("{:.4g} min", seconds / 60.0);
  return fmt::format("{:.4g} s", seconds);
}

// What follows from failures, if there are any.
std::string WallText(const std::optional<WallTime>& time) {
  return time ? WallText(*time) : "none";
}
Json SecondsJson(const std::optional<WallTime>& time) {
  return time ? Json(ToSeconds(*time)) : Json();
}

std::string Share(double share) { return PercentText(Ratio(share)); }

// Lines that say what the figures rest on.
std::vector<std::pair<std::string, std::string>> Assumptions(const GoodputDescription& description,
                                                             const GoodputReport& report) {
  const reliability::ReliabilitySpec& spec = description.spec;
  const reliability::FailureTable& failures = spec.failures;
  double observed = 0.0;
  for (const reliability::FailureComponent& component : failures.components) {
    observed += component.count;
  }
  const std::string cost = description.checkpoint_bytes.value() == 0
                               ? WallText(report.job.checkpoint_cost)
                               : fmt::format("{}: {} at {}", WallText(report.job.checkpoint_cost),
                                             BytesText(description.checkpoint_bytes),
                                             RateText(*spec.checkpoint.storage));
  return {
      {"failures",
       fmt::format("{:.6g} unplanned and {:.6g} planned in {} on {} GPUs ({}), {}", observed,
                   failures.planned, WallText(failures.duration), CountText(failures.gpus),
                   failures.name.empty() ? "given in the run" : failures.name,
                   failures.source.empty() ? "no source stated" : failures.source)},
      {"scaling",
       "each component a Poisson process; its rate grows with GPUs, nodes or not at all"},
      {"counting",
       "failures per wall clock, as observed; one during a recovery begins it anew and counts"},
      {"checkpoint", fmt::format("every {} of training ({} steps), which stands still for {}",
                                 WallText(report.plan.steps_between_checkpoints * report.job.step),
                                 CountText(report.plan.steps_between_checkpoints), cost)},
      {"detection", WallText(spec.detection) + " from a failure to the decision to restart"},
      {"restart", WallText(spec.restart) + " from there to the first step"},
      {"planned", WallText(spec.planned) + " of downtime after a checkpoint; no step is lost"},
      {"spares", fmt::format("{} nodes; a replaced node is a spare after {}",
                             CountText(spec.spares), WallText(spec.repair))},
      {"step",
       fmt::format("{} as simulated by replay, the same throughout", WallText(report.job.step))}};
}

std::vector<Cell> SpreadRow(const char* name, const Spread& spread, int digits) {
  const auto text = [digits](double value) { return fmt::format("{:.{}f}", value, digits); };
  return {name, text(spread.p5), text(spread.median), text(spread.p95), text(spread.mean)};
}

double TokensOf(const GoodputDescription& description, double steps) {
  return steps * static_cast<double>(description.tokens_per_step.value());
}

Json SpreadJson(const Spread& spread) {
  return {{"p5", spread.p5}, {"median", spread.median}, {"p95", spread.p95}, {"mean", spread.mean}};
}

std::string RunSection(const GoodputDescription& description, const GoodputReport& report,
                       const TableStyle& style) {
  TextTable spread({{""},
                    {"p5", Align::kRight},
                    {"median", Align::kRight},
                    {"p95", Align::kRight},
                    {"mean", Align::kRight}});
  spread.AddRow({{"effective training time", Emphasis::kStrong},
                 Share(report.goodput.p5),
                 {Share(report.goodput.median), Emphasis::kStrong},
                 Share(report.goodput.p95),
                 Share(report.goodput.mean)});
  spread.AddRow(SpreadRow("interruptions", report.interruptions, 0));
  spread.AddRow(SpreadRow("of them unplanned", report.unplanned, 0));
  spread.AddRow(SpreadRow("of those during a recovery", report.during_recovery, 0));
  spread.AddRow(SpreadRow("wall clock, days", report.wall_days, 2));
  spread.AddRow(SpreadRow("steps that count", report.steps, 0));
  const auto trillions = [&](double steps) { return TokensOf(description, steps) / 1e12; };
  spread.AddRow(SpreadRow("tokens, trillions",
                          {trillions(report.steps.p5), trillions(report.steps.median),
                           trillions(report.steps.p95), trillions(report.steps.mean)},
                          3));
  return Heading("Run", "over seeds; effective: time of steps that count / wall clock", style) +
         spread.Render(style);
}

std::string StatesSection(const GoodputReport& report, const TableStyle& style) {
  TextTable states({{"state"}, {"share", Align::kRight}, {"days", Align::kRight}});
  for (std::size_t s = 0; s < kRunStates; ++s) {
    states.AddRow({std::string(NameOf(static_cast<RunState>(s))), Share(report.states[s]),
                   fmt::format("{:.3f}", report.states[s] * report.wall_days.mean)});
  }
  return Heading("Where the time goes", "mean over seeds", style) + states.Render(style);
}

std::string FailuresSection(const GoodputDescription& description, const GoodputReport& report,
                            const TableStyle& style) {
  TextTable components(
      {{"component"}, {"expected", Align::kRight}, {"simulated, mean", Align::kRight}});
  for (std::size_t c = 0; c < report.mean_failures.size(); ++c) {
    components.AddRow({description.spec.failures.components[c].name,
                       fmt::format("{:.1f}", report.expected_failures[c]),
                       fmt::format("{:.1f}", report.mean_failures[c])});
  }
  return Heading("Failures", "unplanned, by component", style) + components.Render(style);
}

std::string CheckpointSection(const GoodputReport& report, const TableStyle& style) {
  TextTable interval({{"checkpoint interval"}, {"", Align::kRight}, {"effective", Align::kRight}});
  interval.AddRow({"of the run", WallText(report.plan.steps_between_checkpoints * report.job.step),
                   Share(report.goodput.mean)});
  interval.AddRow({{"best of those tried", Emphasis::kStrong},
                   {WallText(report.best.interval), Emphasis::kStrong},
                   Share(report.best.goodput)});
  interval.AddRow({"Young, sqrt(2 C M)", WallText(report.young), ""});
  interval.AddRow({"Daly, higher order", WallText(report.daly), ""});
  const std::string remark =
      fmt::format("C = {}, M = {} between failures", WallText(report.job.checkpoint_cost),
                  WallText(report.mean_time_between_failures));
  return Heading("Checkpoints", remark, style) + interval.Render(style);
}

}  // namespace

std::string RenderGoodputTable(const GoodputDescription& description, const GoodputReport& report,
                               const TableStyle& style) {
  std::string text = Painted(description.run.name, Emphasis::kStrong, style) + "\n";
  const std::string extent =
      description.spec.tokens
          ? fmt::format(" to the end, {} of them finished", CountText(report.finished))
          : fmt::format(" of {}", WallText(report.plan.horizon));
  text += fmt::format("  {} GPUs, {} runs{}, seed {}, scenario {}\n", CountText(report.job.gpus),
                      CountText(report.runs), extent, description.run.seed,
                      HexText(description.run.hash));
  text += RunSection(description, report, style) + StatesSection(report, style) +
          FailuresSection(description, report, style) + CheckpointSection(report, style);
  text += Heading("Assumed", "what the figures rest on", style);
  const std::size_t width = style.width > 40 ? style.width - 14 : 26;
  for (const auto& [name, value] : Assumptions(description, report)) {
    text += fmt::format("  {:<12}{}\n", name, Wrapped(value, width, 14));
  }
  return text;
}

std::string RenderGoodputJson(const GoodputDescription& description, const GoodputReport& report) {
  Json states = Json::object();
  for (std::size_t s = 0; s < kRunStates; ++s) {
    states[std::string(NameOf(static_cast<RunState>(s)))] = report.states[s];
  }
  Json components = Json::array();
  for (std::size_t c = 0; c < report.mean_failures.size(); ++c) {
    components.push_back({{"name", description.spec.failures.components[c].name},
                          {"expected", report.expected_failures[c]},
                          {"simulated_mean", report.mean_failures[c]}});
  }
  Json intervals = Json::array();
  for (const reliability::IntervalResult& tried : report.intervals) {
    intervals.push_back({{"steps", tried.steps},
                         {"interval_s", ToSeconds(tried.interval)},
                         {"goodput", tried.goodput}});
  }
  Json assumptions = Json::object();
  for (const auto& [name, value] : Assumptions(description, report)) assumptions[name] = value;
  const WallTime interval = report.plan.steps_between_checkpoints * report.job.step;
  const Json json = {
      {"schema_version", kGoodputSchema},
      {"goodput", SpreadJson(report.goodput)},
      {"interruptions", SpreadJson(report.interruptions)},
      {"unplanned", SpreadJson(report.unplanned)},
      {"during_recovery", SpreadJson(report.during_recovery)},
      {"wall_days", SpreadJson(report.wall_days)},
      {"steps", SpreadJson(report.steps)},
      {"tokens_per_step", description.tokens_per_step.value()},
      {"runs", report.runs},
      {"finished", report.finished},
      {"states", std::move(states)},
      {"components", std::move(components)},
      {"checkpoint",
       {{"interval_s", ToSeconds(interval)},
        {"cost_s", ToSeconds(report.job.checkpoint_cost)},
        {"mean_time_between_failures_s", SecondsJson(report.mean_time_between_failures)},
        {"young_s", SecondsJson(report.young)},
        {"daly_s", SecondsJson(report.daly)},
        {"best_s", ToSeconds(report.best.interval)},
        {"best_goodput", report.best.goodput},
        {"tried", std::move(intervals)}}},
      {"step_time_s", ToSeconds(report.job.step)},
      {"world_size", report.job.gpus},
      {"scenario", description.run.name},
      {"assumptions", std::move(assumptions)},
      {"version", Version()},
      {"scenario_hash", HexText(description.run.hash)},
      {"seed", description.run.seed}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RenderGoodputCsv(const GoodputDescription& description, const GoodputReport& report) {
  TextTable table({{"table"}, {"row"}, {"column"}, {"value"}, {"unit"}});
  const auto add = [&](const char* name, std::string row, const char* column, double value,
                       const char* unit) {
    table.AddRow({name, std::move(row), column, fmt::format("{}", value), unit});
  };
  const auto spread = [&](const char* row, const Spread& values, const char* unit) {
    add("run", row, "p5", values.p5, unit);
    add("run", row, "median", values.median, unit);
    add("run", row, "p95", values.p95, unit);
    add("run", row, "mean", values.mean, unit);
  };
  spread("goodput", report.goodput, "ratio");
  spread("interruptions", report.interruptions, "");
  spread("unplanned", report.unplanned, "");
  spread("during recovery", report.during_recovery, "");
  spread("wall", report.wall_days, "d");
  spread("steps", report.steps, "");
  for (std::size_t s = 0; s < kRunStates; ++s) {
    add("states", std::string(NameOf(static_cast<RunState>(s))), "", report.states[s], "ratio");
  }
  for (std::size_t c = 0; c < report.mean_failures.size(); ++c) {
    const std::string& name = description.spec.failures.components[c].name;
    add("failures", name, "expected", report.expected_failures[c], "");
    add("failures", name, "simulated", report.mean_failures[c], "");
  }
  for (const reliability::IntervalResult& tried : report.intervals) {
    add("intervals", fmt::format("{}", tried.steps), "interval", ToSeconds(tried.interval), "s");
    add("intervals", fmt::format("{}", tried.steps), "goodput", tried.goodput, "ratio");
  }
  if (report.young) add("checkpoint", "young", "interval", ToSeconds(*report.young), "s");
  if (report.daly) add("checkpoint", "daly", "interval", ToSeconds(*report.daly), "s");
  add("checkpoint", "best", "interval", ToSeconds(report.best.interval), "s");
  return table.RenderCsv();
}

}  // namespace quadrille::report
