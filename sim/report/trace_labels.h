// What a trace calls things: names of lanes, operations and actions of a program, ready to be
// pasted into JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/program.h"
#include "sim/report/trace_writer.h"

namespace quadrille::report {

// A category that viewers can filter by: compute, optimizer, tp, cp, ep, dp, pp.
[[nodiscard]] std::string_view CategoryOf(program::LaneKind kind);

// "forward", "input gradient", "weight gradient" or "recompute".
[[nodiscard]] std::string_view NameOf(model::Pass pass);

// An operation's name with its kind first: "gemm fc1", "core attention", "all-gather tensor".
[[nodiscard]] std::string TraceNameOf(const program::OperationName& operation);

struct OperationLabel {
  std::string name;  // of TraceNameOf, escaped
  std::string_view pass;
  bool forward = false;  // belongs to the forward of a fused pair
  bool optimizer = false;
};

struct SegmentLabel {
  std::string name;  // "F 3", "F 3 & B 1", "optimizer": kind first, so that viewers colour by kind
  // `"microbatch":3,"chunk":1` of the action that a forward or backward kernel of the segment
  // belongs to; alike unless fused.
  std::string forward_arguments;
  std::string backward_arguments;
  program::SegmentRole role = program::SegmentRole::kAction;
  bool detailed = true;  // its kernels are traced
};

struct LaneLabel {
  std::string name;  // escaped
  program::LaneKind kind = program::LaneKind::kCompute;
};

struct ProgramLabels {
  std::vector<LaneLabel> lanes;
  std::vector<OperationLabel> operations;
  std::vector<SegmentLabel> segments;
};

// One per Program::programs. Kernels of a segment are `detailed` as `options` say.
[[nodiscard]] std::vector<ProgramLabels> LabelPrograms(const program::Program& program,
                                                       const TraceOptions& options);

// A message between pipeline ranks: the action that sends it and the action that waits for it.
struct MessageEnds {
  program::LaneIndex send_lane = 0;  // of the source's program
  program::LaneIndex receive_lane = 0;
  std::uint32_t source = 0;  // index into Program::programs
  std::uint32_t destination = 0;
  std::uint32_t position = 0;  // of the message on both lanes
  std::uint32_t source_segment = 0;
  std::uint32_t destination_segment = 0;
};

// All messages of one replica's pipeline, by source, lane and position.
[[nodiscard]] std::vector<MessageEnds> FindMessages(const program::Program& program);

}  // namespace quadrille::report
