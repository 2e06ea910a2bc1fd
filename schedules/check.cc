// Completeness first, then each rank's own causality, then deadlock: each step assumes what the one
// before established, so a later one runs only when the earlier ones found nothing.
//
// Invariants:
// 1. Every (stage, microbatch, slice) gets one F and either one B or one I and one W; `seen` holds
// which were met so far.
// 2. On its own rank, an action comes after what it needs of the same stage; the halves of a pair
// need nothing of each
//    other, because a pair waits for all inputs before it starts.

#include "schedules/check.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "schedules/dependencies.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

constexpr std::size_t kMaxProblems = 50;

// Keeps the first kMaxProblems and counts the rest.
class Problems {
 public:
  void Add(std::string message, ProblemKind kind = ProblemKind::kWrongInput) {
    if (list_.size() < kMaxProblems) {
      list_.push_back(Diagnostic{{}, std::move(message), kind});
    } else {
      ++more_;
    }
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] Diagnostics Take() {
    if (more_ > 0) {
      // The list holds problems of one kind: an order is walked only when it is well formed.
      list_.push_back({{}, fmt::format("... and {} more problems", more_), list_.front().kind});
    }
    return std::move(list_);
  }

 private:
  Diagnostics list_;
  std::size_t more_ = 0;
};

constexpr std::uint8_t Bit(ActionKind kind) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
}
constexpr std::uint8_t kF = Bit(ActionKind::kForward);
constexpr std::uint8_t kB = Bit(ActionKind::kBackward);
constexpr std::uint8_t kI = Bit(ActionKind::kBackwardInput);
constexpr std::uint8_t kW = Bit(ActionKind::kBackwardWeight);

void CheckShape(const PipelineSchedule& schedule, Problems& problems) {
  if (schedule.pipeline < 1 || schedule.microbatches < 1 || schedule.virtual_stages < 1 ||
      schedule.slices < 1) {
    problems.Add(fmt::format(
        "pipeline ranks ({}), microbatches ({}), virtual stages ({}) and slices ({}) must be at "
        "least 1",
        schedule.pipeline, schedule.microbatches, schedule.virtual_stages, schedule.slices));
    return;
  }
  if (schedule.ranks.size() != static_cast<std::size_t>(schedule.pipeline)) {
    problems.Add(fmt::format("orders for {} ranks, but there are {} pipeline ranks",
                             schedule.ranks.size(), schedule.pipeline));
  }
  if (schedule.placement == Placement::kBidirectional) {
    if (schedule.virtual_stages != 2) {
      problems.Add(fmt::format("a bidirectional schedule has 2 chunks per rank, not {}",
                               schedule.virtual_stages));
    }
    if (schedule.microbatches_down > schedule.microbatches) {
      problems.Add(fmt::format("{} of {} microbatches enter at rank 0", schedule.microbatches_down,
                               schedule.microbatches));
    }
  }
}

class OrderCheck {
 public:
  OrderCheck(const PipelineSchedule& schedule, Problems& problems)
      : schedule_(schedule), problems_(problems), index_(schedule), seen_(index_.size()) {}

  void Run() {
    for (std::int32_t rank = 0; rank < schedule_.pipeline; ++rank) {
      for (const Slot& slot : schedule_.ranks[static_cast<std::size_t>(rank)]) {
        CheckSlot(rank, slot);
      }
    }
    for (std::int32_t rank = 0; rank < schedule_.pipeline; ++rank) CheckComplete(rank);
  }

 private:
  [[nodiscard]] std::string Name(const Action& action) const {
    return ToString(action, schedule_.slices > 1);
  }

  void CheckSlot(std::int32_t rank, const Slot& slot) {
    const bool first = InRange(rank, slot.first);
    const bool second = slot.second && InRange(rank, *slot.second);
    // Both halves against what came before the slot, then both are entered.
    if (first) CheckCausal(rank, slot.first);
    if (second) CheckCausal(rank, *slot.second);
    if (first) Enter(rank, slot.first);
    if (second) Enter(rank, *slot.second);
  }

  bool InRange(std::int32_t rank, const Action& action) {
    const std::int32_t chunk = action.chunk.value();
    const std::int32_t microbatch = action.microbatch.value();
    if (chunk < 0 || chunk >= schedule_.virtual_stages) {
      problems_.Add(fmt::format("rank {}: {} is of chunk {}, but there are {}", rank, Name(action),
                                chunk, schedule_.virtual_stages));
      return false;
    }
    if (microbatch < 0 || microbatch >= schedule_.microbatches_of(action.chunk)) {
      problems_.Add(fmt::format("rank {}: {} is of microbatch {}, but there are {}", rank,
                                Name(action), microbatch, schedule_.microbatches_of(action.chunk)));
      return false;
    }
    if (action.slice < 0 || action.slice >= schedule_.slices) {
      problems_.Add(fmt::format("rank {}: {} is of slice {}, but there are {}", rank,
                                ToString(action, true), action.slice, schedule_.slices));
      return false;
    }
    return true;
  }

  [[nodiscard]] std::uint8_t& Seen(std::int32_t rank, const Action& action) {
    return seen_[index_.Of(schedule_.StageOf(rank, action.chunk), action)];
  }
  [[nodiscard]] std::uint8_t Seen(std::int32_t rank, Action action, std::int32_t slice) {
    action.slice = slice;
    return Seen(rank, action);
  }

  void Require(bool present, std::int32_t rank, const Action& action, Action needed) {
    if (!present) {
      problems_.Add(
          fmt::format("rank {}: {} does not come after {}", rank, Name(action), Name(needed)));
    }
  }

  void CheckCausal(std::int32_t rank, const Action& action) {
    const std::uint8_t seen = Seen(rank, action);
    Action needed = action;
    if (action.kind == ActionKind::kBackwardWeight) {
      needed.kind = ActionKind::kBackwardInput;
      Require((seen & kI) != 0, rank, action, needed);
      return;
    }
    if (action.kind == ActionKind::kForward) {
      needed.slice = action.slice - 1;
      if (needed.slice >= 0) {
        Require((Seen(rank, action, needed.slice) & kF) != 0, rank, action, needed);
      }
      return;
    }
    needed.slice = action.slice + 1;
    if (needed.slice < schedule_.slices) {
      Require((Seen(rank, action, needed.slice) & (kB | kI)) != 0, rank, action, needed);
    }
    needed.kind = ActionKind::kForward;
    needed.slice = action.slice;
    Require((seen & kF) != 0, rank, action, needed);
  }

  void Enter(std::int32_t rank, const Action& action) {
    std::uint8_t& seen = Seen(rank, action);
    const std::uint8_t bit = Bit(action.kind);
    if ((seen & bit) != 0) {
      problems_.Add(fmt::format("rank {}: {} occurs more than once", rank, Name(action)));
    }
    const std::uint8_t before = seen;
    seen = static_cast<std::uint8_t>(seen | bit);
    const bool was_mixed = (before & kB) != 0 && (before & (kI | kW)) != 0;
    if (!was_mixed && (seen & kB) != 0 && (seen & (kI | kW)) != 0) {
      problems_.Add(fmt::format("rank {}: {} has both a full backward B and a split one", rank,
                                Name(action)));
    }
  }

  void CheckComplete(std::int32_t rank) {
    for (std::int32_t chunk = 0; chunk < schedule_.virtual_stages; ++chunk) {
      for (std::int32_t m = 0; m < schedule_.microbatches_of(ChunkId(chunk)); ++m) {
        for (std::int32_t slice = 0; slice < schedule_.slices; ++slice) {
          CheckComplete(rank, {ActionKind::kForward, MicrobatchId(m), ChunkId(chunk), slice});
        }
      }
    }
  }

  void CheckComplete(std::int32_t rank, Action action) {
    const std::uint8_t seen = Seen(rank, action);
    const auto missing = [&](ActionKind kind) {
      action.kind = kind;
      problems_.Add(fmt::format("rank {}: {} is missing", rank, Name(action)));
    };
    if ((seen & kF) == 0) missing(ActionKind::kForward);
    if ((seen & (kB | kI | kW)) == 0) {
      missing(ActionKind::kBackward);
    } else if ((seen & kB) == 0) {
      if ((seen & kI) == 0) missing(ActionKind::kBackwardInput);
      if ((seen & kW) == 0) missing(ActionKind::kBackwardWeight);
    }
  }

  const PipelineSchedule& schedule_;
  Problems& problems_;
  ActionIndex index_;
  std::vector<std::uint8_t> seen_;
};

}  // namespace

Diagnostics CheckSchedule(const PipelineSchedule& schedule) {
  Problems problems;
  CheckShape(schedule, problems);
  if (!problems.empty()) return problems.Take();
  OrderCheck(schedule, problems).Run();
  if (!problems.empty()) return problems.Take();
  const auto stuck =
      OrderWalk(schedule, /*serial_pairs=*/false).Run([](std::int32_t, std::size_t, int) {});
  for (const BlockedRank& blocked : stuck) {
    problems.Add(ToString(blocked, schedule), ProblemKind::kCannotRun);
  }
  return problems.Take();
}

}  // namespace quadrille::schedules
