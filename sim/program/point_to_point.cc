#include "sim/program/point_to_point.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "schedules/text.h"
#include "sim/base/check.h"

namespace quadrille::program {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::PipelineSchedule;

// Slot of every forward and of every backward (B or I), by rank, chunk, microbatch and slice.
class SlotIndex {
 public:
  explicit SlotIndex(const PipelineSchedule& schedule) : schedule_(schedule) {
    const std::size_t per_rank = static_cast<std::size_t>(schedule.virtual_stages) *
                                 static_cast<std::size_t>(schedule.microbatches) *
                                 static_cast<std::size_t>(schedule.slices) * 2;
    slots_.assign(static_cast<std::size_t>(schedule.pipeline),
                  std::vector<std::int32_t>(per_rank, -1));
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
        const schedules::Slot& slot = schedule.ranks[rank][i];
        Record(rank, slot.first, i);
        if (slot.second) Record(rank, *slot.second, i);
      }
    }
  }

  [[nodiscard]] std::int32_t Find(std::int32_t rank, const Action& action, ChunkId chunk,
                                  bool backward) const {
    const std::int32_t slot =
        slots_[static_cast<std::size_t>(rank)][Index(action, chunk, backward)];
    QUADRILLE_CHECK(slot >= 0, "no consumer on pipeline rank {} of microbatch {} chunk {}", rank,
                    action.microbatch.value(), chunk.value());
    return slot;
  }

 private:
  [[nodiscard]] std::size_t Index(const Action& action, ChunkId chunk, bool backward) const {
    const auto v = static_cast<std::size_t>(schedule_.virtual_stages);
    const auto q = static_cast<std::size_t>(schedule_.slices);
    return ((action.microbatch.index() * v + chunk.index()) * q +
            static_cast<std::size_t>(action.slice)) *
               2 +
           (backward ? 1 : 0);
  }

  void Record(std::size_t rank, const Action& action, std::size_t slot) {
    if (action.kind == ActionKind::kBackwardWeight) return;
    slots_[rank][Index(action, action.chunk, action.kind != ActionKind::kForward)] =
        static_cast<std::int32_t>(slot);
  }

  const PipelineSchedule& schedule_;
  std::vector<std::vector<std::int32_t>> slots_;
};

}  // namespace

std::vector<Channel> PlanChannels(const PipelineSchedule& schedule) {
  const SlotIndex index(schedule);
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::vector<Message>> channels;
  const auto plan = [&](std::int32_t rank, const Action& action, std::int32_t slot) {
    if (action.kind == ActionKind::kBackwardWeight) return;
    const bool backward = action.kind != ActionKind::kForward;
    const std::int32_t stage = schedule.StageOf(rank, action.chunk).value() + (backward ? -1 : 1);
    if (stage < 0 || stage >= schedule.stage_count()) return;
    const std::int32_t peer = schedule.RankOf(StageId(stage), action.chunk);
    if (peer == rank) return;
    const ChunkId chunk = schedule.ChunkOf(StageId(stage), action.chunk);
    channels[{rank, peer, backward}].push_back(
        {rank, peer, backward, slot, index.Find(peer, action, chunk, backward)});
  };
  for (std::int32_t rank = 0; rank < schedule.pipeline; ++rank) {
    const auto& slots = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      plan(rank, slots[i].first, static_cast<std::int32_t>(i));
      if (slots[i].second) plan(rank, *slots[i].second, static_cast<std::int32_t>(i));
    }
  }
  std::vector<Channel> result;
  for (auto& [key, messages] : channels) {
    const auto& [source, destination, backward] = key;
    result.push_back({source, destination, backward, std::move(messages)});
  }
  return result;
}

std::string OvertakingMessage(const PipelineSchedule& schedule) {
  for (const Channel& channel : PlanChannels(schedule)) {
    const auto consumer = [&](const Message& message) {
      const schedules::Slot& slot =
          schedule.ranks[static_cast<std::size_t>(channel.destination)]
                        [static_cast<std::size_t>(message.destination_slot)];
      const bool first = (slot.first.kind != ActionKind::kForward) == channel.backward;
      return ToString(first || !slot.second ? slot.first : *slot.second, schedule.slices > 1);
    };
    for (std::size_t k = 1; k < channel.messages.size(); ++k) {
      const Message& sent_first = channel.messages[k - 1];
      const Message& overtakes = channel.messages[k];
      if (overtakes.destination_slot >= sent_first.destination_slot) continue;
      return fmt::format(
          "rank {0} runs {1} before {2} and waits for its input first, but rank {3} sends that of "
          "{2} before that of {1}",
          channel.destination, consumer(overtakes), consumer(sent_first), channel.source);
    }
  }
  return "";
}

}  // namespace quadrille::program
