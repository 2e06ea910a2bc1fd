// Loads a shipped run with overrides and simulates it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/scenario/scenario_loader.h"
#include "sim/simulate/simulate.h"

namespace quadrille::simulate {

inline const std::string kScenarios = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";

inline scenario::Scenario LoadShipped(const std::string& run, std::vector<std::string> overrides) {
  scenario::LoadOptions options;
  options.shipped_directory = kScenarios;
  options.overrides = std::move(overrides);
  auto loaded = scenario::LoadScenario(kScenarios + "/runs/" + run + ".yaml", options);
  if (!loaded) {
    ADD_FAILURE() << ToString(loaded.error());
    return {};
  }
  return *std::move(loaded);
}

inline Simulation MustSimulate(const scenario::Scenario& scenario,
                               const SimulateOptions& options = {}) {
  auto simulation = Simulate(scenario, options);
  if (!simulation) {
    ADD_FAILURE() << ToString(simulation.error());
    return {};
  }
  return *std::move(simulation);
}

inline Simulation SimulateShipped(const std::string& run, std::vector<std::string> overrides,
                                  const SimulateOptions& options = {}) {
  return MustSimulate(LoadShipped(run, std::move(overrides)), options);
}

inline const metrics::CommunicationReport& Family(const metrics::StepReport& report,
                                                  const std::string& name) {
  for (const metrics::CommunicationReport& entry : report.communication) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << "no family " << name;
  return report.communication.front();
}

}  // namespace quadrille::simulate
