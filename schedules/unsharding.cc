// Idea. Walk the order. Before each slot, look at the distinct chunks of this and the following
// slots, at most `active_chunks` of them. Gathered chunks outside that window are freed, chunks of
// the window that are not gathered are, in the order in which they will be needed.
//
// Orders stay with one chunk for many slots, so instead of looking ahead anew from every slot each
// chunk's uses are listed once, and a cursor says which comes next.
//
// Invariants: (1) the chunks of a slot are gathered before it; (2) at most max(active_chunks,
// chunks of one slot) are gathered at a time; (3) a gathered chunk is freed exactly once.
#include "schedules/unsharding.h"

#include <algorithm>
#include <limits>

namespace quadrille::schedules {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

bool CompletesGradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
}

template <typename Visit>
void ForEachAction(const Slot& slot, Visit visit) {
  visit(slot.first, std::size_t{0});
  if (slot.second) visit(*slot.second, std::size_t{1});
}

// What the walk knows of a chunk. Uses are places in the order: 2 x slot, and one more in the
// second half of a pair.
struct ChunkState {
  std::vector<std::size_t> uses;
  std::size_t cursor = 0;
  std::size_t backwards_left = 0;
  bool gathered = false;

  [[nodiscard]] std::size_t next() const { return cursor < uses.size() ? uses[cursor] : kNever; }
};

std::vector<ChunkState> ListUses(std::span<const Slot> order) {
  std::vector<ChunkState> chunks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    ForEachAction(order[i], [&](const Action& action, std::size_t half) {
      if (action.chunk.index() >= chunks.size()) chunks.resize(action.chunk.index() + 1);
      ChunkState& chunk = chunks[action.chunk.index()];
      chunk.uses.push_back(2 * i + half);
      if (CompletesGradients(action)) ++chunk.backwards_left;
    });
  }
  return chunks;
}

// The chunks that are used next, in that order, the first `count` of them.
std::vector<std::size_t> Window(const std::vector<ChunkState>& chunks, std::size_t count) {
  std::vector<std::size_t> window;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (chunks[c].next() != kNever) window.push_back(c);
  }
  std::sort(window.begin(), window.end(),
            [&](std::size_t a, std::size_t b) { return chunks[a].next() < chunks[b].next(); });
  if (window.size() > count) window.resize(count);
  return window;
}

ChunkId IdOf(std::size_t chunk) { return ChunkId(static_cast<std::int32_t>(chunk)); }

}  // namespace

std::vector<std::vector<ShardStep>> PlanUnsharding(std::span<const Slot> order,
                                                   std::int32_t active_chunks) {
  std::vector<ChunkState> chunks = ListUses(order);
  std::vector<std::vector<ShardStep>> plan(order.size() + 1);
  for (std::size_t i = 0; i <= order.size(); ++i) {
    for (ChunkState& chunk : chunks) {
      while (chunk.next() < 2 * i) ++chunk.cursor;
    }
    const std::vector<std::size_t> window = Window(chunks, static_cast<std::size_t>(active_chunks));
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const bool wanted = std::find(window.begin(), window.end(), c) != window.end();
      if (!chunks[c].gathered || wanted) continue;
      plan[i].push_back({ShardStepKind::kReshard, IdOf(c)});
      chunks[c].gathered = false;
    }
    for (const std::size_t c : window) {
      if (chunks[c].gathered) continue;
      plan[i].push_back({ShardStepKind::kUnshard, IdOf(c)});
      chunks[c].gathered = true;
    }
    if (i == order.size()) break;
    ForEachAction(order[i], [&](const Action& action, std::size_t) {
      if (CompletesGradients(action) && --chunks[action.chunk.index()].backwards_left == 0) {
        plan[i + 1].push_back({ShardStepKind::kReduceGradients, action.chunk});
      }
    });
  }
  return plan;
}

}  // namespace quadrille::schedules
