#include "tools/validate/step_strata.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/check.h"
#include "tools/validate/peer_steps.h"

namespace quadrille::tools {
namespace {

using Rows = std::vector<const StepOutcome*>;

// What is predicted for rows of one layout, and the mean of what was measured of them: releases and
// repeated runs of a layout say nothing of how layouts compare.
struct LayoutPoint {
  double predicted = 0.0;  // tokens per second, as measured
  double measured = 0.0;
};

// Rows that the simulation cannot tell apart are one layout.
std::vector<LayoutPoint> LayoutsOf(const Rows& rows) {
  std::map<double, std::pair<double, double>> measured;  // by prediction: sum, rows
  for (const StepOutcome* row : rows) {
    const double tokens = static_cast<double>(row->step->gbs) * row->step->seq_len;
    auto& [sum, count] = measured[tokens / row->predicted_s];
    sum += tokens / row->step->time_s;
    count += 1.0;
  }
  std::vector<LayoutPoint> points;
  for (const auto& [predicted, of] : measured) points.push_back({predicted, of.first / of.second});
  return points;
}

double RankCorrelationOf(const Rows& rows) {
  std::map<std::tuple<std::string, std::string, int>, Rows> groups;
  for (const StepOutcome* row : rows) {
    groups[{row->step->model, row->step->gpu, row->step->gpus}].push_back(row);
  }
  double sum = 0.0;
  double weight = 0.0;
  for (const auto& [key, members] : groups) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (const LayoutPoint& point : LayoutsOf(members)) {
      predicted.push_back(point.predicted);
      measured.push_back(point.measured);
    }
    if (predicted.size() < 3) continue;
    const double correlation = RankCorrelation(predicted, measured);
    if (std::isnan(correlation)) continue;
    sum += correlation * static_cast<double>(predicted.size());
    weight += static_cast<double>(predicted.size());
  }
  return weight > 0.0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
}

StratumSummary SummaryOf(const std::string& name, const Rows& rows) {
  std::vector<double> errors;
  for (const StepOutcome* row : rows) errors.push_back(row->error());
  return {name, Summarise(errors), RankCorrelationOf(rows)};
}

// The strata that a row belongs to. The number sorts kinds of strata in the output.
std::vector<std::pair<int, std::string>> StrataOf(const StepOutcome& row) {
  const StepStratum& s = row.stratum;
  std::vector<std::pair<int, std::string>> names = {
      {0, s.arch},
      {1, fmt::format("{} {}", s.generation, s.arch)},
      {2, fmt::format("{} {} {}", s.generation, s.arch, s.precision)},
      {3, fmt::format("schedule {}", s.schedule)},
      {4, fmt::format("source {} {}", s.source, s.arch)},
      {5, fmt::format("stack {}", row.stack)},
      {6, fmt::format("{} / {} / {} / {} / {}", s.generation, s.arch, s.precision, s.schedule,
                      s.source)},
  };
  return names;
}

std::vector<PeerSummary> PeersOf(const Rows& rows) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> errors;
  for (const StepOutcome* row : rows) {
    const PeerPrediction peer = PeerPredictionOf(*row->step);
    if (peer.seconds <= 0.0) continue;
    errors[peer.name].first.push_back(peer.seconds / row->step->time_s - 1.0);
    errors[peer.name].second.push_back(row->error());
  }
  std::vector<PeerSummary> peers;
  for (const auto& [name, both] : errors) {
    peers.push_back({name, Summarise(both.first), Summarise(both.second)});
  }
  return peers;
}

}  // namespace

StepSummary SummariseSteps(const std::vector<StepOutcome>& outcomes,
                           const std::vector<bool>& counted) {
  QUADRILLE_CHECK(outcomes.size() == counted.size(), "{} flags for {} rows", counted.size(),
                  outcomes.size());
  Rows all;
  std::map<std::pair<int, std::string>, Rows> strata;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!counted[i] || outcomes[i].status != RowStatus::kOk) continue;
    all.push_back(&outcomes[i]);
    for (const auto& name : StrataOf(outcomes[i])) strata[name].push_back(&outcomes[i]);
  }
  StepSummary summary;
  summary.overall = SummaryOf("overall", all);
  for (const auto& [name, rows] : strata) summary.strata.push_back(SummaryOf(name.second, rows));
  summary.peers = PeersOf(all);
  return summary;
}

}  // namespace quadrille::tools
