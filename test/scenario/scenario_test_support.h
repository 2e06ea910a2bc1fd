// Paths that the tests of this folder share.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "sim/scenario/scenario_loader.h"

namespace quadrille::scenario {

inline const std::string kTestDirectory = std::string(QUADRILLE_SOURCE_DIR) + "/test/scenario";

// Names are looked up in test/scenario/library: round numbers that nobody calibrates.
inline LoadOptions TestLibrary() {
  LoadOptions options;
  options.shipped_directory = kTestDirectory + "/library";
  return options;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The text of a run that is as small as a run can be.
inline std::string SmallRun() { return ReadFile(kTestDirectory + "/library/runs/small.yaml"); }

// What is wrong with SmallRun under these overrides; "" when nothing is.
inline std::string ProblemsWith(std::vector<std::string> overrides) {
  LoadOptions options = TestLibrary();
  options.overrides = std::move(overrides);
  const auto scenario = LoadScenarioText(SmallRun(), "small.yaml", options);
  return scenario ? "" : ToString(scenario.error());
}

}  // namespace quadrille::scenario
