// Every shipped run can be replayed, and fits in the memory of its GPUs.
#include <algorithm>
#include <filesystem>

#include "test/simulate/scenario_run.h"
#include "test/support/case_names.h"

namespace quadrille::simulate {
namespace {

std::vector<std::string> ShippedRuns() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kScenarios + "/runs")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedRunFiles : public testing::TestWithParam<std::string> {};

TEST_P(ShippedRunFiles, ReplaysAndFitsOrSaysThatItDoesNot) {
  const scenario::Scenario run = LoadShipped(GetParam(), {});
  const Simulation simulation = MustSimulate(run);
  EXPECT_GT(simulation.report.step_time, Duration(0));
  const bool says_so = run.source_text.find("does not fit") != std::string::npos;
  EXPECT_EQ(simulation.report.out_of_memory, says_so);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedRunFiles, testing::ValuesIn(ShippedRuns()), NameOfCase);

}  // namespace
}  // namespace quadrille::simulate
