#include "tools/plan/pipeline_bubble.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedules/evaluate.h"
#include "schedules/formulas.h"
#include "schedules/registry.h"
#include "sim/base/check.h"
#include "sim/report/number_text.h"

namespace quadrille::plan {
namespace {

using schedules::ScheduleRequest;

// Orders larger than this are left out of the comparison.
constexpr std::int64_t kMaxActions = 400'000;

struct Neighbour {
  std::string name;
  std::int32_t virtual_stages = 1;  // 0: the schedule's own
};

std::vector<Neighbour> NeighboursOf(const scenario::Scenario& scenario) {
  std::vector<Neighbour> all;
  const auto add = [&](const std::string& name, std::int32_t virtual_stages) {
    for (const Neighbour& n : all) {
      if (n.name == name && n.virtual_stages == virtual_stages) return;
    }
    all.push_back({name, virtual_stages});
  };
  add(scenario.schedule.name, scenario.parallel.virtual_stages);
  add("gpipe", 1);
  add("1f1b", 1);
  add("interleaved", 2);
  add("interleaved", 4);
  if (scenario.parallel.virtual_stages > 1) add("interleaved", scenario.parallel.virtual_stages);
  add("zb-h1", 1);
  add("zb-h2", 1);
  add("zbv", 2);
  add("dualpipev", 2);
  add("dualpipe", 2);
  return all;
}

ScheduleRequest RequestOf(const scenario::Scenario& scenario, const Neighbour& neighbour) {
  ScheduleRequest request;
  request.pipeline = scenario.parallel.pipeline;
  request.microbatches = scenario.microbatches;
  request.virtual_stages = neighbour.virtual_stages;
  if (neighbour.name == scenario.schedule.name) {
    request = scenario.schedule.request;
    request.virtual_stages = neighbour.virtual_stages;
  }
  request.costs = schedules::TaskCosts{};  // F 1, B 2, I 1, W 1
  return request;
}

AccountTable Comparison(const scenario::Scenario& scenario, std::vector<std::string>* refused) {
  AccountTable table;
  table.key = "schedules";
  table.title = fmt::format("P {}, M {}, equal chunks with F 1, B 2, I 1, W 1, no latency",
                            scenario.parallel.pipeline, scenario.microbatches);
  table.columns = {{"schedule", "schedule"},         {"virtual_stages", "v"},
                   {"of_makespan", "idle/makespan"}, {"of_ideal", "idle/busy"},
                   {"of_span", "inside own span"},   {"peak_activations", "peak, stages"},
                   {"messages", "messages"},         {"formula", "idle by closed form"}};
  for (const Neighbour& neighbour : NeighboursOf(scenario)) {
    const ScheduleRequest request = RequestOf(scenario, neighbour);
    const std::int64_t actions =
        3LL * request.pipeline * request.microbatches * std::max(request.virtual_stages, 1);
    if (actions > kMaxActions) {
      refused->push_back(fmt::format("{}: {} actions are too many to compare", neighbour.name,
                                     report::CountText(actions)));
      continue;
    }
    const auto built = schedules::BuildSchedule(neighbour.name, request);
    if (!built) {
      refused->push_back(fmt::format("{} with v {}: {}", neighbour.name, neighbour.virtual_stages,
                                     built.error().front().message));
      continue;
    }
    const auto timed = schedules::EvaluateSchedule(*built, request.costs);
    if (!timed) continue;
    const auto forms = schedules::ClosedFormsOf(neighbour.name, request);
    const std::int32_t peak =
        *std::max_element(timed->peak_activations.begin(), timed->peak_activations.end());
    // In units of what one of P stages keeps: a chunk is a v-th of it, a copy a whole one.
    const bool copies = built->placement == schedules::Placement::kBidirectional;
    table.rows.push_back({neighbour.name, std::int64_t{built->virtual_stages},
                          timed->bubble_of_makespan, timed->bubble_of_ideal, timed->bubble_of_span,
                          static_cast<double>(peak) / (copies ? 1.0 : built->virtual_stages),
                          timed->messages,
                          std::string(forms && forms->idle ? forms->idle_formula : "")});
  }
  table.formula =
      "idle/makespan: waiting of all ranks over P x makespan; idle/busy: the same over the time "
      "inside actions; inside own span: the worst rank's waiting between its first and last action";
  return table;
}

}  // namespace

BubbleForms BubbleFormsOf(std::int64_t pipeline, std::int64_t microbatches,
                          std::int64_t virtual_stages) {
  QUADRILLE_CHECK(pipeline > 0 && microbatches > 0 && virtual_stages > 0, "{} {} {}", pipeline,
                  microbatches, virtual_stages);
  const auto p = static_cast<double>(pipeline);
  const auto m = static_cast<double>(microbatches);
  const auto v = static_cast<double>(virtual_stages);
  return {.of_makespan = Ratio((p - 1.0) / (v * m + p - 1.0)),
          .of_ideal = Ratio((p - 1.0) / (v * m)),
          .divided = Ratio((p - 1.0) / (m + p - 1.0) / v)};
}

std::int64_t MessagesPerMicrobatch(std::int64_t pipeline, std::int64_t virtual_stages, bool turns) {
  const std::int64_t all = 2 * (virtual_stages * pipeline - 1);
  return turns ? all - 2 * (virtual_stages - 1) : all;
}

Account DescribePipeline(const scenario::Scenario& scenario) {
  Account account{.key = "pipeline",
                  .title = "Pipeline parallelism: the bubble",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  const std::int64_t p = scenario.parallel.pipeline;
  const std::int64_t m = scenario.microbatches;
  if (p == 1) {
    account.remarks.emplace_back("The run has no pipeline: no bubble.");
    return account;
  }
  const auto add_forms = [&](std::int64_t v) {
    const BubbleForms forms = BubbleFormsOf(p, m, v);
    const std::string suffix = fmt::format("_v{}", v);
    account.figures.push_back({"of_makespan" + suffix,
                               fmt::format("v {}: idle over makespan, exact", v), forms.of_makespan,
                               fmt::format("(P-1)/(vM+P-1) = {}/{}", p - 1, v * m + p - 1), ""});
    account.figures.push_back({"of_ideal" + suffix,
                               fmt::format("v {}: idle over busy time, exact", v), forms.of_ideal,
                               fmt::format("(P-1)/(vM) = {}/{}", p - 1, v * m), ""});
    if (v > 1) {
      account.figures.push_back(
          {"divided" + suffix, fmt::format("v {}: an approximation", v), forms.divided,
           fmt::format("(P-1)/(M+P-1)/v = {}/{}/{}", p - 1, m + p - 1, v),
           "It divides the share by v, but with less idle the makespan shrinks too: the first "
           "figure is the share of the makespan, this one is below it."});
    }
    account.figures.push_back({"messages" + suffix, fmt::format("v {}: messages per microbatch", v),
                               MessagesPerMicrobatch(p, v, false),
                               v == 1 ? "2(P-1)" : "2(vP-1), stages in a loop", ""});
    if (v > 1) {
      account.figures.push_back(
          {"messages_turning" + suffix, fmt::format("v {}: the same in a V", v),
           MessagesPerMicrobatch(p, v, true), "2(vP-1) - 2(v-1): a turn stays on its rank", ""});
    }
  };
  add_forms(1);
  add_forms(2);
  if (scenario.parallel.virtual_stages > 2) add_forms(scenario.parallel.virtual_stages);
  account.tables.push_back(Comparison(scenario, &account.remarks));
  account.remarks.emplace_back(
      "1F1B has GPipe's bubble and holds P microbatches instead of M; interleaving divides the "
      "idle by v and multiplies the messages by about v.");
  return account;
}

}  // namespace quadrille::plan
