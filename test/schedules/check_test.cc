#include "schedules/check.h"

#include "schedule_test_support.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

std::string Check(const std::string& text) {
  const auto schedule = ParseSchedule(text, "order.txt");
  if (!schedule) return "not parsed: " + ToString(schedule.error());
  return ToString(CheckSchedule(*schedule));
}
std::string TwoRanks(const std::string& first, const std::string& second) {
  return Check("# P=2 M=2 v=1 placement=loop\n" + first + "\n" + second + "\n");
}
constexpr const char* kGood = "F0.0 F1.0 B0.0 B1.0";

TEST(Check, AcceptsAGoodOrderWithWholeAndSplitBackwards) {
  EXPECT_EQ(TwoRanks(kGood, "F0.0 B0.0 F1.0 I1.0 W1.0"), "");
}

TEST(Check, FindsMissingActions) {
  EXPECT_EQ(TwoRanks("F0.0 B0.0", kGood), "rank 0: F1.0 is missing\nrank 0: B1.0 is missing");
  EXPECT_EQ(TwoRanks(kGood, "F0.0 I0.0 F1.0 B1.0"), "rank 1: W0.0 is missing");
}

TEST(Check, FindsRepeatedActions) {
  EXPECT_EQ(TwoRanks("F0.0 F1.0 F0.0 B0.0 B1.0", kGood), "rank 0: F0.0 occurs more than once");
  EXPECT_EQ(TwoRanks("F0.0 F1.0 B0.0 I0.0 W0.0 B1.0", kGood),
            "rank 0: I0.0 has both a full backward B and a split one");
}

TEST(Check, FindsActionsBeforeWhatTheyNeedOnTheirOwnRank) {
  EXPECT_EQ(TwoRanks("B0.0 F0.0 F1.0 B1.0", kGood), "rank 0: B0.0 does not come after F0.0");
  EXPECT_EQ(TwoRanks(kGood, "F0.0 W0.0 I0.0 F1.0 B1.0"), "rank 1: W0.0 does not come after I0.0");
  // The halves of a pair start together, so neither may need the other.
  EXPECT_EQ(TwoRanks("F0.0&B0.0 F1.0 B1.0", kGood), "rank 0: B0.0 does not come after F0.0");
}

TEST(Check, FindsSlicesOutOfOrder) {
  EXPECT_EQ(Check("# P=1 M=1 v=1 placement=loop slices=2\nF0.0s1 F0.0s0 B0.0s1 B0.0s0\n"),
            "rank 0: F0.0s1 does not come after F0.0s0");
  EXPECT_EQ(Check("# P=1 M=1 v=1 placement=loop slices=2\nF0.0s0 F0.0s1 B0.0s0 B0.0s1\n"),
            "rank 0: B0.0s0 does not come after B0.0s1");
}

TEST(Check, NamesEveryBlockedRankOfADeadlock) {
  // Rank 0 wants a gradient before it has forwarded what rank 1 insists on first.
  EXPECT_EQ(
      TwoRanks("F0.0 B0.0 F1.0 B1.0", "F0.0 F1.0 B0.0 B1.0"),
      "deadlock: rank 0 stands before B0.0, which waits for B0.0 or I0.0 of stage 1 on rank 1\n"
      "deadlock: rank 1 stands before F1.0, which waits for F1.0 of stage 0 on rank 0");
}

TEST(Check, FindsADeadlockOnOneRankWhereTheVTurns) {
  EXPECT_EQ(Check("# P=1 M=1 v=2 placement=v\nF0.1 F0.0 B0.1 B0.0\n"),
            "deadlock: rank 0 stands before F0.1, which waits for F0.0 of stage 0 on rank 0");
}

TEST(Check, RefusesAnImpossibleShape) {
  PipelineSchedule schedule = Build("1f1b", Request(2, 2));
  schedule.pipeline = 3;
  EXPECT_EQ(ToString(CheckSchedule(schedule)),
            "orders for 2 ranks, but there are 3 pipeline ranks");
  schedule.pipeline = 0;
  EXPECT_EQ(
      ToString(CheckSchedule(schedule)),
      "pipeline ranks (0), microbatches (2), virtual stages (1) and slices (1) must be at least 1");
}

TEST(Check, FindsIndicesOutOfRange) {
  PipelineSchedule schedule = Build("1f1b", Request(1, 1));
  schedule.ranks[0][0].first.microbatch = MicrobatchId(-1);
  EXPECT_EQ(ToString(CheckSchedule(schedule)),
            "rank 0: F-1.0 is of microbatch -1, but there are 1\n"
            "rank 0: B0.0 does not come after F0.0\n"
            "rank 0: F0.0 is missing");
}

TEST(Check, RefusesEverySwapOfAForwardWithItsOwnBackward) {
  const PipelineSchedule good = Build("1f1b", Request(3, 4));
  int refused = 0;
  int accepted = 0;
  for (std::size_t r = 0; r < good.ranks.size(); ++r) {
    for (std::size_t i = 0; i + 1 < good.ranks[r].size(); ++i) {
      PipelineSchedule changed = good;
      std::swap(changed.ranks[r][i], changed.ranks[r][i + 1]);
      const Action& before = good.ranks[r][i].first;
      const Action& after = good.ranks[r][i + 1].first;
      const bool own_cause = before.microbatch == after.microbatch;  // F before its own B
      const bool clean = CheckSchedule(changed).empty();
      EXPECT_FALSE(own_cause && clean) << "rank " << r << " slot " << i;
      ++(clean ? accepted : refused);
    }
  }
  EXPECT_GT(refused, 3);
  EXPECT_GT(accepted, 3);
}

}  // namespace
}  // namespace quadrille::schedules
