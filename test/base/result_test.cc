#include "sim/base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace quadrille {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Error("odd", {"run.yaml", 3, 7});
  return x / 2;
}

TEST(Result, HoldsAValueOrDiagnostics) {
  EXPECT_EQ(Half(4).value(), 2);
  const Result<int> odd = Half(5);
  ASSERT_FALSE(odd.has_value());
  ASSERT_EQ(odd.error().size(), 1u);
  EXPECT_EQ(odd.error()[0].message, "odd");
  EXPECT_EQ(odd.error()[0].position.line, 3);
}

TEST(Diagnostic, PrintsAsCompilersDo) {
  EXPECT_EQ(ToString(Diagnostic{{"run.yaml", 3, 7}, "unknown key"}), "run.yaml:3:7: unknown key");
}

TEST(Diagnostic, LeavesOutWhatIsUnknown) {
  EXPECT_EQ(ToString(Diagnostic{{"run.yaml", 0, 0}, "is empty"}), "run.yaml: is empty");
  EXPECT_EQ(ToString(Diagnostic{{"", 0, 0}, "--set needs key=value"}), "--set needs key=value");
  EXPECT_EQ(ToString(Diagnostic{{"run.yaml", 3, 0}, "unknown key"}), "run.yaml:3: unknown key");
}

TEST(Diagnostics, PrintOnePerLineInOrder) {
  const Diagnostics problems = {{{"b.yaml", 2, 1}, "second key"}, {{"a.yaml", 1, 1}, "first"}};
  EXPECT_EQ(ToString(problems), "b.yaml:2:1: second key\na.yaml:1:1: first");
  EXPECT_EQ(ToString(Diagnostics{}), "");
}

TEST(Result, ProblemsAreOfAKindWhenAllOfThemAre) {
  EXPECT_FALSE(AllAre(ProblemKind::kCannotRun, {}));
  const Diagnostic wrong{{}, "unknown key"};
  const Diagnostic deadlock{{}, "deadlock", ProblemKind::kCannotRun};
  EXPECT_FALSE(AllAre(ProblemKind::kCannotRun, {wrong}));
  EXPECT_TRUE(AllAre(ProblemKind::kCannotRun, {deadlock, deadlock}));
  EXPECT_FALSE(AllAre(ProblemKind::kCannotRun, {deadlock, wrong}))
      << "wrong input is to be mended first";
  EXPECT_TRUE(
      AllAre(ProblemKind::kCannotRun, Error("partitioned", {}, ProblemKind::kCannotRun).value()));
}

}  // namespace
}  // namespace quadrille
