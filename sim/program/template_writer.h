// Instructions in launch order, closed into the templates of a rank's program; and its names and
// lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/program/program.h"

namespace quadrille::program {

// Collects instructions in launch order and closes them into a template.
class TemplateWriter {
 public:
  TemplateWriter(RankProgram& program, Duration host_launch);

  // Appends; a wait on the instruction's own lane is implied and dropped, and of several on one
  // lane the largest is kept. Returns the count of the lane after it.
  std::int32_t Emit(Instruction instruction, std::vector<Wait> waits);
  [[nodiscard]] std::int32_t Count(LaneIndex lane) const { return counts_[lane]; }
  [[nodiscard]] Duration launch_total() const { return launch_; }
  // Adds the template to the program and returns its index.
  std::uint32_t Close(std::string name);

 private:
  struct Pending {
    Instruction instruction;
    std::vector<Wait> waits;
  };
  RankProgram& program_;
  Duration host_launch_;
  Duration launch_{0};
  std::vector<std::int32_t> counts_;
  std::vector<Pending> pending_;
};

// Index of an operation name in the program's table, added when new.
[[nodiscard]] std::uint16_t NameOf(RankProgram& program, const std::string& name,
                                   model::OperationKind kind, model::Pass pass, bool optimizer);

// The lane of a kind (and axis), or -1 when this rank has none: a group of one needs no lane.
[[nodiscard]] int FindLane(const RankProgram& program, LaneKind kind, model::Axis axis);

}  // namespace quadrille::program
