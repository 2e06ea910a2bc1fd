// What `quadrille plan` prints: every account has its formula, the two formats say the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sim/simulate/describe_run.h"
#include "test/tools/plan_test_support.h"
#include "tools/plan/plan.h"
#include "tools/plan/render_plan.h"

namespace quadrille::plan {
namespace {

TEST(PlanOutput, EveryFigureAndTableHasAFormula) {
  for (const Account& account : Accounts(ShippedRun("llama3-405b-teaching"))) {
    EXPECT_FALSE(account.title.empty()) << account.key;
    for (const Figure& figure : account.figures) {
      EXPECT_FALSE(figure.formula.empty()) << account.key << '.' << figure.key;
    }
    for (const AccountTable& table : account.tables) {
      EXPECT_FALSE(table.formula.empty()) << account.key << '.' << table.key;
      EXPECT_FALSE(table.rows.empty()) << account.key << '.' << table.key;
    }
  }
}

TEST(PlanOutput, KeysAreUniqueAndRowsAreAsWideAsTheirTable) {
  std::set<std::string> accounts;
  for (const Account& account : Accounts(ShippedRun("llama3-405b-teaching"))) {
    EXPECT_TRUE(accounts.insert(account.key).second) << account.key;
    std::set<std::string> keys;
    for (const Figure& figure : account.figures) EXPECT_TRUE(keys.insert(figure.key).second);
    for (const AccountTable& table : account.tables) {
      EXPECT_TRUE(keys.insert(table.key).second);
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
    }
  }
}

TEST(PlanOutput, JsonHoldsValuesInPlainUnits) {
  const scenario::Scenario run = ShippedRun("llama3-405b-teaching");
  const auto json = nlohmann::json::parse(RenderJson(simulate::DescribeRun(run), Accounts(run)));
  const auto& accounts = json["accounts"];
  EXPECT_EQ(accounts["tensor_parallel"]["figures"]["buffer_bytes"]["value"], 268435456);
  EXPECT_EQ(accounts["tensor_parallel"]["figures"]["buffer_bytes"]["unit"], "bytes");
  EXPECT_EQ(accounts["world"]["figures"]["world_size"]["value"], 1024);
  EXPECT_NEAR(accounts["pipeline"]["figures"]["of_makespan_v1"]["value"].get<double>(), 7.0 / 55.0,
              1e-15);
  EXPECT_EQ(json["scenario"]["name"], "llama3-405b-teaching");
}

TEST(PlanOutput, TextHoldsTheSameFigures) {
  const scenario::Scenario run = ShippedRun("llama3-405b-teaching");
  const std::string text = RenderText(simulate::DescribeRun(run), Accounts(run), {});
  for (const char* part : {"268.4 MB", "12.7 %", "TP 8 x PP 8 x CP 2 x DP 8 = 1024",
                           "= (P-1)/(vM+P-1) = 7/55", "6.48 TB"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(PlanOutput, AccountsThatDoNotApplySaySo) {
  const auto accounts = Accounts(ShippedRun("llama3-405b-teaching"));
  EXPECT_EQ(accounts.back().key, "expert_parallel");
  EXPECT_EQ(accounts.back().remarks.front(), "The model has no experts.");
}

}  // namespace
}  // namespace quadrille::plan
