#include "sim/program/template_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/check.h"

namespace quadrille::program {

TemplateWriter::TemplateWriter(RankProgram& program, Duration host_launch)
    : program_(program), host_launch_(host_launch), counts_(program.lanes.size(), 0) {}

std::int32_t TemplateWriter::Emit(Instruction instruction, std::vector<Wait> waits) {
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.lane != b.lane ? a.lane < b.lane : a.count > b.count;
  });
  waits.erase(std::unique(waits.begin(), waits.end(),
                          [](const Wait& a, const Wait& b) { return a.lane == b.lane; }),
              waits.end());
  std::erase_if(waits,
                [&](const Wait& wait) { return wait.lane == instruction.lane || wait.count == 0; });
  instruction.launch_offset = launch_;
  if (instruction.kind == InstructionKind::kCompute ||
      instruction.kind == InstructionKind::kTransfer) {
    launch_ += host_launch_;
  }
  pending_.push_back({instruction, std::move(waits)});
  return ++counts_[instruction.lane];
}

std::uint32_t TemplateWriter::Close(std::string name) {
  Template body;
  body.name = std::move(name);
  std::vector<std::uint32_t> by_lane(pending_.size());
  std::iota(by_lane.begin(), by_lane.end(), 0u);
  std::stable_sort(by_lane.begin(), by_lane.end(), [&](std::uint32_t a, std::uint32_t b) {
    return pending_[a].instruction.lane < pending_[b].instruction.lane;
  });
  body.launch_order.resize(pending_.size());
  body.lane_begin.assign(program_.lanes.size() + 1, 0);
  for (std::uint32_t place = 0; place < by_lane.size(); ++place) {
    Pending& pending = pending_[by_lane[place]];
    Instruction instruction = pending.instruction;
    instruction.wait_begin = static_cast<std::uint32_t>(body.waits.size());
    instruction.wait_count = static_cast<std::uint8_t>(pending.waits.size());
    body.waits.insert(body.waits.end(), pending.waits.begin(), pending.waits.end());
    body.instructions.push_back(instruction);
    body.launch_order[by_lane[place]] = place;
    ++body.lane_begin[static_cast<std::size_t>(instruction.lane) + 1];
  }
  std::partial_sum(body.lane_begin.begin(), body.lane_begin.end(), body.lane_begin.begin());
  program_.templates.push_back(std::move(body));
  pending_.clear();
  return static_cast<std::uint32_t>(program_.templates.size() - 1);
}

std::uint16_t NameOf(RankProgram& program, const std::string& name, model::OperationKind kind,
                     model::Pass pass, bool optimizer) {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const OperationName& known = program.operations[i];
    if (known.name == name && known.kind == kind && known.pass == pass &&
        known.optimizer == optimizer) {
      return static_cast<std::uint16_t>(i);
    }
  }
  QUADRILLE_CHECK(program.operations.size() < 0xffff, "{} operation names",
                  program.operations.size());
  program.operations.push_back({name, kind, pass, optimizer});
  return static_cast<std::uint16_t>(program.operations.size() - 1);
}

int FindLane(const RankProgram& program, LaneKind kind, model::Axis axis) {
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    if (program.lanes[lane].kind == kind && program.lanes[lane].axis == axis) {
      return static_cast<int>(lane);
    }
  }
  return -1;
}

}  // namespace quadrille::program
