// v-half, v-min, 1f1b-v and v-auto: the authors' orders, the peaks and bubbles of their paper.

#include <algorithm>
#include <span>

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

// FNV-1a digests of what sail-sg/zero-bubble-pipeline-parallelism at 39f2c186 prints:
// zerobubble/scheduler/zbv_greedy.py (v-half, v-min), v1f1b.py, v_auto_schedule.py.
struct Digest {
  std::int32_t pipeline;
  std::int32_t microbatches;
  std::uint64_t digest;
};

void ExpectOrders(const char* name, std::span<const Digest> digests) {
  for (const Digest& row : digests) {
    const std::string text =
        PrintSchedule(Build(name, Request(row.pipeline, row.microbatches)), false);
    EXPECT_EQ(Fnv1a(text), row.digest)
        << name << " P=" << row.pipeline << " M=" << row.microbatches << "\n"
        << text.substr(0, 2000);
  }
}

TEST(VSchedules, VHalfOrdersEqualTheAuthors) {
  const Digest digests[] = {
      {2, 4, 0x6caa4263f9ffd253},  {3, 7, 0x69b4114b1eff8ecc},  {4, 12, 0xce428e4938c6c72b},
      {4, 7, 0x7fdf9d3311a4bd5b},  {4, 8, 0x278b936b5333a953},  {7, 15, 0x79b1634d306363fc},
      {8, 24, 0x882d07c32d950923}, {8, 48, 0x9025b8c97ecaed7b},
  };
  ExpectOrders("v-half", digests);
}

TEST(VSchedules, VMinOrdersEqualTheAuthors) {
  const Digest digests[] = {
      {2, 4, 0xa4609addeadaa241},  {3, 7, 0x82802ec40261a880},  {4, 3, 0x363506e685c868a5},
      {4, 8, 0x821b8d68008b262d},  {5, 10, 0xe28cf75d7b897c29}, {6, 13, 0x84d59226521bf213},
      {7, 15, 0xa9ac4832524c1f14}, {8, 24, 0xbda6db2a18d8cdc7}, {8, 48, 0xee2b39f88048bfbf},
  };
  ExpectOrders("v-min", digests);
}

TEST(VSchedules, OneForwardOneBackwardVOrdersEqualTheAuthors) {
  const Digest digests[] = {
      {2, 4, 0x1782327a07307d55},  {4, 8, 0xb632316f9731f1a1},  {5, 10, 0x17e0805dedf31a4d},
      {6, 13, 0x959d27d3380c3a7b}, {7, 15, 0xdfc317872a63459d}, {8, 16, 0xc4d80cea29bfd793},
      {8, 48, 0x3d7003ea9818f1d3},
  };
  ExpectOrders("1f1b-v", digests);
}

PipelineSchedule Automatic(std::int32_t p, std::int32_t m, std::int32_t limit,
                           const TaskCosts& costs = Costs(1, 1, 1)) {
  ScheduleRequest request = Request(p, m);
  request.memory_limit = limit;
  request.costs = costs;
  return Build("v-auto", request);
}

ScheduleEvaluation Evaluate(const PipelineSchedule& schedule, const TaskCosts& costs) {
  auto evaluation = EvaluateSchedule(schedule, costs);
  if (!evaluation) {
    ADD_FAILURE() << ToString(evaluation.error());
    return {};
  }
  return *std::move(evaluation);
}

std::int32_t Peak(const PipelineSchedule& schedule) {
  const ScheduleEvaluation evaluation = Evaluate(schedule, Costs(1, 1, 1));
  return *std::max_element(evaluation.peak_activations.begin(), evaluation.peak_activations.end());
}

TEST(VSchedules, AutomaticOrdersEqualTheAuthors) {
  EXPECT_EQ(Fnv1a(PrintSchedule(Automatic(4, 8, 4), false)), 0x2958f11fa7645eebu);
  EXPECT_EQ(Fnv1a(PrintSchedule(Automatic(4, 8, 6), false)), 0x396166a4bcf0181bu);
  EXPECT_EQ(Fnv1a(PrintSchedule(Automatic(4, 8, 8), false)), 0x7b4080efcb8ec709u);
}

TEST(VSchedules, SmallOrdersInFull) {
  EXPECT_EQ(PrintSchedule(Build("v-min", Request(4, 3)), false),
            "F0.0 F1.0 F2.0 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 I0.0 W0.0 F2.1 I2.1 I1.0 W2.1 W1.0 I2.0 "
            "W2.0\n"
            "F0.0 F1.0 F0.1 F1.1 I0.1 W0.1 F2.0 I0.0 I1.1 W1.1 W0.0 F2.1 I1.0 I2.1 W2.1 W1.0 I2.0 "
            "W2.0\n"
            "F0.0 F1.0 F0.1 F1.1 I0.1 W0.1 F2.0 I0.0 W0.0 I1.1 F2.1 W1.1 I1.0 W1.0 I2.1 W2.1 I2.0 "
            "W2.0\n"
            "F0.0 F0.1 F1.0 F1.1 I0.1 I0.0 W0.1 W0.0 F2.0 F2.1 I1.1 I1.0 W1.1 W1.0 I2.1 I2.0 W2.1 "
            "W2.0\n");
  EXPECT_EQ(PrintSchedule(Build("1f1b-v", Request(2, 4)), false),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F3.0 B0.0 F2.1 B2.1 B1.0 F3.1 B3.1 B2.0 B3.0\n"
            "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 F2.0 F2.1 B1.1 B1.0 F3.0 F3.1 B2.1 B2.0 B3.1 B3.0\n");
}

struct Family {
  const char* name;
  std::int32_t (*peak)(std::int32_t p);
};
const Family kFamilies[] = {
    {"v-half", [](std::int32_t p) { return 2 * ((p + 2) / 2); }},
    {"v-min", [](std::int32_t p) { return 2 * ((p + 4) / 3); }},
    {"1f1b-v", [](std::int32_t p) { return 2 * ((2 * p + 3) / 3); }},
};

TEST(VSchedules, AreSoundAndHoldAtMostThePaperPeak) {
  for (const Family& family : kFamilies) {
    for (std::int32_t p = 1; p <= 12; ++p) {
      for (std::int32_t m = 1; m <= 26; m += m < 14 ? 1 : 4) {
        SCOPED_TRACE(std::string(family.name) + " P=" + std::to_string(p) +
                     " M=" + std::to_string(m));
        const PipelineSchedule schedule = Build(family.name, Request(p, m));
        ASSERT_EQ(ToString(CheckSchedule(schedule)), "");
        EXPECT_LE(Peak(schedule), family.peak(p));
        if (m >= 2 * p) {
          EXPECT_EQ(Peak(schedule), family.peak(p));
        }
      }
    }
  }
}

TEST(VSchedules, IdleIsThatOfThePaperWithEqualCosts) {
  const std::int32_t minimal[] = {0, 0, 0, 5, 11, 15, 17, 23, 27};
  for (std::int32_t p = 3; p <= 8; ++p) {
    for (const std::int32_t m : {2 * p, 3 * p, 6 * p}) {
      SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m));
      const Duration busy = FromSeconds(6 * m);
      EXPECT_EQ(Evaluate(Build("v-half", Request(p, m)), Costs(1, 1, 1)).makespan - busy,
                FromSeconds(6 * ((p + 1) / 2) - 7));
      EXPECT_EQ(Evaluate(Build("v-min", Request(p, m)), Costs(1, 1, 1)).makespan - busy,
                FromSeconds(minimal[p]));
    }
  }
}

TEST(VSchedules, AutomaticIsSoundAndKeepsItsLimit) {
  for (const TaskCosts& costs : {Costs(1, 1, 1), Costs(1, 1.2, 0.8, 0.1)}) {
    for (std::int32_t p = 1; p <= 4; ++p) {
      for (const std::int32_t m : {1, p, 2 * p + 1}) {
        for (std::int32_t limit = 2 * ((p + 4) / 3); limit <= 2 * p; ++limit) {
          SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m) +
                       " limit=" + std::to_string(limit));
          const PipelineSchedule schedule = Automatic(p, m, limit, costs);
          ASSERT_EQ(ToString(CheckSchedule(schedule)), "");
          EXPECT_LE(Peak(schedule), limit);
        }
      }
    }
  }
}

TEST(VSchedules, AutomaticIdlesNoMoreThanTheFixedBlocksOfItsMemoryAndNotAtAllWith2P) {
  const auto makespan = [](const PipelineSchedule& schedule) {
    return Evaluate(schedule, Costs(1, 1, 1)).makespan;
  };
  for (std::int32_t p = 3; p <= 6; ++p) {
    SCOPED_TRACE("P=" + std::to_string(p));
    const std::int32_t m = 2 * p;
    EXPECT_LE(makespan(Automatic(p, m, 2 * ((p + 4) / 3))),
              makespan(Build("v-min", Request(p, m))));
    EXPECT_LE(makespan(Automatic(p, m, 2 * ((p + 2) / 2))),
              makespan(Build("v-half", Request(p, m))));
    const ScheduleEvaluation full = Evaluate(Automatic(p, m, 2 * p), Costs(1, 1, 1));
    EXPECT_EQ(*std::max_element(full.idle_inside_span.begin(), full.idle_inside_span.end()),
              Duration{0});
  }
}

TEST(VSchedules, AutomaticRefusesAMemoryThatNoBlockFits) {
  ScheduleRequest request = Request(8, 16);
  request.memory_limit = 7;
  const auto result = BuildSchedule("v-auto", request);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(ToString(result.error()),
            "v-auto: no building block was found that holds at most 7 chunk activations per rank; "
            "v-min needs 2 * floor((P + 4) / 3) = 8");
  request.memory_limit = -1;
  EXPECT_FALSE(BuildSchedule("v-auto", request).has_value());
}

TEST(VSchedules, RefuseGridsThatAreTooLargeToBuild) {
  for (const char* name : {"v-half", "v-min", "1f1b-v", "v-auto"}) {
    const auto result = BuildSchedule(name, Request(100'000, 1));
    ASSERT_FALSE(result.has_value()) << name;
    EXPECT_NE(ToString(result.error()).find("more than the limit"), std::string::npos);
  }
}

}  // namespace
}  // namespace quadrille::schedules
