// Random damage to valid files: whatever comes out is a scenario or a list of problems, never a
// crash or a hang. The damage is drawn by counter, so a failure names the number that repeats it.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sim/base/counter_rng.h"
#include "sim/scenario/yaml_tree.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

constexpr std::string_view kFragments[] = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ":",
                                           ": ",
                                           ",",
                                           "- ",
                                           "? ",
                                           "&a ",
                                           "*a",
                                           "<<: ",
                                           "!!int ",
                                           "|\n",
                                           ">\n",
                                           "'",
                                           "\"",
                                           "\n",
                                           "\t",
                                           "#",
                                           "---\n",
                                           "...\n",
                                           "%YAML 1.2\n",
                                           "null",
                                           "~",
                                           "true",
                                           "-1",
                                           "0",
                                           "1e99",
                                           "nan",
                                           "99999999999999999999",
                                           "0x10",
                                           "010",
                                           " GB/s",
                                           "\xff",
                                           "\xc3\xa9",
                                           "tensor: 3\n",
                                           "nodes: 7\n",
                                           "perturbations:\n",
                                           "model: {}\n",
                                           "\\",
                                           "@",
                                           "`",
                                           "    "};

std::string Damage(std::string text, std::uint64_t seed) {
  const int edits = 1 + static_cast<int>(Hash(seed, 0) % 4);
  for (int edit = 0; edit < edits && !text.empty(); ++edit) {
    const std::size_t at = Hash(seed, edit, 1) % text.size();
    const std::size_t length = Hash(seed, edit, 2) % 12;
    switch (Hash(seed, edit, 3) % 5) {
      case 0: text.erase(at, length); break;
      case 1: text[at] = static_cast<char>(Hash(seed, edit, 4) % 256); break;
      case 2: text.insert(at, kFragments[Hash(seed, edit, 5) % std::size(kFragments)]); break;
      case 3: text.insert(at, text.substr(Hash(seed, edit, 6) % text.size(), length * 8)); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

// A run that touches every section, so that damage reaches every loader.
std::string WideRun() { return ReadFile(kTestDirectory + "/library/runs/wide.yaml"); }

TEST(Mutation, TheUndamagedRunLoads) {
  const auto scenario = LoadScenarioText(WideRun(), "wide.yaml", TestLibrary());
  EXPECT_TRUE(scenario) << ToString(scenario.error());
}

TEST(Mutation, DamagedRunsGiveAScenarioOrProblems) {
  const std::string text = WideRun();
  const LoadOptions options = TestLibrary();
  int refused = 0;
  constexpr int kRuns = 1500;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    const auto scenario = LoadScenarioText(Damage(text, seed), "wide.yaml", options);
    if (scenario) continue;
    ++refused;
    ASSERT_FALSE(scenario.error().empty());
    for (const Diagnostic& problem : scenario.error()) ASSERT_FALSE(problem.message.empty());
  }
  EXPECT_GT(refused, kRuns / 2);
  EXPECT_LT(refused, kRuns);
}

TEST(Mutation, DamagedTextAlwaysParsesOrIsRefused) {
  const std::string text = ReadFile(kTestDirectory + "/library/gpus/plain.yaml");
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Diagnostics problems;
    const auto tree = ParseYaml(Damage(text, seed), "gpu.yaml", &problems);
    ASSERT_TRUE(tree || !problems.empty());
  }
}

TEST(Mutation, DamagedOverridesGiveAScenarioOrProblems) {
  const std::string text = SmallRun();
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    LoadOptions options = TestLibrary();
    options.overrides = {Damage("parallel.tensor=4", seed),
                         Damage("perturbations=[{kind: gpu_speed, factor: 0.9}]", seed + 1000),
                         Damage("cluster.nvlink={bandwidth: 300 GB/s}", seed + 2000)};
    const auto scenario = LoadScenarioText(text, "small.yaml", options);
    ASSERT_TRUE(scenario || !scenario.error().empty());
  }
}

}  // namespace
}  // namespace quadrille::scenario
