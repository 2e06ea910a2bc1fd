#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

namespace quadrille::engine {
namespace {

// The order of events, written out independently of the queue's packed key.
using Content = std::tuple<std::int64_t, int, std::uint32_t, std::uint32_t>;

Content ContentOf(const Event& event) {
  return {event.time.time_since_epoch().count(), static_cast<int>(event.phase), event.entity,
          event.generation};
}

Event MakeEvent(std::int64_t picoseconds, Phase phase = Phase::kCompletion, EntityIndex entity = 0,
                std::uint32_t generation = 0) {
  return {TimePoint(Duration(picoseconds)), phase, entity, generation};
}

// The queue under test beside std::priority_queue; every operation is done on both and compared.
class Pair {
 public:
  void Push(const Event& event) {
    queue_.Push(event);
    oracle_.push(ContentOf(event));
    Compare();
  }
  void Pop() {
    queue_.Pop();
    oracle_.pop();
    Compare();
  }
  void ReplaceTop(const Event& event) {
    queue_.ReplaceTop(event);
    oracle_.pop();
    oracle_.push(ContentOf(event));
    Compare();
  }
  void Drain() {
    while (!oracle_.empty() && !testing::Test::HasFatalFailure()) Pop();
  }
  [[nodiscard]] std::size_t size() const { return oracle_.size(); }
  [[nodiscard]] std::int64_t now() const { return std::get<0>(oracle_.top()); }

 private:
  void Compare() {
    ASSERT_EQ(queue_.size(), oracle_.size());
    ASSERT_EQ(queue_.empty(), oracle_.empty());
    if (!oracle_.empty()) {
      ASSERT_EQ(ContentOf(queue_.Top()), oracle_.top());
    }
  }

  EventQueue queue_;
  std::priority_queue<Content, std::vector<Content>, std::greater<>> oracle_;
};

// An event up to `spread` picoseconds after `now`; a small spread makes most times ties.
Event RandomEvent(std::mt19937_64& random, std::int64_t now, std::uint64_t spread) {
  return MakeEvent(now + static_cast<std::int64_t>(random() % spread),
                   static_cast<Phase>(random() % 5), static_cast<EntityIndex>(random() % 50),
                   static_cast<std::uint32_t>(random() % 3));
}

TEST(EventQueue, StartsEmpty) {
  const EventQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EventQueue, PackingKeepsEveryField) {
  for (std::int64_t time : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 40,
                            std::numeric_limits<std::int64_t>::max()}) {
    for (Phase phase :
         {Phase::kFault, Phase::kCompletion, Phase::kStart, Phase::kSolve, Phase::kSample}) {
      for (EntityIndex entity : {0u, 1u, 0x00ffffffu, 0xffffffffu}) {
        for (std::uint32_t generation : {0u, 1u, kGenerationMask}) {
          const Event event = MakeEvent(time, phase, entity, generation);
          EXPECT_EQ(ContentOf(EventQueue::Unpack(EventQueue::Pack(event))), ContentOf(event));
        }
      }
    }
  }
}

// A generation counter wraps at 24 bits and must not spill into the entity.
TEST(EventQueue, GenerationsWrapAt24Bits) {
  const Event event =
      EventQueue::Unpack(EventQueue::Pack(MakeEvent(5, Phase::kStart, 8, kGenerationMask + 3)));
  EXPECT_EQ(event.generation, 2u);
  EXPECT_EQ(event.entity, 8u);
}

// Keys compare as the content does, field by field, also where a field takes its extreme values.
TEST(EventQueue, KeysCompareAsContent) {
  std::vector<Event> events;
  for (std::int64_t time : {std::int64_t{0}, std::int64_t{1}, std::int64_t{0xffffffff},
                            std::int64_t{1} << 32, std::numeric_limits<std::int64_t>::max()}) {
    for (Phase phase : {Phase::kFault, Phase::kSample}) {
      for (EntityIndex entity : {0u, 1u, 0x80000000u, 0xffffffffu}) {
        for (std::uint32_t generation : {0u, 1u, kGenerationMask}) {
          events.push_back(MakeEvent(time, phase, entity, generation));
        }
      }
    }
  }
  for (const Event& a : events) {
    for (const Event& b : events) {
      ASSERT_EQ(EventQueue::Pack(a) < EventQueue::Pack(b), ContentOf(a) < ContentOf(b));
    }
  }
}

TEST(EventQueue, OrdersWithinAnInstantByPhaseEntityAndGeneration) {
  const std::vector<Event> in_order = {
      MakeEvent(10, Phase::kFault, 9),      MakeEvent(10, Phase::kCompletion, 2),
      MakeEvent(10, Phase::kCompletion, 3), MakeEvent(10, Phase::kCompletion, 3, 1),
      MakeEvent(10, Phase::kStart, 0),      MakeEvent(10, Phase::kSolve, 0),
      MakeEvent(10, Phase::kSample, 0),     MakeEvent(11, Phase::kFault, 0)};
  EventQueue queue;
  for (auto event = in_order.rbegin(); event != in_order.rend(); ++event) queue.Push(*event);
  for (const Event& expected : in_order) {
    EXPECT_EQ(ContentOf(queue.Top()), ContentOf(expected));
    EXPECT_EQ(queue.TopKey(), EventQueue::Pack(expected));
    queue.Pop();
  }
  EXPECT_TRUE(queue.empty());
}

// All 40,320 insertion orders of eight events, two of which are equal, leave in one order.
TEST(EventQueue, InsertionOrderPlaysNoPart) {
  const std::array<std::int64_t, 8> times = {0, 1, 1, 2, 3, 4, 5, 6};
  std::array<int, 8> order = {0, 1, 2, 3, 4, 5, 6, 7};
  do {
    EventQueue queue;
    for (int i : order) queue.Push(MakeEvent(times[static_cast<std::size_t>(i)]));
    for (std::int64_t expected : times) {
      ASSERT_EQ(queue.Top().time.time_since_epoch().count(), expected);
      queue.Pop();
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Sizes 1 to 100 meet every shape of the last family in the heap: one to four children.
TEST(EventQueue, SortsEverySizeAscendingDescendingAndMixed) {
  std::mt19937_64 random(1);
  for (std::int64_t size = 1; size <= 100; ++size) {
    Pair ascending;
    Pair descending;
    Pair mixed;
    for (std::int64_t i = 0; i < size; ++i) {
      ascending.Push(MakeEvent(i));
      descending.Push(MakeEvent(size - i));
      mixed.Push(RandomEvent(random, 0, 10));
    }
    ascending.Drain();
    descending.Drain();
    mixed.Drain();
    if (HasFatalFailure()) return;
  }
}

TEST(EventQueue, EqualEventsAllComeOut) {
  Pair pair;
  for (int i = 0; i < 1000; ++i) pair.Push(MakeEvent(7, Phase::kStart, 3, 1));
  pair.Drain();
}

struct Mix {
  int push_percent;
  int pop_percent;  // the rest replaces the top
  std::uint64_t spread;
};

// Random interleavings, from all ties to none, from growing to nearly empty.
TEST(EventQueue, AgreesWithPriorityQueueUnderRandomInterleavings) {
  for (const Mix& mix : {Mix{34, 33, 1}, Mix{34, 33, 4}, Mix{34, 33, 1'000'000}, Mix{60, 20, 100},
                         Mix{10, 10, 50}, Mix{25, 50, 1'000}, Mix{50, 50, 2}}) {
    std::mt19937_64 random(static_cast<std::uint64_t>(mix.push_percent) * 1000 + mix.spread);
    Pair pair;
    std::int64_t now = 0;
    for (int step = 0; step < 30'000 && !HasFatalFailure(); ++step) {
      const int choice = static_cast<int>(random() % 100);
      const Event event = RandomEvent(random, now, mix.spread);
      if (pair.size() == 0 || choice < mix.push_percent) {
        pair.Push(event);
      } else if (choice < mix.push_percent + mix.pop_percent) {
        now = pair.now();
        pair.Pop();
      } else {
        now = pair.now();
        pair.ReplaceTop(event);
      }
    }
    pair.Drain();
  }
}

// Fill and drain by turns, each new event earlier than all pending: the longest way up and down.
TEST(EventQueue, AgreesWhenEveryPushBecomesTheTop) {
  Pair pair;
  std::int64_t time = 1'000'000;
  for (int round = 0; round < 50 && !HasFatalFailure(); ++round) {
    for (int i = 0; i < 200; ++i) pair.Push(MakeEvent(--time));
    for (int i = 0; i < 150; ++i) pair.Pop();
  }
  pair.Drain();
}

// Replacing the top by a later event than all pending sends it to the bottom each time.
TEST(EventQueue, AgreesWhenEveryReplacementBecomesTheLast) {
  for (std::int64_t size : {1, 2, 4, 5, 6, 21, 22, 1000}) {
    Pair pair;
    for (std::int64_t i = 0; i < size; ++i) pair.Push(MakeEvent(i));
    for (std::int64_t i = 0; i < 3 * size && !HasFatalFailure(); ++i) {
      pair.ReplaceTop(MakeEvent(size + i));
    }
    pair.Drain();
  }
}

TEST(EventQueue, AReplacementMayStayOnTop) {
  Pair pair;
  for (std::int64_t time : {10, 20, 30}) pair.Push(MakeEvent(time));
  pair.ReplaceTop(MakeEvent(15));
  pair.ReplaceTop(MakeEvent(15));
  pair.ReplaceTop(MakeEvent(0));  // an earlier event than before is legal for the queue
  pair.Drain();
}

// Lockstep: every lane of a cluster ends at the same instants, so that whole levels of the heap
// tie.
TEST(EventQueue, AgreesWhenAllLanesRunInLockstep) {
  Pair pair;
  constexpr EntityIndex kLanes = 300;
  for (EntityIndex lane = 0; lane < kLanes; ++lane) {
    pair.Push(MakeEvent(100, Phase::kCompletion, lane));
  }
  for (std::int64_t step = 2; step < 20; ++step) {
    for (EntityIndex lane = 0; lane < kLanes && !HasFatalFailure(); ++lane) {
      pair.ReplaceTop(MakeEvent(100 * step, Phase::kCompletion, lane));
    }
  }
  pair.Drain();
}

// Identical ranks push at two instants in turn; both chains fill up, are drained in part and go on.
TEST(EventQueue, KeepsTheOrderOfInterleavedChains) {
  Pair pair;
  for (EntityIndex rank = 0; rank < 64 && !HasFatalFailure(); ++rank) {
    pair.Push(MakeEvent(500, Phase::kCompletion, rank));
    if (rank % 8 == 7) pair.Push(MakeEvent(300, Phase::kCompletion, 1000 + rank));
  }
  for (int i = 0; i < 40 && !HasFatalFailure(); ++i) pair.Pop();
  for (EntityIndex rank = 64; rank < 80 && !HasFatalFailure(); ++rank) {
    pair.Push(MakeEvent(500, Phase::kCompletion, rank));
    pair.Push(MakeEvent(500, Phase::kStart, rank));
  }
  pair.Drain();
}

// A chain that has run out is no longer one that an event can join.
TEST(EventQueue, DoesNotJoinAChainWhoseLastEventIsGone) {
  Pair pair;
  pair.Push(MakeEvent(7, Phase::kCompletion, 1));
  pair.Push(MakeEvent(9, Phase::kCompletion, 1));
  pair.Pop();
  pair.Push(MakeEvent(7, Phase::kCompletion, 2));  // its instant is that of the event just popped
  pair.ReplaceTop(MakeEvent(9, Phase::kCompletion, 2));
  pair.ReplaceTop(MakeEvent(9, Phase::kCompletion, 3));
  pair.ReplaceTop(MakeEvent(9, Phase::kCompletion, 1));
  pair.Drain();
}

}  // namespace
}  // namespace quadrille::engine
