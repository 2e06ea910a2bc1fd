// What each schedule refuses, in the words that the user reads.

#include <limits>

#include "schedule_test_support.h"

namespace quadrille::schedules {
namespace {

std::string Refusal(std::string_view name, const ScheduleRequest& request) {
  const auto schedule = BuildSchedule(name, request);
  return schedule ? "accepted" : ToString(schedule.error());
}

TEST(Refusals, AnUnknownNameQuotesTheNearest) {
  EXPECT_EQ(Refusal("dualpip", Request(2, 4)),
            "there is no schedule named 'dualpip'; did you mean 'dualpipe'?");
  EXPECT_EQ(Refusal("xyzzy-plugh", Request(2, 4)), "there is no schedule named 'xyzzy-plugh'");
}

TEST(Refusals, MegatronsRulesOfTheGroup) {
  EXPECT_EQ(
      Refusal("interleaved", Request(4, 8, 2, 3)),
      "interleaved: the number of contiguous microbatches of a virtual stage (the group, 3) must "
      "be in [pipeline ranks = 4, microbatches = 8]");
  EXPECT_EQ(
      Refusal("interleaved", Request(4, 8, 2, 9)),
      "interleaved: the number of contiguous microbatches of a virtual stage (the group, 9) must "
      "be in [pipeline ranks = 4, microbatches = 8]");
  EXPECT_EQ(
      Refusal("interleaved", Request(4, 10)),
      "interleaved: the remainder of 10 microbatches divided by the group of 4 must be 0 or at "
      "least the number of pipeline ranks, 4, but it is 2: the short last group would stall the "
      "pipeline");
  EXPECT_EQ(Refusal("interleaved", Request(4, 10, 2, 6)), "accepted");  // the last group holds 4
  EXPECT_EQ(
      Refusal("interleaved", Request(4, 3)),
      "interleaved: the number of contiguous microbatches of a virtual stage (the group, 4) must "
      "be in [pipeline ranks = 4, microbatches = 3]");
}

TEST(Refusals, TheAutomaticGroupNeedsWholeRounds) {
  EXPECT_EQ(Refusal("interleaved", Request(4, 3, 2, kAutomaticGroup)), "accepted");
  EXPECT_EQ(
      Refusal("interleaved", Request(4, 9, 2, kAutomaticGroup)),
      "interleaved: with an automatic group the number of microbatches must be a multiple of the "
      "number of rounds, M div P = 2; 9 is not");
}

TEST(Refusals, ParityAndLeastSizes) {
  EXPECT_EQ(Refusal("dualpipe", Request(3, 5)),
            "dualpipe: needs an even number of pipeline ranks, not 3\n"
            "dualpipe: needs an even number of microbatches, half for each direction, not 5\n"
            "dualpipe: needs at least 2 microbatches per pipeline rank, 6 in all, not 5");
  EXPECT_EQ(Refusal("dualpipev", Request(4, 7)),
            "dualpipev: needs at least 2 microbatches per pipeline rank, 8 in all, not 7");
  EXPECT_EQ(Refusal("chimera", Request(3, 4)),
            "chimera: needs an even number of pipeline ranks, not 3");
  EXPECT_EQ(Refusal("zb-h2", Request(4, 6)),
            "zb-h2: needs at least 2 x 4 - 1 = 7 microbatches to fill its warm-up, not 6");
  EXPECT_EQ(
      Refusal("combined", Request(4, 8, 1)),
      "combined: with more than one pipeline rank at least 2 virtual stages per rank are needed");
}

TEST(Refusals, AnOptionThatTheScheduleDoesNotHave) {
  ScheduleRequest request = Request(4, 8, 2, 4, 2);
  request.waves = 2;
  request.memory_limit = 3;
  EXPECT_EQ(Refusal("gpipe", request),
            "gpipe: has 1 virtual stage per rank, not 2\n"
            "gpipe: has no microbatch group\n"
            "gpipe: does not slice the sequence\n"
            "gpipe: has no waves\n"
            "gpipe: takes no memory limit");
  EXPECT_EQ(
      Refusal("hanayo",
              [] {
                ScheduleRequest waves = Request(4, 8);
                waves.waves = 2;
                return waves;
              }()),
      "hanayo: only one wave is built in, not 2: no source for the rule of more is known; give "
      "such an order as a file");
}

TEST(Refusals, SizesBelowOne) {
  EXPECT_EQ(Refusal("1f1b", Request(0, -1)),
            "1f1b: pipeline ranks must be at least 1, not 0\n"
            "1f1b: microbatches must be at least 1, not -1");
  EXPECT_EQ(Refusal("interleaved", Request(4, 8, -2)),
            "interleaved: virtual stages must be at least 1, not -2");
  EXPECT_EQ(Refusal("interleaved", Request(4, 8, 2, -2)),
            "interleaved: the microbatch group must be at least 1, not -2");
}

TEST(Refusals, HugeSizesAreRefusedByEverySchedule) {
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  for (const ScheduleEntry& entry : BuiltInSchedules()) {
    for (const auto& request : {Request(kHuge, kHuge), Request(kHuge - 1, 1), Request(8, kHuge - 7),
                                Request(1 << 20, 64)}) {
      EXPECT_NE(Refusal(entry.name, request), "accepted")
          << entry.name << " P=" << request.pipeline << " M=" << request.microbatches;
    }
  }
}

}  // namespace
}  // namespace quadrille::schedules
