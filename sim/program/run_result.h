// What a run of a program says happened: exact accounts per simulated rank, and records of single
// operations on request.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/program/critical_path.h"
#include "sim/program/program.h"

namespace quadrille::program {

// At each instant a rank is in exactly one state: the first of these that matches its compute lane.
enum class RankState : std::uint8_t {
  kCompute,        // a kernel of the model runs
  kOptimizer,      // gradient zeroing, norm, optimizer step, fixed work of a step
  kExposedTensor,  // blocked on a running transfer, by the kind of the binding wait
  kExposedContext,
  kExposedExpert,
  kExposedPipeline,
  kExposedData,
  kSkew,          // inside an action, blocked on a peer that has not started
  kBubbleWarmup,  // outside any action: before the rank's first backward
  kBubbleSteady,
  kBubbleCooldown,  // after its last forward
  kBubbleBarrier,   // after its last action: waiting for others at the optimizer
  kHost,            // the next kernel is not launched yet
  kOther,           // done before the step's last rank, and what no rule above explains
};
inline constexpr std::size_t kRankStates = 14;
[[nodiscard]] std::string_view NameOf(RankState state);

struct ActionSpan {
  TimePoint begin;
  TimePoint end;
};

struct LaneAccount {
  Duration busy{0};  // transfers running, start to end
  Bytes bytes;       // bus-normalised bytes moved
  std::int64_t operations = 0;
};

struct RankResult {
  std::array<Duration, kRankStates> states{};
  TimePoint begin;  // 0, unless steps overlap: when its part of the step before was over
  TimePoint end;    // of its last operation
  std::vector<LaneAccount> lanes;
  std::vector<ActionSpan> spans;  // by segment of its program
  FlopCount flops;
};

struct RunResult {
  TimePoint end;                  // of the last rank
  std::vector<RankResult> ranks;  // by Program::ranks
  std::uint64_t fingerprint = 0;
  std::int64_t operations = 0;  // completed instructions that take part on a lane
  std::int64_t events = 0;      // popped from the queue
  std::int64_t solves = 0;      // of shared links
  OperationTimes times;         // when asked for, else empty

  // How long the step takes: from the begin of the rank that takes longest to its end. Where steps
  // overlap that is the time from the end of one on a rank to the end of the next.
  [[nodiscard]] Duration step() const;
};

struct OpRecord {
  std::uint32_t rank = 0;  // index into Program::ranks
  LaneIndex lane = 0;
  std::uint16_t operation = 0;
  std::int16_t layer = -1;
  std::uint32_t segment = 0;
  TimePoint posted;  // ready on this rank
  TimePoint start;
  TimePoint end;
  Bytes bytes;                 // of a transfer
  std::uint32_t position = 0;  // how many completions of the lane came before
};

// Receives records of the ranks that were asked for, in order of their end, in blocks.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void Consume(std::span<const OpRecord> records) = 0;
};

}  // namespace quadrille::program
