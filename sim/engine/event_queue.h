// The event list: a 4-ary heap of chains over one 128-bit key.
//
// An event is its key and nothing else: (time, phase, entity, generation), ordered by content.
// Insertion order plays no part, so adding an unrelated event never reorders others. Handlers read
// arrays indexed by the entity. Four children per node halve the depth of a binary heap and share a
// cache line; at the 16 to 10^4 pending events of a run this beats every other comparison queue
// measured, std::priority_queue included (bench/event_queue_bench.cc).
//
// Ranks that do the same end at the same instant and are pushed one after the other, in order. Such
// an event joins the chain that the one before it ended, and only the first of a chain is in the
// heap: the heap holds distinct instants rather than ranks, and popping down a chain rarely moves
// anything.
//
// Invariants: (1) keys_[i] <= keys_[4i+1 .. 4i+4]; (2) times are non-negative, so the time's 64
// bits order as unsigned; (3) the keys of a chain ascend and share one instant; its first is in the
// heap, with the index of its link beside it.
#pragma once

#include <array>
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
  [[nodiscard]] std::size_t size() const { return size_; }

  // REQUIRES: event.time >= 0.
  void Push(const Event& event) { Push(Pack(event)); }
  void Push(Key key) {
    ++size_;
    if (JoinsChain(key)) return;
    keys_.push_back(key);
    heads_.push_back(OpenChainOf(key));
    SiftUp(keys_.size() - 1, key, heads_.back());
  }

  // The earliest event. REQUIRES: not empty.
  [[nodiscard]] Event Top() const { return Unpack(keys_.front()); }
  [[nodiscard]] Key TopKey() const { return keys_.front(); }

  // REQUIRES: not empty.
  void Pop() {
    --size_;
    RefillTop(Release(heads_.front()));
  }

  // Pop and Push in one descent: what a lane does that goes from one operation to the next.
  // REQUIRES: not empty.
  void ReplaceTop(const Event& event) { ReplaceTop(Pack(event)); }
  void ReplaceTop(Key key) {
    const LinkIndex next = Release(heads_.front());
    if (JoinsChain(key)) {
      RefillTop(next);
    } else if (next == kNone) {
      SiftDown(key, OpenChainOf(key));
    } else {
      SiftDown(links_[next].key, next);
      --size_;
      Push(key);
    }
  }

 private:
  using LinkIndex = std::uint32_t;
  static constexpr LinkIndex kNone = ~LinkIndex{0};
  // Kernels and transfers of one class end at two instants; a third keeps the next class apart.
  static constexpr std::size_t kOpenChains = 3;

  struct Link {
    Key key = 0;
    LinkIndex next = kNone;  // of the chain, or of the free list
  };
  struct OpenChain {
    Key last = 0;
    LinkIndex tail = kNone;
  };

  static bool SameInstant(Key a, Key b) { return (a >> 64) == (b >> 64); }

  LinkIndex NewLink(Key key) {
    if (free_ == kNone) {
      links_.push_back({key, kNone});
      return static_cast<LinkIndex>(links_.size() - 1);
    }
    const LinkIndex link = free_;
    free_ = links_[link].next;
    links_[link] = {key, kNone};
    return link;
  }

  // Whether the event of `key` follows one that was pushed lately at its instant; it is then
  // pending.
  bool JoinsChain(Key key) {
    for (OpenChain& chain : open_) {
      if (!SameInstant(key, chain.last) || key < chain.last || chain.tail == kNone) continue;
      const LinkIndex link = NewLink(key);
      links_[chain.tail].next = link;
      chain = {key, link};
      return true;
    }
    return false;
  }

  // A link for an event that goes into the heap, and that others may join behind.
  LinkIndex OpenChainOf(Key key) {
    const LinkIndex link = NewLink(key);
    open_[oldest_] = {key, link};
    oldest_ = (oldest_ + 1) % kOpenChains;
    return link;
  }

  // The root is free; `next` is what followed it in its chain.
  void RefillTop(LinkIndex next) {
    if (next != kNone) {
      SiftDown(links_[next].key, next);
      return;
    }
    const Key last = keys_.back();
    const LinkIndex link = heads_.back();
    keys_.pop_back();
    heads_.pop_back();
    if (!keys_.empty()) SiftDown(last, link);
  }

  // Frees the link of a chain's first event and returns the one behind it.
  LinkIndex Release(LinkIndex link) {
    const LinkIndex next = links_[link].next;
    if (next == kNone) {
      for (OpenChain& chain : open_) {
        if (chain.tail == link) chain.tail = kNone;
      }
    }
    links_[link].next = free_;
    free_ = link;
    return next;
  }

  void SiftUp(std::size_t hole, Key key, LinkIndex link) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (keys_[parent] <= key) break;
      Set(hole, keys_[parent], heads_[parent]);
      hole = parent;
    }
    Set(hole, key, link);
  }

  // Moves `key` down from the root to its place.
  void SiftDown(Key key, LinkIndex link) {
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
      Set(hole, best_key, heads_[best]);
      hole = best;
    }
    Set(hole, key, link);
  }

  void Set(std::size_t at, Key key, LinkIndex link) {
    keys_[at] = key;
    heads_[at] = link;
  }

  std::vector<Key> keys_;         // of each chain's first event
  std::vector<LinkIndex> heads_;  // and its link
  std::vector<Link> links_;
  LinkIndex free_ = kNone;
  std::array<OpenChain, kOpenChains> open_{};
  std::size_t oldest_ = 0;
  std::size_t size_ = 0;
};

}  // namespace quadrille::engine
