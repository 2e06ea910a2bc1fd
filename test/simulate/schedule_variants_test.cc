// One run under other schedules: what changes, what is refused, and what a row says.
#include "sim/simulate/schedule_variants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenario_run.h"
#include "schedules/registry.h"
#include "sim/simulate/compare_row.h"

namespace quadrille::simulate {
namespace {

const char* const kBf16 = "llama3-405b-1024xh100-bf16";

// The reference layout with sixteen microbatches on one pair of replicas.
scenario::Scenario Small(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = {"nodes=32", "parallel.data=2", "training.global_batch=32",
                                        "training.microbatches=16"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return LoadShipped(kBf16, overrides);
}

ScheduleSpec Spec(const std::string& text) {
  const auto specs = ParseScheduleList(text);
  if (!specs) {
    ADD_FAILURE() << ToString(specs.error());
    return {};
  }
  return specs->front();
}

ScheduleVariant Variant(const scenario::Scenario& run, const std::string& text) {
  auto variant = MakeVariant(run, Spec(text));
  if (!variant) {
    ADD_FAILURE() << text << ": " << ToString(variant.error());
    return {};
  }
  return *std::move(variant);
}

Simulation MustSimulate(ScheduleVariant& variant) {
  auto simulation = SimulateVariant(variant, {});
  if (!simulation) {
    ADD_FAILURE() << ToString(simulation.error());
    return {};
  }
  return *std::move(simulation);
}

TEST(ScheduleList, ReadsNamesAndSizes) {
  const auto specs = ParseScheduleList(
      "1f1b,interleaved:vp=2:group=12,interleaved:group=auto,1f1b,v-auto:"
      "memory-limit=6");
  ASSERT_TRUE(specs) << ToString(specs.error());
  ASSERT_EQ(specs->size(), 4u) << "what is written twice counts once";
  EXPECT_EQ((*specs)[1].label, "interleaved:vp=2:group=12");
  EXPECT_EQ((*specs)[1].virtual_stages, 2);
  EXPECT_EQ((*specs)[1].group, 12);
  EXPECT_EQ((*specs)[2].group, schedules::kAutomaticGroup);
  EXPECT_EQ((*specs)[3].memory_limit, 6);
}

TEST(ScheduleList, SaysAllThatIsWrongAtOnce) {
  const auto specs = ParseScheduleList("1f1d,interleaved:vq=2,interleaved:vp=0,interleaved:vp=x");
  ASSERT_FALSE(specs);
  const std::string text = ToString(specs.error());
  EXPECT_EQ(specs.error().size(), 4u) << text;
  EXPECT_NE(text.find("'1f1d'; did you mean '1f1b'?"), std::string::npos) << text;
  EXPECT_NE(text.find("no option 'vq'; did you mean 'vp'?"), std::string::npos) << text;
  EXPECT_NE(text.find("needs a whole number from 1, not '0'"), std::string::npos) << text;
}

TEST(ScheduleList, OfAllBeginsWithTheRunsOwnAndNamesEachOnce) {
  const std::vector<ScheduleSpec> specs = AllSchedules(Small());
  EXPECT_EQ(specs.front().name, "interleaved");
  EXPECT_EQ(specs.size(), schedules::BuiltInSchedules().size());
  for (const schedules::ScheduleEntry& entry : schedules::BuiltInSchedules()) {
    EXPECT_EQ(std::count_if(specs.begin(), specs.end(),
                            [&](const ScheduleSpec& spec) { return spec.name == entry.name; }),
              1)
        << entry.name;
  }
}

TEST(Variant, KeepsEverythingButTheScheduleAndItsStages) {
  const scenario::Scenario run = Small();
  const ScheduleVariant own = Variant(run, "interleaved");
  EXPECT_TRUE(own.own);
  EXPECT_EQ(own.scenario.hash, run.hash);
  const ScheduleVariant other = Variant(run, "zb-h1");
  EXPECT_FALSE(other.own);
  EXPECT_EQ(other.scenario.schedule.name, "zb-h1");
  EXPECT_EQ(other.scenario.parallel.virtual_stages, 1);
  EXPECT_NE(other.scenario.hash, run.hash);
  // Dealt to eight stages, the layers still divide with embedding and loss counted.
  EXPECT_EQ(other.layout, "");
  EXPECT_EQ(other.scenario.parallel.data, run.parallel.data);
  EXPECT_EQ(other.scenario.microbatches, run.microbatches);
  EXPECT_EQ(other.scenario.overlap.point_to_point, run.overlap.point_to_point);
  EXPECT_EQ(other.scenario.schedule.request.costs.pair_cost, run.schedule.request.costs.pair_cost);
}

TEST(Variant, TakesTheRunsVirtualStagesWhereTheScheduleDoesAndSaysHowLayersAreDealt) {
  const scenario::Scenario run = Small();
  EXPECT_EQ(Variant(run, "breadth-first").scenario.parallel.virtual_stages, 8);
  EXPECT_EQ(Variant(run, "zbv").scenario.parallel.virtual_stages, 2) << "it has always two";
  EXPECT_EQ(Variant(run, "interleaved:vp=2").scenario.parallel.virtual_stages, 2);
  // 128 slots over 24 chunks do not divide.
  const ScheduleVariant uneven = Variant(run, "interleaved:vp=3");
  EXPECT_NE(uneven.layout.find("layers dealt otherwise than in the run: 128 slots over 24 chunks, "
                               "5 or 6 each"),
            std::string::npos)
      << uneven.layout;
}

TEST(Variant, SendsAsTheRunSaysOrElseAsIsTheDefaultWithItsSchedule) {
  using program::PointToPoint;
  const scenario::Scenario open = LoadShipped("llama3-405b-teaching", {});
  ASSERT_EQ(open.overlap.point_to_point, PointToPoint::kBatchedBlocking) << "1F1B's default";
  const ScheduleVariant ahead = Variant(open, "zb-h1");
  EXPECT_EQ(ahead.scenario.overlap.point_to_point, PointToPoint::kPostedAhead);
  EXPECT_NE(ahead.layout.find("point-to-point posted-ahead, which is the default with it"),
            std::string::npos)
      << ahead.layout;
  EXPECT_EQ(Variant(open, "1f1b").layout, "");
  const scenario::Scenario said = LoadShipped("llama3-405b-teaching", {"overlap.p2p=blocking"});
  const ScheduleVariant blocking = Variant(said, "zb-h1");
  EXPECT_EQ(blocking.scenario.overlap.point_to_point, PointToPoint::kBatchedBlocking);
  EXPECT_EQ(blocking.layout.find("point-to-point"), std::string::npos);
}

TEST(Variant, OfBlockingSendsRunsOrIsADiagnosedDeadlock) {
  const scenario::Scenario run = Small({"overlap.p2p=blocking"});
  int refused = 0;
  for (const ScheduleSpec& spec : AllSchedules(run)) {
    Result<ScheduleVariant> variant = MakeVariant(run, spec);
    if (!variant || spec.name == "seq1f1b") continue;  // slices and context parallelism
    const Result<Simulation> simulation = SimulateVariant(*variant, {});
    const bool runs =
        spec.name == "1f1b" || spec.name == "interleaved" || spec.name.starts_with("gpipe");
    EXPECT_EQ(simulation.has_value(), runs) << spec.name;
    if (simulation) {
      EXPECT_GT(CompareRow(*variant, *simulation).exposed_hops, 0.0) << spec.name;
      EXPECT_TRUE(CompareRow(*variant, *simulation).blocking_hops) << spec.name;
      continue;
    }
    const std::string text = ToString(simulation.error());
    if (spec.name != "combined") {
      EXPECT_TRUE(AllAre(ProblemKind::kCannotRun, simulation.error())) << text;
      EXPECT_NE(text.find("deadlock with one blocking call per message: rank "), std::string::npos)
          << text;
    }
    ++refused;
  }
  EXPECT_GT(refused, 15);
}

TEST(Variant, PassesRefusalsOn) {
  const scenario::Scenario run = Small();
  const auto few = MakeVariant(run, Spec("interleaved:group=3"));
  ASSERT_FALSE(few);
  EXPECT_NE(ToString(few.error()).find("group, 3"), std::string::npos) << ToString(few.error());
  const auto many = MakeVariant(run, Spec("interleaved:vp=64"));
  ASSERT_FALSE(many);
  EXPECT_NE(ToString(many.error()).find("cannot fill 512 chunks"), std::string::npos)
      << ToString(many.error());
}

TEST(Variant, OfAnAutomaticScheduleIsBuiltFromTheTimesThatItShowed) {
  ScheduleVariant variant = Variant(Small(), "zb-auto");
  const std::uint64_t hash = variant.scenario.hash;
  const Simulation simulation = MustSimulate(variant);
  EXPECT_EQ(variant.costs.substr(0, 13), "built from F ") << variant.costs;
  EXPECT_NE(variant.scenario.hash, hash) << "the costs are part of the scenario";
  const schedules::TaskCosts& given = variant.scenario.schedule.request.costs;
  const schedules::TaskCosts shown = MeasureCosts(simulation);
  EXPECT_NEAR(ToSeconds(given.forward), ToSeconds(shown.forward), 0.01 * ToSeconds(shown.forward));
  EXPECT_GT(given.latency.count(), 0);
}

TEST(MeasuredCosts, DeriveWhatDoesNotOccur) {
  ScheduleVariant whole = Variant(Small(), "1f1b");
  const schedules::TaskCosts of_whole = MeasureCosts(MustSimulate(whole));
  EXPECT_EQ(of_whole.backward_input + of_whole.backward_weight, of_whole.backward);
  ScheduleVariant split = Variant(Small(), "zb-h1");
  const schedules::TaskCosts of_split = MeasureCosts(MustSimulate(split));
  EXPECT_EQ(of_split.backward, of_split.backward_input + of_split.backward_weight);
  EXPECT_GT(of_split.backward_input, of_split.backward_weight) << "attention has no weights";
}

TEST(CompareRow, CountsCopiesMessagesAndHops) {
  ScheduleVariant one = Variant(Small(), "gpipe");
  const report::ComparedRun row = CompareRow(one, MustSimulate(one));
  EXPECT_EQ(row.parameter_copies, 1);
  EXPECT_EQ(row.messages_per_microbatch, 2.0 * (8 - 1));
  EXPECT_NEAR(row.exposed_hops, 2 * (8 - 1), 0.01) << "GPipe exposes the hops of fill and drain";
  EXPECT_FALSE(row.blocking_hops);
  EXPECT_EQ(row.waiting_for_weight_gradient, Bytes(0));
  ScheduleVariant two = Variant(Small(), "dualpipe");
  EXPECT_EQ(CompareRow(two, MustSimulate(two)).parameter_copies, 2);
}

TEST(CompareRow, SaysWhatASplitBackwardHolds) {
  // Rank 7 of ZB-H1 holds seven weight gradients back, so part of its peak waits for them.
  ScheduleVariant split = Variant(Small(), "zb-h1");
  const report::ComparedRun row = CompareRow(split, MustSimulate(split));
  ScheduleVariant whole = Variant(Small(), "1f1b");
  const report::ComparedRun base = CompareRow(whole, MustSimulate(whole));
  EXPECT_GT(row.waiting_for_weight_gradient, Bytes(0));
  EXPECT_GT(row.step.peak_memory, base.step.peak_memory);
  EXPECT_LT(row.waiting_for_weight_gradient, row.step.peak_memory);
}

// DeepSeek-V3's stages under DualPipe: 16 pipeline ranks, experts over 64 GPUs.
scenario::Scenario DeepSeek(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = {"training.global_batch=4096"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return LoadShipped("deepseek-v3-2048xh800", overrides);
}

// The first fused pair of the pipeline's second rank, whose stages are MoE layers alone.
struct Pair {
  Duration time{0};       // from its inputs to its outputs
  Duration kernels{0};    // its kernels alone
  Duration transfers{0};  // its all-to-alls alone
};

Pair PairOf(const std::vector<std::string>& overrides) {
  ScheduleVariant variant = Variant(DeepSeek(overrides), "dualpipe");
  const Simulation simulation = MustSimulate(variant);
  const program::Program& program = simulation.compiled.program;
  Pair pair;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    if (program.ranks[r].program != 1) continue;
    const program::RankProgram& rank = program.programs[1];
    for (std::size_t s = 0; s < rank.segments.size(); ++s) {
      if (!rank.segments[s].slot.second) continue;
      const program::ActionSpan& span = simulation.result.ranks[r].spans[s];
      pair.time = span.end - span.begin;
      for (const program::Instruction& i : rank.templates[rank.segments[s].body].instructions) {
        if (i.kind == program::InstructionKind::kCompute) {
          pair.kernels += rank.kernels[i.cost].duration;
        } else if (i.kind == program::InstructionKind::kTransfer) {
          const std::size_t group =
              static_cast<std::size_t>(program.ranks[r].group_of_lane[i.lane]);
          const std::size_t placement = static_cast<std::size_t>(program.groups[group].placement);
          pair.transfers +=
              simulation.compiled.machine.costs[i.cost * program.placements.size() + placement]
                  .alone;
        }
      }
      return pair;
    }
  }
  ADD_FAILURE() << "no fused pair";
  return pair;
}

std::vector<std::string> Quiet(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"network.fidelity=alpha-beta", "network.interference=false"});
  return more;
}

TEST(FusedPairs, OfADeepSeekStageHideAllToAllsOfOneMicrobatchBehindKernelsOfTheOther) {
  const Pair fused = PairOf(Quiet());
  const Pair serial = PairOf(Quiet({"schedule.pair=serial"}));
  EXPECT_EQ(fused.kernels, serial.kernels);
  EXPECT_EQ(fused.transfers, serial.transfers);
  EXPECT_LT(ToSeconds(fused.time), 0.97 * ToSeconds(serial.time));
  // It is simulated and not assumed: never shorter than its kernels, and no more is hidden than
  // there is to hide.
  EXPECT_GE(fused.time, fused.kernels);
  EXPECT_LE(serial.time - fused.time, fused.transfers);
}

TEST(FusedPairs, TakeExactlyTheSumOfTheirKernelsWhenNothingIsCommunicated) {
  // All experts on every GPU: an action has no transfer left.
  const std::string alone = "parallel.expert=1";
  const Pair fused = PairOf(Quiet({alone}));
  const Pair serial = PairOf(Quiet({alone, "schedule.pair=serial"}));
  EXPECT_EQ(fused.transfers, Duration(0));
  EXPECT_EQ(fused.time, fused.kernels);
  EXPECT_EQ(serial.time, fused.time);
}

TEST(FusedPairs, PayForTheMultiprocessorsThatTheirTransfersHold) {
  const Pair without = PairOf({"network.interference=false"});
  const Pair with = PairOf({"network.interference=true"});
  EXPECT_GT(with.time, without.time);
}

TEST(FusedPairs, OfGivenTimeLastTheirShareOfSerialOnes) {
  const Pair serial = PairOf(Quiet({"schedule.pair=serial"}));
  const Pair given = PairOf(Quiet({"schedule.pair=given", "schedule.pair_factor=0.7"}));
  EXPECT_NEAR(ToSeconds(given.time), 0.7 * ToSeconds(serial.time), 1e-4 * ToSeconds(serial.time));
}

}  // namespace
}  // namespace quadrille::simulate
