// A pipeline schedule is data: a placement of stages on pipeline ranks and, per rank, an ordered
// list of actions.
//
// It knows no seconds and no GPUs. Phases such as warm-up, steady state and cool-down are how some
// generators think; the value itself, and everything that consumes it, has no notion of them.
// Dependencies are implied by the actions: F of a stage after F of the stage before it; I or B
// after the own F and after I or B of the next stage; W after the own I; with sequence slices also
// F(q) after F(q-1) and B(q) after B(q+1) of the same stage and microbatch.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"

namespace quadrille::schedules {

enum class ActionKind : std::uint8_t {
  kForward,         // F
  kBackward,        // B: input and weight gradient together
  kBackwardInput,   // I: input gradient only
  kBackwardWeight,  // W: weight gradient only
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  MicrobatchId microbatch;  // per direction under Placement::kBidirectional
  ChunkId chunk;            // local virtual stage; 0 is the shallowest, except under kBidirectional
  std::int32_t slice = 0;   // sequence slice, 0-based

  constexpr auto operator<=>(const Action&) const = default;
};

// One place in a rank's order: an action, or a fused pair that waits for both inputs before it
// starts and releases both outputs when it ends.
struct Slot {
  Action first;
  std::optional<Action> second;

  constexpr auto operator<=>(const Slot&) const = default;
};

enum class Placement : std::uint8_t {
  kLoop,           // stage = chunk * P + rank
  kV,              // even chunks: chunk * P + rank; odd chunks: chunk * P + (P - 1 - rank)
  kBidirectional,  // two replicas: chunk 0 is stage rank ("down"), chunk 1 is stage P - 1 - rank
                   // ("up")
};

// What a fused pair costs when it is one operation.
enum class PairCost : std::uint8_t {
  kSum,     // one operation as long as both actions together
  kGiven,   // one operation of the stated duration
  kSerial,  // two operations one after the other, each with its own wait
};

// Durations of one chunk's actions (one slice's, where there are slices) and of one hop between
// different ranks. A backward lasts `backward` when whole. Generators that are built from costs
// receive this; all others ignore it.
struct TaskCosts {
  Duration forward{1'000'000'000'000};
  Duration backward{2'000'000'000'000};
  Duration backward_input{1'000'000'000'000};
  Duration backward_weight{1'000'000'000'000};
  Duration latency{0};
  PairCost pair_cost = PairCost::kSum;
  Duration pair{0};  // used when pair_cost is kGiven
};

// What a generator is asked for. Zero or empty means "the schedule's own default".
struct ScheduleRequest {
  std::int32_t pipeline = 1;  // P, pipeline ranks
  std::int32_t microbatches =
      1;  // M, per pipeline and step; both directions together when bidirectional
  std::int32_t virtual_stages = 0;  // v, chunks per rank
  std::int32_t group =
      0;  // N, microbatch group of interleaved schedules; kAutomaticGroup for PyTorch's rule
  std::int32_t slices = 0;  // Q, sequence slices
  std::int32_t waves = 0;
  std::int32_t memory_limit = 0;  // in stages (zb-auto) or chunks (v-auto)
  TaskCosts costs{};
};
inline constexpr std::int32_t kAutomaticGroup = -1;

struct PipelineSchedule {
  std::string name;
  std::int32_t pipeline = 1;        // P
  std::int32_t microbatches = 1;    // M, both directions together when bidirectional
  std::int32_t virtual_stages = 1;  // v: chunks per rank (2 when bidirectional)
  std::int32_t slices = 1;          // Q
  Placement placement = Placement::kLoop;
  // Bidirectional only: how many of M enter at rank 0; negative stands for half of them. Chimera
  // fills a unit's downward half first, so a last unit that is not full is lopsided.
  std::int32_t microbatches_down = -1;
  std::vector<std::vector<Slot>> ranks;  // ranks[r]: the order of pipeline rank r

  // Stages that a microbatch passes: v * P, or P when bidirectional.
  [[nodiscard]] std::int32_t stage_count() const {
    return placement == Placement::kBidirectional ? pipeline : pipeline * virtual_stages;
  }
  // Microbatches that pass `chunk`: M, or those of the chunk's direction when bidirectional.
  [[nodiscard]] std::int32_t microbatches_of(ChunkId chunk) const {
    if (placement != Placement::kBidirectional) return microbatches;
    const std::int32_t down = microbatches_down < 0 ? (microbatches + 1) / 2 : microbatches_down;
    return chunk.value() == 0 ? down : microbatches - down;
  }
  // The larger of microbatches_of over the directions: a bound for every microbatch index.
  [[nodiscard]] std::int32_t microbatches_per_direction() const {
    const std::int32_t down = microbatches_of(ChunkId(0));
    const std::int32_t up = microbatches_of(ChunkId(1));
    return down > up ? down : up;
  }
  // Of an order that runs its chunks in groups of microbatches, the group: how many forwards of
  // chunk 0 rank 0 runs before the first of chunk 1.
  [[nodiscard]] std::int32_t microbatch_group() const;
  // The global stage of `chunk` on pipeline rank `rank`.
  [[nodiscard]] StageId StageOf(std::int32_t rank, ChunkId chunk) const;
  // The pipeline rank that holds `stage` of the direction that `chunk` belongs to (chunk matters
  // only when bidirectional).
  [[nodiscard]] std::int32_t RankOf(StageId stage, ChunkId chunk) const;
  // The local chunk of `stage` on its rank; `chunk` names the direction when bidirectional and is
  // returned as it is.
  [[nodiscard]] ChunkId ChunkOf(StageId stage, ChunkId chunk) const;
};

}  // namespace quadrille::schedules
