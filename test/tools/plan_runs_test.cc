// Every shipped run loads, says what was published for it, and has a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "test/support/case_names.h"
#include "test/tools/plan_test_support.h"
#include "tools/plan/plan.h"
#include "tools/plan/world_size.h"

namespace quadrille::plan {
namespace {

std::vector<std::string> ShippedRuns() {
  std::vector<std::string> names;
  const std::string directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios/runs";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ShippedRunFiles : public testing::TestWithParam<std::string> {};

TEST_P(ShippedRunFiles, LoadSayWhatWasPublishedAndHaveAPlan) {
  const scenario::Scenario run = ShippedRun(GetParam());
  EXPECT_FALSE(run.description.empty());
  const std::string& text = run.source_text;
  EXPECT_TRUE(text.find("Published") != std::string::npos ||
              text.find("Nothing was published") != std::string::npos);
  const auto placements = GroupPlacements(run);
  ASSERT_TRUE(placements) << ToString(placements.error());
  EXPECT_EQ(Accounts(run).size(), 7u);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedRunFiles, testing::ValuesIn(ShippedRuns()), NameOfCase);

TEST(ShippedRuns, TheNemoRecipeIs576GpusAndRefuses512) {
  EXPECT_EQ(ShippedRun("nemo-llama3-405b-576xh100-fp8").parallel.world_size(), 576);
  try {
    (void)ShippedRun("nemo-llama3-405b-576xh100-fp8", {"gpus=512"});
    FAIL() << "512 GPUs were accepted";
  } catch (const std::runtime_error& refused) {
    const std::string text = refused.what();
    EXPECT_NE(text.find("parallel.data: 512 GPUs do not match tensor 8 x pipeline 9 x context 2 x "
                        "data 4 = 576"),
              std::string::npos)
        << text;
  }
}

TEST(ShippedRuns, WorldSizesAreThoseOfTheSystems) {
  const auto world = [](const std::string& name) { return ShippedRun(name).parallel.world_size(); };
  EXPECT_EQ(world("llama3-405b-8192xh100"), 8192);
  EXPECT_EQ(world("llama3-405b-16384xh100"), 16384);
  EXPECT_EQ(world("llama3-405b-16384xh100-128k"), 16384);
  EXPECT_EQ(world("deepseek-v3-2048xh800"), 2048);
  EXPECT_EQ(world("deepseek-v3-1024xh100-tp2"), 1024);
  EXPECT_EQ(parallel::SmallestWorldSize(ShippedRun("deepseek-v3-1024xh100-tp2").parallel), 1024);
}

}  // namespace
}  // namespace quadrille::plan
