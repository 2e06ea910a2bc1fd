#include "sim/simulate/describe_run.h"

#include <string>

#include "sim/scenario/quantity_text.h"
#include "sim/scenario/scenario_hash.h"
#include "sim/simulate/prediction_interval.h"

namespace quadrille::simulate {

report::RunDescription DescribeRun(const scenario::Scenario& scenario) {
  report::RunDescription run;
  run.name = scenario.name;
  run.description = scenario.description;
  run.hash = scenario.hash;
  run.seed = scenario.seed;
  run.model = scenario.model;
  run.gpu = scenario.gpu;
  run.cluster = scenario.cluster;
  run.parallel = scenario.parallel;
  run.execution = scenario.execution;
  run.global_batch = scenario.global_batch;
  run.microbatches = scenario.microbatches;
  run.schedule = scenario.schedule.order ? scenario.schedule.order_file : scenario.schedule.name;
  run.microbatch_group = scenario.schedule.request.group;
  run.pair_cost = scenario.schedule.request.costs.pair_cost;
  run.pair_factor = scenario.schedule.pair_factor;
  run.layout = scenario.layout;
  run.optimizer = scenario.optimizer;
  run.overlap = scenario.overlap;
  run.host = scenario.host;
  run.compute_fidelity = scenario.compute_fidelity;
  run.network = scenario.network;
  run.perturbations = scenario.perturbations.size();
  run.published = scenario.published;
  run.overridden = scenario.overridden;
  run.compute_constants = scenario.efficiency.sources;
  run.collective_constants_name = scenario.collectives.name;
  run.collective_constants = scenario.collectives.sources;
  const PredictionInterval interval = IntervalOf(StratumOf(scenario));
  run.spread = {interval.low, interval.high, interval.rows, interval.basis};
  const auto described = [](const std::string& key, const std::string& text) {
    return report::DescribedValue{key, text, scenario::CanonicalQuantity(text)};
  };
  for (const scenario::WrittenKey& written : scenario.written) {
    (written.own ? run.values : run.implied).push_back(described(written.key, written.value));
  }
  for (const scenario::Assumption& assumption : scenario.assumptions) {
    run.chosen.push_back({assumption.key, assumption.value, assumption.reason});
    run.implied.push_back(described(assumption.key, assumption.value));
  }
  // What was derived, where it goes by the name of its key ("parallel.data").
  for (const auto& [key, text] : scenario::ValuesOf(scenario)) {
    run.implied.push_back(described(key, text));
  }
  for (const Diagnostic& warning : scenario.warnings) run.warnings.push_back(ToString(warning));
  return run;
}

}  // namespace quadrille::simulate
