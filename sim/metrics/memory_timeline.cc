#include "sim/metrics/memory_timeline.h"

#include <algorithm>
#include <optional>

namespace quadrille::metrics {
namespace {

using schedules::ActionKind;

bool Runs(const schedules::Slot& slot, ActionKind kind) {
  return slot.first.kind == kind || (slot.second && slot.second->kind == kind);
}

// What a segment allocates, frees and needs besides, with what uneven experts add.
struct SegmentMemory {
  Bytes allocated;
  Bytes freed;
  Bytes workspace;
};

SegmentMemory MemoryOf(const program::RankProgram& program, const program::Segment& segment,
                       const std::function<double(std::int16_t)>& expert_load) {
  SegmentMemory memory{segment.allocated_at_begin, segment.freed_at_end, segment.workspace};
  if (!expert_load) return memory;
  // Layers run one after the other: of their workspaces the largest counts.
  std::optional<Bytes> workspace;
  for (const program::ExpertMemory& layer : program.templates[segment.body].expert_memory) {
    const double more = expert_load(layer.layer) - 1.0;
    memory.allocated += Scale(layer.allocated, more);
    memory.freed += Scale(layer.freed, more);
    const Bytes needs = Scale(layer.workspace, more);
    workspace = workspace ? std::max(*workspace, needs) : needs;
  }
  memory.workspace += workspace.value_or(Bytes(0));
  return memory;
}

}  // namespace

MemoryTimeline TraceMemory(const program::RankProgram& program, const program::RankResult& rank,
                           const std::function<double(std::int16_t)>& expert_load) {
  MemoryTimeline timeline;
  Bytes resident{0};
  for (const auto& component : program.static_memory) {
    timeline.components.push_back({component.component, component.bytes});
    resident += component.bytes;
  }
  Bytes activations{0};
  Bytes gathered{0};
  Bytes peak_activation_bytes{0};
  Bytes peak_gathered{0};
  Bytes peak_workspace{0};
  std::int32_t held = 0;
  timeline.peak = resident;
  const auto sample = [&](TimePoint at, Bytes level) {
    timeline.curve.times.push_back(at);
    timeline.curve.levels.push_back(level);
  };
  sample(TimePoint(Duration(0)), resident);
  // Actions of a rank do not overlap, so their order is their order in time.
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    const program::Segment& segment = program.segments[s];
    if (segment.role != program::SegmentRole::kAction) continue;
    const SegmentMemory memory = MemoryOf(program, segment, expert_load);
    activations += memory.allocated;
    gathered += segment.gathered_at_begin;
    if (Runs(segment.slot, ActionKind::kForward)) ++held;
    timeline.peak_activations = std::max(timeline.peak_activations, held);
    const Bytes level = resident + activations + gathered + memory.workspace;
    sample(rank.spans[s].begin, level);
    if (level > timeline.peak) {
      timeline.peak = level;
      timeline.peak_at = rank.spans[s].begin;
      peak_activation_bytes = activations;
      peak_gathered = gathered;
      peak_workspace = memory.workspace;
    }
    activations -= memory.freed;
    gathered -= segment.resharded_at_end;
    if (Runs(segment.slot, ActionKind::kBackward) ||
        Runs(segment.slot, ActionKind::kBackwardWeight)) {
      --held;
    }
    sample(rank.spans[s].end, resident + activations + gathered);
  }
  timeline.left_over = activations + gathered;
  timeline.components.push_back({"activations", peak_activation_bytes});
  if (peak_gathered.value() > 0) {
    timeline.components.push_back({"gathered parameters", peak_gathered});
  }
  timeline.components.push_back({"workspace", peak_workspace});
  std::stable_sort(
      timeline.components.begin(), timeline.components.end(),
      [](const MemoryComponent& a, const MemoryComponent& b) { return a.bytes > b.bytes; });
  return timeline;
}

}  // namespace quadrille::metrics
