// When fully sharded chunks are gathered, freed and reduced, against PyTorch's own lowering.

#include "schedules/unsharding.h"

#include <algorithm>

#include "schedule_test_support.h"

namespace quadrille::schedules {
namespace {

std::string NameOf(const PipelineSchedule& schedule, std::int32_t rank, const Action& action) {
  constexpr std::string_view kLetters = "FBIW";
  return std::to_string(schedule.StageOf(rank, action.chunk).value()) +
         kLetters[static_cast<std::size_t>(action.kind)] +
         std::to_string(action.microbatch.value());
}

// PyTorch's text of a rank: "0UNSHARD 0F0 ... 0REDUCE_GRAD 0RESHARD", without its transfers.
std::string PrintRank(const PipelineSchedule& schedule, std::int32_t rank, std::int32_t active) {
  const std::vector<Slot>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  const auto plan = PlanUnsharding(order, active);
  std::string text;
  const auto add = [&](const std::string& token) { text += (text.empty() ? "" : " ") + token; };
  for (std::size_t i = 0; i < plan.size(); ++i) {
    for (const ShardStep& step : plan[i]) {
      constexpr std::string_view kNames[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};
      add(std::to_string(schedule.StageOf(rank, step.chunk).value()) +
          std::string(kNames[static_cast<std::size_t>(step.kind)]));
    }
    if (i == order.size()) break;
    const std::string first = NameOf(schedule, rank, order[i].first);
    add(order[i].second
            ? "(" + first + ";" + NameOf(schedule, rank, *order[i].second) + ")OVERLAP_F_B"
            : first);
  }
  return text;
}

TEST(Unsharding, EqualsTheLoweringOfPyTorch) {
  struct Case {
    const char* name;
    std::int32_t pipeline, microbatches, group;
    std::uint64_t digest;  // of the lowered program of PyTorch 2.14.1
  };
  for (const Case& c : {Case{"dualpipev", 4, 10, 0, 0x5b0dab782b3c54b8u},
                        Case{"interleaved", 4, 8, kAutomaticGroup, 0xc589b3977c5cbc1du},
                        Case{"interleaved", 8, 16, kAutomaticGroup, 0x39ef608676adc5a1u},
                        Case{"breadth-first", 4, 8, 0, 0xb63cf4f23e0e69fdu},
                        Case{"interleaved-zb", 2, 8, 0, 0x93a8585eb5a1590bu},
                        Case{"zbv", 4, 8, 0, 0x16a3d4e77085fda5u}}) {
    const PipelineSchedule schedule =
        Build(c.name, Request(c.pipeline, c.microbatches, 2, c.group));
    std::string text;
    for (std::int32_t r = 0; r < c.pipeline; ++r) {
      text += PrintRank(schedule, r, kActiveChunks) + "\n";
    }
    EXPECT_EQ(Fnv1a(text), c.digest) << c.name << "\n" << text;
  }
}

TEST(Unsharding, FreesWhatLeavesTheWindowAndGathersWhatEntersIt) {
  // Four chunks, two microbatches, two gathered at a time: all F of a chunk, then the next chunk.
  const PipelineSchedule schedule = Build("breadth-first", Request(1, 2, 4));
  EXPECT_EQ(PrintRank(schedule, 0, 2),
            "0UNSHARD 1UNSHARD 0F0 0F1 0RESHARD 2UNSHARD 1F0 1F1 1RESHARD 3UNSHARD 2F0 2F1 3F0 3F1 "
            "3B1 3B0 3REDUCE_GRAD 3RESHARD 1UNSHARD 2B1 2B0 2REDUCE_GRAD 2RESHARD 0UNSHARD 1B1 1B0 "
            "1REDUCE_GRAD 1RESHARD 0B1 0B0 0REDUCE_GRAD 0RESHARD");
}

TEST(Unsharding, GathersEveryChunkBeforeItsUseAndFreesItOnce) {
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    const PipelineSchedule schedule = Build(entry.name, Request(4, 8));
    for (const std::vector<Slot>& order : schedule.ranks) {
      const auto plan = PlanUnsharding(order, 2);
      std::vector<bool> gathered(static_cast<std::size_t>(schedule.virtual_stages), false);
      std::size_t reduced = 0;
      for (std::size_t i = 0; i < plan.size(); ++i) {
        for (const ShardStep& step : plan[i]) {
          if (step.kind == ShardStepKind::kReduceGradients) {
            ++reduced;
            continue;
          }
          const bool gather = step.kind == ShardStepKind::kUnshard;
          EXPECT_NE(gathered[step.chunk.index()], gather) << entry.name;
          gathered[step.chunk.index()] = gather;
        }
        EXPECT_LE(std::count(gathered.begin(), gathered.end(), true), 2) << entry.name;
        if (i == order.size()) break;
        EXPECT_TRUE(gathered[order[i].first.chunk.index()]) << entry.name;
        const Action& last = order[i].second ? *order[i].second : order[i].first;
        EXPECT_TRUE(gathered[last.chunk.index()]) << entry.name;
      }
      EXPECT_EQ(std::count(gathered.begin(), gathered.end(), true), 0) << entry.name;
      EXPECT_EQ(reduced, gathered.size()) << entry.name;
    }
  }
}

}  // namespace
}  // namespace quadrille::schedules
