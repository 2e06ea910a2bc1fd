// The state of a sweep and the class that advances it. Internal to the runtime module;
// static_evaluator.h says what it does.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/base/result.h"
#include "sim/runtime/condition.h"
#include "sim/runtime/executor.h"

namespace quadrille::runtime {

// Who moves together. Times never decide what a sweep does next, only counters do, and those are
// the same for all ranks of one program.
enum class Columns : std::uint8_t { kPerProgram, kPerRank };

class Sweep {
 public:
  // Ranks begin at `begins`, or all at 0 where it is empty.
  Sweep(const program::Program& program, const Machine& machine, const RunOptions& options,
        const std::vector<Duration>& begins, Columns columns);

  // Sweeps all lanes; whether each came to its end, within kLongestStep.
  bool Run();
  [[nodiscard]] bool too_long() const { return too_long_; }
  // REQUIRES: Run returned true. The result is moved out.
  [[nodiscard]] program::RunResult Conclude();

 private:
  static constexpr std::uint32_t kChunkNumbers = 1024;  // of 8 bytes: a quarter of an L1 cache
  static constexpr std::int32_t kOneChunk = 31;         // a shift that leaves nothing
  static constexpr std::int64_t kNobodyYet = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int32_t kUnawaited = std::numeric_limits<std::int32_t>::max();

  // One lane of all ranks of a column.
  struct Lane {
    const program::Instruction* next = nullptr;
    const program::Instruction* end = nullptr;
    const program::Template* body = nullptr;
    const std::int32_t* base = nullptr;
    const program::LaneRun* run = nullptr;
    const program::LaneRun* run_end = nullptr;
    std::uint32_t first_chunk = 0;  // of its rows in chunks_
    std::uint64_t waiters = 0;      // lanes of the column blocked on this one
    std::int32_t done = 0;
    std::int32_t target = 0;              // count that this lane is blocked on
    std::int32_t next_wake = kUnawaited;  // smallest target of the lanes blocked on this one
    std::uint32_t column = 0;
    std::uint32_t meeting = 0;  // of a communicator
    std::uint32_t groups = 0;   // into group_of_slot_: its ranks' groups
    program::LaneIndex index = 0;
    bool posted = false;
  };

  // What an action does to its lanes, relative to its begin, when all of them are at rest then and
  // no other rank takes part: the same every time, so it is swept once and added from then on.
  struct ActionMemo {
    bool eligible = false;
    std::vector<std::int64_t> ends;  // by lane, then instruction; empty until first swept
  };

  // Consecutive rows of a lane. A row holds when one completion ended on each rank of the column.
  struct Chunk {
    std::int64_t* rows =
        nullptr;  // picoseconds; null before the first is written and after the last read
    std::int32_t reads = 0;  // still to come
  };

  // Ranks that run one program, side by side.
  struct Column {
    const program::RankProgram* program = nullptr;
    std::int32_t chunk_shift = 0;  // a chunk holds 2^chunk_shift rows
    std::uint32_t first_lane = 0;
    std::uint32_t first_slot = 0;
    std::uint32_t width = 0;
    bool nominal = true;            // kernels take their nominal time on every rank
    bool recording = false;         // the action under way began with all its lanes at rest
    std::vector<ActionMemo> memos;  // by template
  };

  // One rank at its place in its column.
  struct Slot {
    std::uint32_t rank = 0;    // into Program::ranks
    std::uint32_t entity = 0;  // its first lane in a run of all ranks, for the fingerprint
    std::int64_t begin = 0;
    std::int64_t host_shift = 0;
    RankCondition condition;
    std::vector<Duration> launch_delays{};  // by segment; empty without launch jitter

    [[nodiscard]] std::int64_t LaunchDelay(std::uint32_t segment) const {
      return launch_delays.empty() ? 0 : launch_delays[segment].count();
    }
  };

  // Lanes whose k-th transfers complete together: those that share a group, directly or by others.
  struct Meeting {
    std::vector<std::uint32_t> lanes;
    std::vector<std::uint32_t> groups;
    std::uint32_t arrived = 0;
  };

  // ---- set-up (sweep_setup.cc) ----
  void PrepareColumns(const std::vector<Duration>& begins, Columns columns);
  void PrepareLanes();
  void PrepareRows(Column& column);
  void CountWaits(const Column& column);
  void PrepareMeetings();

  // ---- advance (static_evaluator.cc) ----
  Lane& LaneAt(const Column& column, program::LaneIndex index) {
    return lanes_[column.first_lane + index];
  }
  [[nodiscard]] Chunk& ChunkOf(const Lane& lane, std::int32_t completion) {
    return chunks_[lane.first_chunk +
                   static_cast<std::uint32_t>(completion >> columns_[lane.column].chunk_shift)];
  }
  // Row `completion` (from 0) of a lane. REQUIRES: written or next to be, and not read for the last
  // time.
  [[nodiscard]] std::int64_t* Row(const Lane& lane, std::int32_t completion) {
    const Column& column = columns_[lane.column];
    const std::uint32_t within =
        static_cast<std::uint32_t>(completion) & ((1U << column.chunk_shift) - 1U);
    return ChunkOf(lane, completion).rows + std::size_t{within} * column.width;
  }
  // All ends of a lane. REQUIRES: its column is one rank.
  [[nodiscard]] std::int64_t* History(const Lane& lane) const {
    return chunks_[lane.first_chunk].rows;
  }
  // The row of the lane's next completion.
  std::int64_t* NewRow(const Lane& lane) {
    Chunk& chunk = ChunkOf(lane, lane.done);
    if (chunk.rows == nullptr) chunk.rows = TakeChunk();
    return Row(lane, lane.done);
  }
  std::int64_t* TakeChunk();
  // A row has been read; a chunk whose rows have all been is free for other rows.
  void Release(const Lane& lane, std::int32_t completion) {
    Chunk& chunk = ChunkOf(lane, completion);
    if (--chunk.reads == 0) free_chunks_.push_back(std::exchange(chunk.rows, nullptr));
  }
  void EnterNextRun(Lane& lane);
  bool Met(Lane& lane, program::LaneIndex on, std::int32_t count);
  bool WaitsMet(Lane& lane);
  void Advance(Lane& lane);
  // When the next instruction starts, into its row of the history.
  std::int64_t* Start(const Lane& lane);
  void AwaitLaunch(const Lane& lane, std::int64_t* starts);
  void AddKernelTime(const Lane& lane, std::int64_t* times) const;
  void Mark(const Lane& lane, const std::int64_t* times);
  void Post(Lane& lane, const std::int64_t* starts);
  void Meet(Meeting& meeting, std::uint32_t shape);
  // Times of the operation under way, when they are kept.
  [[nodiscard]] program::OperationTimes::Span& TimesOf(const Lane& lane, std::uint32_t slot);
  void KeepStarts(const Lane& lane, const std::int64_t* starts);
  void KeepMeeting(const Lane& lane);
  void Complete(Lane& lane, const std::int64_t* ends);
  void WakeWaiters(Lane& lane);

  // ---- actions that repeat (action_memo.cc) ----
  [[nodiscard]] bool Eligible(const Column& column, const program::Template& body) const;
  [[nodiscard]] bool AtRest(const Column& column, std::uint32_t segment, std::int64_t begin);
  bool Recall(Column& column, std::int64_t begin);
  void Memorise(Column& column);

  const program::Program& program_;
  const Machine& machine_;
  const RunOptions& options_;
  std::vector<Column> columns_;
  std::vector<Slot> slots_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> group_of_slot_;
  std::vector<Meeting> meetings_;
  std::vector<GroupCondition> conditions_;  // by group
  std::vector<std::int64_t> latest_;        // by group: the last post of the transfer that gathers
  std::vector<Chunk> chunks_;
  std::vector<std::unique_ptr<std::int64_t[]>> storage_;  // of rows; written before it is read
  std::vector<std::int64_t*> free_chunks_;                // of columns wider than one rank
  std::size_t chunk_numbers_ = kChunkNumbers;
  struct Awaited {
    const Lane* lane = nullptr;
    std::int32_t completion = 0;
  };
  std::vector<Awaited> awaited_;      // what the next instruction waits for
  std::vector<std::uint32_t> ready_;  // lanes
  bool launches_bind_ = false;
  bool too_long_ = false;
  Fingerprint fingerprint_;
  program::RunResult result_;
};

}  // namespace quadrille::runtime
