// The chain of operations that bounds a step, and the record of times that it is found from.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.h"
#include "sim/program/program.h"

namespace quadrille::program {

// Start and end of every operation of every lane.
class OperationTimes {
 public:
  struct Span {
    TimePoint start;
    TimePoint end;
  };

  OperationTimes() = default;
  explicit OperationTimes(const Program& program);

  [[nodiscard]] bool empty() const { return spans_.empty(); }
  // The operation after `position` completions of the lane. REQUIRES: position < the lane's total.
  [[nodiscard]] Span& At(std::uint32_t rank, LaneIndex lane, std::int32_t position) {
    return spans_[first_[first_lane_[rank] + lane] + static_cast<std::size_t>(position)];
  }
  [[nodiscard]] const Span& At(std::uint32_t rank, LaneIndex lane, std::int32_t position) const {
    return spans_[first_[first_lane_[rank] + lane] + static_cast<std::size_t>(position)];
  }

 private:
  std::vector<std::uint32_t> first_lane_;  // by rank
  std::vector<std::size_t> first_;         // by lane, all ranks in order
  std::vector<Span> spans_;
};

// Operations of all lanes of all simulated ranks: how many spans OperationTimes keeps.
[[nodiscard]] std::int64_t CountOperations(const Program& program);

enum class PathKind : std::uint8_t {
  kKernel,
  kTransfer,
  kHost,     // the host launches what precedes the next operation, and that operation
  kWaiting,  // nothing in the program explains the time
};

// One link of the chain, on the rank where it was followed.
struct PathStep {
  PathKind kind = PathKind::kKernel;
  LaneIndex lane = 0;
  std::int16_t layer = -1;
  std::uint16_t operation = 0;  // index into RankProgram::operations; kHost: what is launched
  std::uint32_t rank = 0;       // index into Program::ranks
  std::uint32_t segment = 0;
  std::int32_t position = 0;  // completions of the lane before it
  TimePoint start;
  TimePoint end;
  Duration alone{0};    // what it takes with nothing beside it; the rest of its time is slow-down
  Duration latency{0};  // kTransfer: the part of `alone` in which nothing moves
};

// Steps in order of time, none of zero length, each beginning where the one before ends; from the
// start of the run to its end.
using CriticalPath = std::vector<PathStep>;

}  // namespace quadrille::program
