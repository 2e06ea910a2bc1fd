#include "sim/report/trace_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "schedules/text.h"
#include "sim/report/json_stream.h"

namespace quadrille::report {
namespace {

using program::kComputeLane;
using program::LaneIndex;
using program::LaneKind;
using program::RankProgram;
using program::Segment;
using program::SegmentRole;
using schedules::Action;
using schedules::ActionKind;

constexpr std::uint32_t kNoSegment = std::numeric_limits<std::uint32_t>::max();

std::string NameOf(const Action& action) {
  return fmt::format("{} {}", schedules::LetterOf(action.kind), action.microbatch.value());
}

std::string ArgumentsOf(const Action& action) {
  std::string text = fmt::format("\"microbatch\":{},\"chunk\":{}", action.microbatch.value(),
                                 action.chunk.value());
  if (action.slice > 0) text += fmt::format(",\"slice\":{}", action.slice);
  return text;
}

class Window {
 public:
  Window(const program::Program& program, const TraceOptions& options) : options_(options) {
    for (const RankProgram& rank : program.programs) {
      for (const Segment& segment : rank.segments) {
        if (segment.role != SegmentRole::kAction) continue;
        Count(segment.slot.first);
        if (segment.slot.second) Count(*segment.slot.second);
      }
    }
  }
  [[nodiscard]] bool Holds(const Segment& segment) const {
    if (options_.layout == TraceLayout::kKineto || options_.level == TraceLevel::kKernel)
      return true;
    if (segment.role != SegmentRole::kAction) return true;
    if (options_.level == TraceLevel::kAction) return false;
    return Holds(segment.slot.first) || (segment.slot.second && Holds(*segment.slot.second));
  }

 private:
  void Count(const Action& action) {
    microbatches_ = std::max(microbatches_, action.microbatch.value() + 1);
  }
  [[nodiscard]] bool Holds(const Action& action) const {
    const std::int32_t microbatch = action.microbatch.value();
    return microbatch < options_.first_microbatches ||
           microbatch >= microbatches_ - options_.last_microbatches;
  }

  const TraceOptions& options_;
  std::int32_t microbatches_ = 0;
};

SegmentLabel LabelOf(const Segment& segment, const Window& window) {
  SegmentLabel label;
  label.role = segment.role;
  label.detailed = window.Holds(segment);
  if (segment.role == SegmentRole::kPrologue) label.name = "prologue";
  if (segment.role == SegmentRole::kGradientNorm) label.name = "gradient norm";
  if (segment.role == SegmentRole::kOptimizer) label.name = "optimizer";
  if (segment.role != SegmentRole::kAction) return label;
  const Action& first = segment.slot.first;
  label.name = NameOf(first);
  label.forward_arguments = ArgumentsOf(first);
  label.backward_arguments = label.forward_arguments;
  if (!segment.slot.second) return label;
  const Action& second = *segment.slot.second;
  label.name += " & " + NameOf(second);
  const bool forward_first = first.kind == ActionKind::kForward;
  (forward_first ? label.backward_arguments : label.forward_arguments) = ArgumentsOf(second);
  return label;
}

// The segment whose compute instructions include the `count`-th completion of the compute lane.
std::uint32_t SegmentAtCount(const RankProgram& program, std::int32_t count) {
  std::uint32_t found = kNoSegment;
  for (std::uint32_t s = 0; s < program.segments.size(); ++s) {
    if (program.segments[s].role == SegmentRole::kFlat) continue;
    if (program.BaseCounts(s)[kComputeLane] < count) found = s;
  }
  return found;
}

// By position on a send lane: the segment whose end releases the message.
std::vector<std::uint32_t> Producers(const RankProgram& program, LaneIndex lane) {
  std::vector<std::uint32_t> producers;
  std::uint32_t from = 0;  // lanes are in order, and so are the producers of most schedules
  for (const program::LaneRun& run : program.lane_runs[lane]) {
    const program::Template& body = program.templates[program.segments[run.segment].body];
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const program::Instruction& instruction = body.instructions[i];
      std::int32_t count = 0;
      for (std::uint32_t w = 0; w < instruction.wait_count; ++w) {
        const program::Wait& wait = body.waits[instruction.wait_begin + w];
        if (wait.lane != kComputeLane) continue;
        count = program.BaseCounts(run.segment)[kComputeLane] + wait.count;
      }
      while (from + 1 < program.segments.size() &&
             program.segments[from + 1].role != SegmentRole::kFlat &&
             program.BaseCounts(from + 1)[kComputeLane] < count) {
        ++from;
      }
      const bool here = program.segments[from].role != SegmentRole::kFlat &&
                        program.BaseCounts(from)[kComputeLane] < count;
      producers.push_back(here ? from : SegmentAtCount(program, count));
    }
  }
  return producers;
}

// By lane and position: the segment that waits for the message before it begins.
std::vector<std::vector<std::uint32_t>> Consumers(const RankProgram& program) {
  std::vector<std::vector<std::uint32_t>> consumers;
  for (std::int32_t total : program.lane_totals) {
    consumers.emplace_back(static_cast<std::size_t>(total), kNoSegment);
  }
  for (std::uint32_t s = 0; s < program.segments.size(); ++s) {
    const Segment& segment = program.segments[s];
    if (segment.role != SegmentRole::kAction) continue;
    for (std::uint32_t w = 0; w < segment.entry_count; ++w) {
      const program::Wait& wait = program.entry_waits[segment.entry_begin + w];
      const auto position = static_cast<std::size_t>(wait.count - 1);
      if (wait.count < 1 || position >= consumers[wait.lane].size()) continue;
      if (consumers[wait.lane][position] == kNoSegment) consumers[wait.lane][position] = s;
    }
  }
  return consumers;
}

std::optional<LaneIndex> ReceiveLane(const RankProgram& program, LaneKind sends,
                                     std::int32_t peer) {
  const LaneKind kind =
      sends == LaneKind::kSendForward ? LaneKind::kReceiveForward : LaneKind::kReceiveBackward;
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    if (program.lanes[lane].kind == kind && program.lanes[lane].peer == peer) {
      return static_cast<LaneIndex>(lane);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view CategoryOf(LaneKind kind) {
  switch (kind) {
    case LaneKind::kCompute: return "compute";
    case LaneKind::kTensor: return "tp";
    case LaneKind::kContext: return "cp";
    case LaneKind::kExpert: return "ep";
    case LaneKind::kParameterGather:
    case LaneKind::kGradientReduce:
    case LaneKind::kReplica:
    case LaneKind::kModel: return "dp";
    case LaneKind::kSendForward:
    case LaneKind::kReceiveForward:
    case LaneKind::kSendBackward:
    case LaneKind::kReceiveBackward: return "pp";
  }
  return "other";
}

std::string_view NameOf(model::Pass pass) {
  switch (pass) {
    case model::Pass::kForward: return "forward";
    case model::Pass::kInputGradient: return "input gradient";
    case model::Pass::kWeightGradient: return "weight gradient";
    case model::Pass::kRecompute: return "recompute";
  }
  return "";
}

std::string TraceNameOf(const program::OperationName& operation) {
  switch (operation.kind) {
    case model::OperationKind::kGemm: return "gemm " + operation.name;
    case model::OperationKind::kGroupedGemm: return "grouped gemm " + operation.name;
    case model::OperationKind::kAttention:
    case model::OperationKind::kMemoryBound:
    case model::OperationKind::kCollective: return operation.name;
  }
  return operation.name;
}

std::vector<ProgramLabels> LabelPrograms(const program::Program& program,
                                         const TraceOptions& options) {
  const Window window(program, options);
  std::vector<ProgramLabels> all;
  for (const RankProgram& rank : program.programs) {
    ProgramLabels labels;
    for (const program::Lane& lane : rank.lanes) {
      labels.lanes.push_back({JsonEscaped(lane.name), lane.kind});
    }
    for (const program::OperationName& operation : rank.operations) {
      labels.operations.push_back({JsonEscaped(TraceNameOf(operation)), NameOf(operation.pass),
                                   operation.pass == model::Pass::kForward, operation.optimizer});
    }
    for (const Segment& segment : rank.segments) {
      labels.segments.push_back(LabelOf(segment, window));
    }
    all.push_back(std::move(labels));
  }
  return all;
}

std::vector<MessageEnds> FindMessages(const program::Program& program) {
  std::vector<std::vector<std::vector<std::uint32_t>>> consumers;
  for (const RankProgram& rank : program.programs) consumers.push_back(Consumers(rank));
  std::vector<MessageEnds> messages;
  for (std::uint32_t source = 0; source < program.programs.size(); ++source) {
    const RankProgram& sender = program.programs[source];
    for (std::size_t lane = 0; lane < sender.lanes.size(); ++lane) {
      const program::Lane& out = sender.lanes[lane];
      if (!program::IsSend(out.kind) || out.peer < 0) continue;
      const auto destination = static_cast<std::uint32_t>(out.peer);
      if (destination >= program.programs.size()) continue;
      const std::optional<LaneIndex> in =
          ReceiveLane(program.programs[destination], out.kind, static_cast<std::int32_t>(source));
      if (!in) continue;
      const auto index = static_cast<LaneIndex>(lane);
      const std::vector<std::uint32_t> producers = Producers(sender, index);
      const std::vector<std::uint32_t>& waiting = consumers[destination][*in];
      for (std::size_t k = 0; k < std::min(producers.size(), waiting.size()); ++k) {
        if (producers[k] == kNoSegment || waiting[k] == kNoSegment) continue;
        messages.push_back({index, *in, source, destination, static_cast<std::uint32_t>(k),
                            producers[k], waiting[k]});
      }
    }
  }
  return messages;
}

}  // namespace quadrille::report
