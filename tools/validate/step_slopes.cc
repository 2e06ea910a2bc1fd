#include "tools/validate/step_slopes.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace quadrille::tools {
namespace {

int MicrobatchesOf(const MeasuredStep& step) {
  const int replicas = step.gpus / (step.tp * step.pp * step.cp);
  return step.gbs / (step.mbs * (replicas > 0 ? replicas : 1));
}

// t = a + b m with weights 1 / t^2.
Line Fit(const std::vector<std::pair<double, double>>& points) {
  double s = 0.0, sm = 0.0, smm = 0.0, st = 0.0, smt = 0.0;
  for (const auto& [m, t] : points) {
    const double w = 1.0 / (t * t);
    s += w;
    sm += w * m;
    smm += w * m * m;
    st += w * t;
    smt += w * m * t;
  }
  const double determinant = s * smm - sm * sm;
  Line line;
  line.slope = (s * smt - sm * st) / determinant;
  line.intercept = (st - line.slope * sm) / s;
  return line;
}

}  // namespace

std::vector<StepSlope> SlopesOf(const std::vector<StepOutcome>& outcomes,
                                const std::vector<bool>& counted) {
  std::map<std::string, std::vector<const StepOutcome*>> groups;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const StepOutcome& row = outcomes[i];
    if (!counted[i] || row.status != RowStatus::kOk || row.step->pp == 1) continue;
    const MeasuredStep& s = *row.step;
    groups[fmt::format("{} {}, {} layers, {}, {}, TP{} PP{} VP{} CP{}", s.source_id, s.model,
                       s.layers, s.gpu, row.stratum.precision, s.tp, s.pp, s.vp, s.cp)]
        .push_back(&row);
  }
  std::vector<StepSlope> slopes;
  for (const auto& [name, rows] : groups) {
    std::set<int> counts;
    std::vector<std::pair<double, double>> measured;
    std::vector<std::pair<double, double>> predicted;
    for (const StepOutcome* row : rows) {
      const int microbatches = MicrobatchesOf(*row->step);
      counts.insert(microbatches);
      measured.emplace_back(microbatches, row->step->time_s);
      predicted.emplace_back(microbatches, row->predicted_s);
    }
    if (counts.size() < 3) continue;
    slopes.push_back({name, rows.size(), Fit(measured), Fit(predicted)});
  }
  return slopes;
}

}  // namespace quadrille::tools
