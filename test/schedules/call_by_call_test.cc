#include "schedules/call_by_call.h"

#include <set>

#include "schedule_test_support.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

TEST(CallByCall, GPipeRunsAndEachCallHoldsBothEndsForALatency) {
  // Rank 0: F 0-1, sends 1-2, F 2-3, sends 3-4; rank 1: F 2-3, receives 3-4, F 4-5, B 5-7, sends
  // 7-8, B 8-10, sends 10-11; rank 0: B 8-10 and 11-13.
  const PipelineSchedule gpipe = Build("gpipe", Request(2, 2));
  EXPECT_EQ(EvaluateCallByCall(gpipe, Costs(1, 1, 1, 1)).value(), FromSeconds(13));
}

TEST(CallByCall, GPipeWithoutLatencyLastsAsLongAsWithEagerSends) {
  for (std::int32_t p = 1; p <= 6; ++p) {
    for (std::int32_t m = 1; m <= 12; ++m) {
      const PipelineSchedule gpipe = Build("gpipe", Request(p, m));
      EXPECT_EQ(EvaluateCallByCall(gpipe, Costs(1, 1, 1)).value(), FromSeconds(3.0 * (m + p - 1)))
          << "P=" << p << " M=" << m;
    }
  }
}

TEST(CallByCall, NeighboursThatSendToEachOtherAreNamedWithWhatTheySend) {
  const auto plain = EvaluateCallByCall(Build("1f1b", Request(2, 2)), Costs(1, 1, 1));
  ASSERT_FALSE(plain);
  EXPECT_TRUE(AllAre(ProblemKind::kCannotRun, plain.error()));
  EXPECT_EQ(ToString(plain.error()),
            "deadlock with one blocking call per message: rank 0 sends the output of F1.0 to rank "
            "1, which sends the output of B0.0 to rank 0");
  // The ring that two chunks make.
  const auto ring = EvaluateCallByCall(Build("breadth-first", Request(4, 8)), Costs(1, 1, 1));
  ASSERT_FALSE(ring);
  EXPECT_EQ(ToString(ring.error()),
            "deadlock with one blocking call per message: rank 0 sends the output of F3.0 to rank "
            "1, which sends the output of F2.0 to rank 2, and so on round 4 ranks");
  const auto fused = EvaluateCallByCall(Build("dualpipe", Request(2, 4)), Costs(1, 1, 1));
  ASSERT_FALSE(fused);
  EXPECT_NE(ToString(fused.error()).find(", which sends the output of "), std::string::npos);
}

TEST(CallByCall, EveryScheduleRunsNoFasterThanEagerlyOrIsADiagnosedDeadlock) {
  std::set<std::string_view> run;
  std::set<std::string_view> stuck;
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    for (const auto& [p, m] : {std::pair(1, 4), std::pair(2, 4), std::pair(4, 8)}) {
      const auto schedule = BuildSchedule(entry.name, Request(p, m));
      if (!schedule) continue;
      const TaskCosts costs = Costs(1, 1, 1, 0.25);
      const auto calls = EvaluateCallByCall(*schedule, costs);
      if (calls) {
        EXPECT_GE(*calls, EvaluateSchedule(*schedule, costs)->makespan) << entry.name;
        if (p > 1) run.insert(entry.name);
      } else {
        EXPECT_TRUE(AllAre(ProblemKind::kCannotRun, calls.error())) << entry.name;
        stuck.insert(entry.name);
      }
    }
  }
  // All forwards, then all backwards, in one chunk run at any size.
  EXPECT_TRUE(run.contains("gpipe") && run.contains("gpipe-lifo"));
  EXPECT_FALSE(stuck.contains("gpipe") || stuck.contains("gpipe-lifo"));
  for (const char* name : {"1f1b", "eager-1f1b", "interleaved", "zb-h1", "zbv", "dualpipe"}) {
    EXPECT_TRUE(stuck.contains(name)) << name;
  }
  EXPECT_GE(run.size() + stuck.size(), BuiltInSchedules().size());
}

TEST(CallByCall, RefusesCostsThatAreNegativeOrEndless) {
  const PipelineSchedule gpipe = Build("gpipe", Request(2, 2));
  EXPECT_FALSE(EvaluateCallByCall(gpipe, Costs(-1, 1, 1)));
  TaskCosts endless;
  endless.forward = kUnending;
  const auto result = EvaluateCallByCall(gpipe, endless);
  ASSERT_FALSE(result);
  EXPECT_FALSE(AllAre(ProblemKind::kCannotRun, result.error()));
}

}  // namespace
}  // namespace quadrille::schedules
