// group-interleaved: the authors' orders, the peak, and the groups that it refuses.

#include <algorithm>

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

// FNV-1a digests of what sail-sg/zero-bubble-pipeline-parallelism at 39f2c186 prints,
// zerobubble/scheduler/group_interleaved_1f1b.py.
TEST(GroupInterleaved, OrdersEqualTheAuthors) {
  struct Digest {
    std::int32_t pipeline;
    std::int32_t microbatches;
    std::int32_t group;
    std::int32_t virtual_stages;
    std::uint64_t digest;
  };
  const Digest digests[] = {
      {4, 12, 2, 3, 0xa46d82a97054cbd9}, {4, 8, 2, 2, 0x0c0b23f030840535},
      {4, 8, 3, 2, 0xa02dc5fd08da1119},  {4, 8, 4, 2, 0x412fb3a4eed7ad29},
      {8, 16, 4, 2, 0x1a2b3cf77c252919}, {8, 16, 8, 2, 0x5e183e2629599d29},
      {8, 16, 4, 3, 0xe43055f9297c06dd},
  };
  for (const Digest& row : digests) {
    const std::string text =
        PrintSchedule(Build("group-interleaved",
                            Request(row.pipeline, row.microbatches, row.virtual_stages, row.group)),
                      false);
    EXPECT_EQ(Fnv1a(text), row.digest)
        << "P=" << row.pipeline << " M=" << row.microbatches << " v=" << row.virtual_stages
        << " group=" << row.group << "\n"
        << text.substr(0, 2000);
  }
}

TEST(GroupInterleaved, LeavesAHoleWhereTheLastGroupIsShort) {
  EXPECT_EQ(PrintSchedule(Build("group-interleaved", Request(2, 3, 2, 2)), false),
            "F0.0 F1.0 F0.1 F1.1 I0.1 W0.1 F2.0 I1.1 W1.1 I0.0 W0.0 F2.1 I1.0 W1.0 I2.1 W2.1 I2.0 "
            "W2.0\n"
            "F0.0 F1.0 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 F2.0 I0.0 W0.0 I1.0 W1.0 F2.1 I2.1 W2.1 I2.0 "
            "W2.0\n");
}

TEST(GroupInterleaved, IsSoundAndHoldsOneChunkLessPerRankDownThePipeline) {
  for (std::int32_t p = 1; p <= 8; ++p) {
    for (std::int32_t m = 1; m <= 12; ++m) {
      for (std::int32_t v = 1; v <= 4; ++v) {
        for (std::int32_t group = (p + 1) / 2; group <= p; ++group) {
          SCOPED_TRACE("P=" + std::to_string(p) + " M=" + std::to_string(m) +
                       " v=" + std::to_string(v) + " group=" + std::to_string(group));
          const PipelineSchedule schedule = Build("group-interleaved", Request(p, m, v, group));
          ASSERT_EQ(ToString(CheckSchedule(schedule)), "");
          const auto evaluation = EvaluateSchedule(schedule, Costs(1, 1, 1));
          ASSERT_TRUE(evaluation.has_value()) << ToString(evaluation.error());
          for (std::int32_t r = 0; r < p; ++r) {
            const std::int32_t bound = std::min(v * m, (v - 1) * group + p - r);
            const std::int32_t peak = evaluation->peak_activations[static_cast<std::size_t>(r)];
            EXPECT_LE(peak, bound) << "rank " << r;
            if (m % group == 0) {
              EXPECT_EQ(peak, bound) << "rank " << r;
            }
          }
        }
      }
    }
  }
}

TEST(GroupInterleaved, RefusesGroupsThatCannotKeepThePipelineFull) {
  for (const std::int32_t group : {1, 3, 9, 100}) {
    const auto result = BuildSchedule("group-interleaved", Request(8, 16, 2, group));
    ASSERT_FALSE(result.has_value()) << group;
    EXPECT_NE(ToString(result.error())
                  .find("must be in [half the pipeline ranks = 4, pipeline "
                        "ranks = 8], not " +
                        std::to_string(group)),
              std::string::npos)
        << ToString(result.error());
  }
  EXPECT_TRUE(BuildSchedule("group-interleaved", Request(8, 16, 2, 4)).has_value());
}

}  // namespace
}  // namespace quadrille::schedules
