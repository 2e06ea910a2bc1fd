// The event list: a 4-ary heap over one 128-bit key.
//
// An event is its key and nothing else: (time, phase, entity, generation), ordered by content.
// Insertion order plays no part, so adding an unrelated event never reorders others. Handlers read
// arrays indexed by the entity. Four children per node halve the depth of a binary heap and share a
// cache line; at the 16 to 10^4 pending events of a run this beats every other comparison queue
// measured, std::priority_queue included (bench/event_queue_bench.cc).
//
// Invariants: (1) keys_[i] <= keys_[4i+1 .. 4i+4]; (2) times are non-negative, so the time's 64
// bits order as unsigned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/time.h"

namespace quadrille::engine {

// What happens first within one instant.
enum class Phase : std::uint8_t {
  kFault = 0,       // perturbations take effect
  kCompletion = 1,  // operations and transfers end
  kStart = 2,       // operations that became ready begin
  kSolve = 3,       // the network shares its links anew, at most once per instant
  kSample = 4,
};

// Dense index of whatever the event is about: a lane of a rank, a process group, a timer.
using EntityIndex = std::uint32_t;

struct Event {
  TimePoint time;
  Phase phase = Phase::kCompletion;
  EntityIndex entity = 0;
  // Tells a superseded event from the current one after a change of rate; 24 bits.
  std::uint32_t generation = 0;
};

inline constexpr std::uint32_t kGenerationMask = 0xffffff;

class EventQueue {
 public:
  // Two words that compare as the 128-bit number time:64 | phase:8 | entity:32 | generation:24.
  __extension__ using Key = unsigned __int128;

  [[nodiscard]] static Key Pack(const Event& event) {
    const auto time = static_cast<std::uint64_t>(event.time.time_since_epoch().count());
    const std::uint64_t rest = (static_cast<std::uint64_t>(event.phase) << 56) |
                               (static_cast<std::uint64_t>(event.entity) << 24) |
                               (event.generation & kGenerationMask);
    return (static_cast<Key>(time) << 64) | rest;
  }
  [[nodiscard]] static Event Unpack(Key key) {
    const auto rest = static_cast<std::uint64_t>(key);
    return {TimePoint(Duration(static_cast<std::int64_t>(key >> 64))),
            static_cast<Phase>(rest >> 56), static_cast<EntityIndex>((rest >> 24) & 0xffffffffu),
            static_cast<std::uint32_t>(rest & kGenerationMask)};
  }

  [[nodiscard]] bool empty() const { return keys_.empty(); }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void Reserve(std::size_t events) { keys_.reserve(events); }

  // REQUIRES: event.time >= 0.
  void Push(const Event& event) {
    keys_.push_back(Pack(event));
    SiftUp(keys_.size() - 1, keys_.back());
  }

  // The earliest event. REQUIRES: not empty.
  [[nodiscard]] Event Top() const { return Unpack(keys_.front()); }
  [[nodiscard]] Key TopKey() const { return keys_.front(); }

  // REQUIRES: not empty.
  void Pop() {
    const Key last = keys_.back();
    keys_.pop_back();
    if (!keys_.empty()) SiftDown(last);
  }

  // Pop and Push in one descent: what a lane does that goes from one operation to the next.
  // REQUIRES: not empty.
  void ReplaceTop(const Event& event) { SiftDown(Pack(event)); }

 private:
  void SiftUp(std::size_t hole, Key key) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (keys_[parent] <= key) break;
      keys_[hole] = keys_[parent];
      hole = parent;
    }
    keys_[hole] = key;
  }

  // Moves `key` down from the root to its place.
  void SiftDown(Key key) {
    const std::size_t size = keys_.size();
    std::size_t hole = 0;
    while (true) {
      const std::size_t first = 4 * hole + 1;
      if (first >= size) break;
      std::size_t best = first;
      Key best_key = keys_[first];
      const std::size_t end = first + 4 < size ? first + 4 : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (keys_[child] < best_key) {
          best = child;
          best_key = keys_[child];
        }
      }
      if (key <= best_key) break;
      keys_[hole] = best_key;
      hole = best;
    }
    keys_[hole] = key;
  }

  std::vector<Key> keys_;
};

}  // namespace quadrille::engine
