#include "sim/program/point_to_point.h"

#include <gtest/gtest.h>

#include "schedules/evaluate.h"
#include "test/program/small_step.h"

namespace quadrille::program {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::PipelineSchedule;
using schedules::Placement;
using schedules::Slot;

std::int64_t MessagesOf(const PipelineSchedule& schedule) {
  std::int64_t messages = 0;
  for (const Channel& channel : PlanChannels(schedule)) {
    messages += static_cast<std::int64_t>(channel.messages.size());
  }
  return messages;
}

// Borders that a microbatch crosses to another rank, each once forward and once backward.
std::int64_t ClosedForm(const PipelineSchedule& s) {
  const std::int64_t p = s.pipeline;
  const std::int64_t v = s.virtual_stages;
  const std::int64_t both_ways = std::int64_t{2} * s.microbatches * s.slices;
  switch (s.placement) {
    case Placement::kLoop: return p == 1 ? 0 : both_ways * (v * p - 1);
    case Placement::kV: return both_ways * v * (p - 1);
    case Placement::kBidirectional: return both_ways * (p - 1);
  }
  return -1;
}

TEST(PointToPoint, MessagesEqualTheClosedFormForEverySchedule) {
  int checked = 0;
  for (std::int32_t p : {1, 2, 4, 8}) {
    for (std::int32_t m : {1, 4, 8, 24}) {
      for (const PipelineSchedule& schedule : AllSchedules(p, m)) {
        EXPECT_EQ(MessagesOf(schedule), ClosedForm(schedule))
            << schedule.name << " " << p << " " << m;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 150);
}

TEST(PointToPoint, MessagesEqualThoseOfTheUnitCostEvaluation) {
  for (const PipelineSchedule& schedule : AllSchedules(4, 8)) {
    const auto evaluation = schedules::EvaluateSchedule(schedule, {});
    ASSERT_TRUE(evaluation) << schedule.name;
    EXPECT_EQ(MessagesOf(schedule), evaluation->messages) << schedule.name;
  }
}

TEST(PointToPoint, BuiltInSchedulesTakeMessagesInTheOrderInWhichTheyAreSent) {
  for (const PipelineSchedule& schedule : AllSchedules(4, 8)) {
    EXPECT_EQ(OvertakingMessage(schedule), "") << schedule.name;
  }
}

TEST(PointToPoint, ARankThatNeedsALaterMessageFirstIsNamedWithBoth) {
  PipelineSchedule schedule = ScheduleOf("1f1b", 4, 8);
  std::swap(schedule.ranks[2][0], schedule.ranks[2][1]);
  EXPECT_EQ(OvertakingMessage(schedule),
            "rank 2 runs F1.0 before F0.0 and waits for its input first, but rank 1 sends that of "
            "F0.0 before that of F1.0");
}

// The action of `slot` that sends (or consumes) a message of `stage`.
const Action* Find(const PipelineSchedule& schedule, std::int32_t rank, const Slot& slot,
                   bool backward, std::int32_t stage) {
  for (const Action* action : {&slot.first, slot.second ? &*slot.second : nullptr}) {
    if (action == nullptr || action->kind == ActionKind::kBackwardWeight) continue;
    const bool is_backward = action->kind != ActionKind::kForward;
    if (is_backward == backward && schedule.StageOf(rank, action->chunk).value() == stage) {
      return action;
    }
  }
  return nullptr;
}

TEST(PointToPoint, EveryMessageJoinsTheSameMicrobatchOfNeighbouringStages) {
  for (const PipelineSchedule& schedule : AllSchedules(4, 8)) {
    for (const Channel& channel : PlanChannels(schedule)) {
      for (const Message& message : channel.messages) {
        const auto& sender = schedule.ranks[static_cast<std::size_t>(message.source)];
        const auto& receiver = schedule.ranks[static_cast<std::size_t>(message.destination)];
        const Slot& from = sender[static_cast<std::size_t>(message.source_slot)];
        const Slot& to = receiver[static_cast<std::size_t>(message.destination_slot)];
        bool joined = false;
        for (std::int32_t stage = 0; stage < schedule.stage_count(); ++stage) {
          const Action* a = Find(schedule, message.source, from, message.backward, stage);
          const Action* b = Find(schedule, message.destination, to, message.backward,
                                 stage + (message.backward ? -1 : 1));
          joined = joined || (a != nullptr && b != nullptr && a->microbatch == b->microbatch &&
                              a->slice == b->slice);
        }
        EXPECT_TRUE(joined) << schedule.name << " " << message.source << " to "
                            << message.destination << " slot " << message.source_slot;
      }
    }
  }
}

TEST(PointToPoint, AChannelCarriesMessagesInTheOrderOfItsSource) {
  for (const PipelineSchedule& schedule : AllSchedules(4, 12)) {
    for (const Channel& channel : PlanChannels(schedule)) {
      for (std::size_t k = 1; k < channel.messages.size(); ++k) {
        EXPECT_LE(channel.messages[k - 1].source_slot, channel.messages[k].source_slot)
            << schedule.name;
      }
    }
  }
}

TEST(PointToPoint, SendsAndReceivesOfALaneMeetOneByOne) {
  // Lowered, the k-th send of a lane and the k-th receive at its other end are one message: both
  // ends have equally many, and each receive gates the segment that consumes that message.
  for (const PipelineSchedule& schedule : AllSchedules(4, 8)) {
    const LoweredStep lowered = Lower(StepOf(schedule));
    for (const Channel& channel : PlanChannels(schedule)) {
      const RankProgram& receiver =
          lowered.program.programs[static_cast<std::size_t>(channel.destination)];
      const LaneKind kind =
          channel.backward ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward;
      std::size_t lane = 1;
      while (receiver.lanes[lane].kind != kind || receiver.lanes[lane].peer != channel.source) {
        ASSERT_LT(++lane, receiver.lanes.size()) << schedule.name;
      }
      ASSERT_EQ(receiver.lane_totals[lane], static_cast<std::int32_t>(channel.messages.size()));
      for (std::size_t k = 0; k < channel.messages.size(); ++k) {
        // Segment 0 is the prologue.
        const auto segment = static_cast<std::size_t>(channel.messages[k].destination_slot) + 1;
        const Segment& consumer = receiver.segments[segment];
        bool gated = false;
        for (std::uint32_t w = 0; w < consumer.entry_count; ++w) {
          const Wait& wait = receiver.entry_waits[consumer.entry_begin + w];
          gated = gated || (wait.lane == lane && wait.count == static_cast<std::int32_t>(k + 1));
        }
        EXPECT_TRUE(gated) << schedule.name << " message " << k;
      }
    }
  }
}

// Names of the first transfers of a rank's actions on its tensor lane, by the action's letter.
std::string FirstTensorTransfer(const RankProgram& rank, char letter) {
  for (const Template& body : rank.templates) {
    if (body.name.empty() || body.name.front() != letter) continue;
    for (const Instruction& instruction : body.instructions) {
      if (rank.lanes[instruction.lane].kind == LaneKind::kTensor) {
        return rank.operations[instruction.operation].name;
      }
    }
  }
  return "";
}

TEST(PointToPoint, SharesOfAMessageAreGatheredBeforeTheActionThatReceivedThem) {
  SmallStep step = StepOf(ScheduleOf("1f1b", 2, 4));
  SetDegrees(step, 2, 1, 1);
  step.parallel.sequence_parallel = false;
  step.execution.sharding = step.parallel.layer_sharding();
  const Program whole = Lower(step).program;
  step.execution.scatter_gather = true;
  const Program shares = Lower(step).program;
  const auto sent = [](const Program& program) {
    for (const network::TransferShape& shape : program.shapes) {
      if (shape.collective.kind == model::CollectiveKind::kSendReceive) {
        return shape.collective.bytes.value();
      }
    }
    return std::int64_t{0};
  };
  EXPECT_EQ(sent(whole), 2048 * 1024 * 2);
  EXPECT_EQ(sent(shares), 2048 * 1024);
  const auto transfer = [](const Program& program, std::size_t stage, char letter) {
    return FirstTensorTransfer(program.programs[stage], letter).find("boundary") !=
           std::string::npos;
  };
  // Stage 0 receives gradients, stage 1 activations.
  EXPECT_FALSE(transfer(shares, 0, 'F'));
  EXPECT_TRUE(transfer(shares, 0, 'B'));
  EXPECT_TRUE(transfer(shares, 1, 'F'));
  EXPECT_FALSE(transfer(shares, 1, 'B'));
  for (const std::size_t stage : {0U, 1U}) {
    EXPECT_FALSE(transfer(whole, stage, 'F'));
    EXPECT_FALSE(transfer(whole, stage, 'B'));
  }
}

TEST(PointToPoint, ARankDoesNotSendToItself) {
  for (const Channel& channel : PlanChannels(ScheduleOf("zbv", 4, 8))) {
    EXPECT_NE(channel.source, channel.destination);
  }
  EXPECT_TRUE(PlanChannels(ScheduleOf("1f1b", 1, 8)).empty());
}

}  // namespace
}  // namespace quadrille::program
