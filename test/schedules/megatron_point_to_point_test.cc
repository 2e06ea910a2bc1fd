#include "schedules/megatron_point_to_point.h"

#include "schedule_test_support.h"
#include "schedules/batched_calls.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

MegatronTransfers TransfersOf(const std::string& name) {
  if (name == "batched") return MegatronTransfers::kBatched;
  return name == "overlapped" ? MegatronTransfers::kOverlapped
                              : MegatronTransfers::kOverlappedEverywhere;
}

TEST(MegatronCalls, EqualTheRecordedOnesAndTheirBlockingReplay) {
  LoweredSchedule lowered;
  PipelineSchedule schedule;
  std::string trace;
  int logs = 0;
  int replays = 0;
  for (const auto& row : ReadTable("megatron_calls.csv")) {
    if (row[0] == "calls") {
      trace = row[1] + " " + row[2] + " P=" + row[3] + " M=" + row[4] + " v=" + row[5] +
              " group=" + row[6];
      const ScheduleRequest request =
          Request(std::stoi(row[3]), std::stoi(row[4]), std::stoi(row[5]), std::stoi(row[6]));
      const auto result = LowerToMegatron(row[1], request, TransfersOf(row[2]));
      ASSERT_TRUE(result.has_value()) << trace << ToString(result.error());
      lowered = *result;
      schedule = Build(row[1], request);
      const std::string text = PrintLowered(lowered);
      EXPECT_EQ(Fnv1a(text), std::stoull(row[7], nullptr, 16)) << trace << "\n"
                                                               << text.substr(0, 2000);
      ++logs;
      continue;
    }
    SCOPED_TRACE(trace + " latency=" + row[1]);
    const TaskCosts costs = Costs(1, 1, 1, std::stod(row[1]));
    const auto blocking = EvaluateBlocking(lowered, costs);
    ASSERT_TRUE(blocking.has_value()) << ToString(blocking.error());
    EXPECT_EQ(blocking->makespan, FromSeconds(std::stod(row[2])));
    EXPECT_NEAR(blocking->bubble_of_makespan.value(), std::stod(row[3]), 5.01e-6);
    const auto eager = EvaluateSchedule(schedule, costs);
    ASSERT_TRUE(eager.has_value());
    EXPECT_EQ(eager->makespan, FromSeconds(std::stod(row[4])));
    ++replays;
  }
  EXPECT_EQ(logs, 31);
  EXPECT_EQ(replays, 32);
}

// Compute steps alone, in order.
std::vector<std::vector<Slot>> ComputeOf(const LoweredSchedule& lowered) {
  std::vector<std::vector<Slot>> ranks;
  for (const auto& steps : lowered.ranks) {
    ranks.emplace_back();
    for (const LoweredStep& step : steps) {
      if (step.compute) ranks.back().push_back(*step.compute);
    }
  }
  return ranks;
}

TEST(MegatronCalls, LeaveTheOrderOfComputationAloneAndNeverDeadlock) {
  int cases = 0;
  for (std::int32_t p = 2; p <= 5; ++p) {
    for (std::int32_t m = 1; m <= 12; ++m) {
      for (std::int32_t v = 1; v <= 4; ++v) {
        for (const char* name : {"1f1b", "interleaved", "combined"}) {
          for (const std::int32_t group : {0, 6, static_cast<int>(m)}) {
            for (const auto mode : {MegatronTransfers::kBatched, MegatronTransfers::kOverlapped,
                                    MegatronTransfers::kOverlappedEverywhere}) {
              // With v = 1 Megatron-LM runs the step without interleaving.
              if (v == 1 && std::string_view(name) != "1f1b") continue;
              const auto lowered = LowerToMegatron(name, Request(p, m, v, group), mode);
              if (!lowered) continue;
              const auto schedule = Build(name, Request(p, m, v, group));
              EXPECT_EQ(ComputeOf(*lowered), schedule.ranks);
              const auto blocking = EvaluateBlocking(*lowered, Costs(1, 1, 1, 0.1));
              ASSERT_TRUE(blocking.has_value())
                  << name << " P=" << p << " M=" << m << " v=" << v << "\n"
                  << ToString(blocking.error());
              const auto eager = EvaluateSchedule(schedule, Costs(1, 1, 1, 0.1));
              EXPECT_GE(blocking->makespan, eager->makespan);
              ++cases;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 300);
}

// An order file says no group; the order itself does.
TEST(MegatronCalls, AreFoundForAnInterleavedOrderOfAnyGroup) {
  for (const std::int32_t group : {4, 6, 8, 12}) {
    const auto schedule = Build("interleaved", Request(4, 12, 3, group));
    const auto batches = MegatronBatchesOf(schedule, {});
    ASSERT_TRUE(batches.has_value()) << group;
    EXPECT_EQ(ComputeOf(*batches), schedule.ranks) << group;
  }
  EXPECT_FALSE(MegatronBatchesOf(Build("interleaved-zb", Request(4, 12, 3)), {}).has_value());
}

TEST(MegatronCalls, SendsMeetReceivesOnEveryConnection) {
  const auto lowered =
      LowerToMegatron("interleaved", Request(4, 12, 3, 6), MegatronTransfers::kBatched);
  ASSERT_TRUE(lowered.has_value());
  for (std::size_t r = 0; r < 4; ++r) {
    int sent = 0;
    int received = 0;
    for (const LoweredStep& step : lowered->ranks[r]) sent += step.call.send_forward;
    for (const LoweredStep& step : lowered->ranks[(r + 1) % 4])
      received += step.call.receive_forward;
    EXPECT_EQ(sent, received) << "rank " << r;
  }
}

TEST(MegatronCalls, RefusesWhatMegatronRefuses) {
  const auto overlapped = LowerToMegatron("1f1b", Request(4, 8), MegatronTransfers::kOverlapped);
  ASSERT_FALSE(overlapped.has_value());
  EXPECT_EQ(ToString(overlapped.error()),
            "1f1b: Megatron-LM does not overlap point-to-point without virtual stages");
  EXPECT_FALSE(LowerToMegatron("combined", Request(4, 8, 2), MegatronTransfers::kBatched));
  EXPECT_FALSE(LowerToMegatron("zb-h1", Request(4, 8), MegatronTransfers::kBatched));
  EXPECT_FALSE(LowerToMegatron("interleaved", Request(1, 8, 2), MegatronTransfers::kBatched));
}

TEST(BlockingReplay, NamesWhoWaitsForWhomInADeadlock) {
  // Both ranks send first and never receive.
  LoweredSchedule lowered;
  lowered.pipeline = 2;
  const LoweredStep send{std::nullopt, {.send_forward = true}};
  lowered.ranks = {{send}, {send}};
  const auto result = EvaluateBlocking(lowered, TaskCosts{});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(ToString(result.error()),
            "deadlock: rank 0 is blocked in sf (step 0) and waits for rank 1\n"
            "deadlock: rank 1 is blocked in sf (step 0) and waits for rank 0");
}

TEST(BlockingReplay, ABlockedSenderWaitsForTheReceiverAndOneLatency) {
  // Rank 1 is busy with an action of its own for 1 before it receives; the call lasts until 1 +
  // 0.5.
  LoweredSchedule lowered;
  lowered.pipeline = 2;
  const LoweredStep compute{Slot{Action{}, std::nullopt}, {}};
  lowered.ranks = {{{std::nullopt, {.send_forward = true}}, compute},
                   {compute, {std::nullopt, {.receive_forward = true}}}};
  const auto result = EvaluateBlocking(lowered, Costs(1, 1, 1, 0.5));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->makespan, FromSeconds(2.5));
  EXPECT_DOUBLE_EQ(result->bubble_of_makespan.value(), 3.0 / 5.0);
}

}  // namespace
}  // namespace quadrille::schedules
