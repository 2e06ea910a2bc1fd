// The event queue in the hold model (Jones, "An empirical comparison of priority-queue and
// event-set implementations", CACM 29(4), 1986): with a fixed number of events pending, take the
// earliest and add one that lies a random gap after it. One iteration is one such exchange.
//
// Three gap distributions bracket a training step: exponential (no structure), bimodal (short
// kernels beside long transfers) and lockstep (identical ranks, so that most events tie in time).
// Gaps are drawn before the clock starts.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "sim/base/counter_rng.h"
#include "sim/base/time.h"
#include "sim/engine/event_queue.h"

namespace quadrille::engine {
namespace {

constexpr std::size_t kGaps = std::size_t{1} << 16;
constexpr double kMeanGap = 10e6;  // picoseconds: a kernel of 10 us

struct Exponential {
  static std::int64_t Gap(std::uint64_t hash) {
    return static_cast<std::int64_t>(-std::log(1.0 - Uniform(hash)) * kMeanGap);
  }
};

// Nine in ten are short, uniform in 0.5 to 1.5 means; the tenth is fifty times longer.
struct Bimodal {
  static std::int64_t Gap(std::uint64_t hash) {
    const double base = (0.5 + Uniform(Mix(hash))) * kMeanGap;
    return static_cast<std::int64_t>(Uniform(hash) < 0.9 ? base : 50 * base);
  }
};

struct Lockstep {
  static std::int64_t Gap(std::uint64_t /*hash*/) { return static_cast<std::int64_t>(kMeanGap); }
};

// Ours, as the executor uses it when one operation follows another on a lane.
class HeapReplace {
 public:
  void Push(const Event& event) { queue_.Push(event); }
  [[nodiscard]] Event Top() const { return queue_.Top(); }
  void Exchange(const Event& event) { queue_.ReplaceTop(event); }

 private:
  EventQueue queue_;
};

// Ours, with the two operations that std::priority_queue offers.
class HeapPopPush {
 public:
  void Push(const Event& event) { queue_.Push(event); }
  [[nodiscard]] Event Top() const { return queue_.Top(); }
  void Exchange(const Event& event) {
    queue_.Pop();
    queue_.Push(event);
  }

 private:
  EventQueue queue_;
};

// What one would write first: std::priority_queue of events compared field by field.
class StdOfEvents {
 public:
  void Push(const Event& event) { queue_.push(event); }
  [[nodiscard]] Event Top() const { return queue_.top(); }
  void Exchange(const Event& event) {
    queue_.pop();
    queue_.push(event);
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::tie(a.time, a.phase, a.entity, a.generation) >
             std::tie(b.time, b.phase, b.entity, b.generation);
    }
  };
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
};

// std::priority_queue of our packed keys: tells what the key brings from what the heap brings.
class StdOfKeys {
 public:
  void Push(const Event& event) { queue_.push(EventQueue::Pack(event)); }
  [[nodiscard]] Event Top() const { return EventQueue::Unpack(queue_.top()); }
  void Exchange(const Event& event) {
    queue_.pop();
    queue_.push(EventQueue::Pack(event));
  }

 private:
  using Key = EventQueue::Key;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue_;
};

template <typename Queue, typename Distribution>
void Hold(benchmark::State& state) {
  const auto pending = static_cast<std::size_t>(state.range(0));
  std::vector<Duration> gaps;
  gaps.reserve(kGaps);
  for (std::size_t i = 0; i < kGaps; ++i) gaps.emplace_back(Distribution::Gap(Hash(1, i)));

  Queue queue;
  for (std::size_t i = 0; i < pending; ++i) {
    queue.Push({TimePoint(gaps[i % kGaps]), Phase::kCompletion, static_cast<EntityIndex>(i), 0});
  }
  std::size_t next = 0;
  const auto hold = [&] {
    Event event = queue.Top();
    event.time += gaps[next];
    next = (next + 1) % kGaps;
    queue.Exchange(event);
  };
  for (std::size_t i = 0; i < 2 * pending; ++i) hold();  // to the steady state
  for (auto _ : state) hold();
  state.SetItemsProcessed(state.iterations());
}

#define QUADRILLE_HOLD(queue, distribution)    \
  BENCHMARK(Hold<queue, distribution>)         \
      ->Name("Hold/" #distribution "/" #queue) \
      ->RangeMultiplier(10)                    \
      ->Range(100, 1'000'000)
#define QUADRILLE_HOLD_ALL(distribution)     \
  QUADRILLE_HOLD(HeapReplace, distribution); \
  QUADRILLE_HOLD(HeapPopPush, distribution); \
  QUADRILLE_HOLD(StdOfKeys, distribution);   \
  QUADRILLE_HOLD(StdOfEvents, distribution)

QUADRILLE_HOLD_ALL(Exponential);
QUADRILLE_HOLD_ALL(Bimodal);
QUADRILLE_HOLD_ALL(Lockstep);

}  // namespace
}  // namespace quadrille::engine
