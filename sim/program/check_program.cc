#include <fmt/format.h>

#include "sim/program/program.h"

namespace quadrille::program {
namespace {

void CheckWaits(const RankProgram& program, std::size_t rank, std::vector<std::string>& problems) {
  const auto reachable = [&](const Wait& wait, std::int32_t base, const std::string& where) {
    if (wait.lane >= program.lanes.size()) {
      problems.push_back(fmt::format("pipeline rank {}: {} waits for lane {} of {}", rank, where,
                                     wait.lane, program.lanes.size()));
    } else if (base + wait.count > program.lane_totals[wait.lane]) {
      problems.push_back(
          fmt::format("pipeline rank {}: {} waits for completion {} of lane '{}', which "
                      "has {}",
                      rank, where, base + wait.count, program.lanes[wait.lane].name,
                      program.lane_totals[wait.lane]));
    }
  };
  for (std::size_t s = 0; s < program.segments.size(); ++s) {
    const Segment& segment = program.segments[s];
    const Template& body = program.templates[segment.body];
    const std::int32_t* base = program.BaseCounts(static_cast<std::uint32_t>(s));
    for (const Wait& wait : body.waits) {
      if (wait.lane < program.lanes.size()) {
        reachable(wait, base[wait.lane], fmt::format("segment {} ({})", s, body.name));
      }
    }
    for (std::uint32_t w = 0; w < segment.entry_count; ++w) {
      reachable(program.entry_waits[segment.entry_begin + w], 0,
                fmt::format("entry of segment {} ({})", s, body.name));
    }
  }
}

// The sequence of transfer shapes that a lane issues.
std::vector<std::uint32_t> ShapesOf(const RankProgram& program, LaneIndex lane) {
  std::vector<std::uint32_t> shapes;
  for (const LaneRun& run : program.lane_runs[lane]) {
    const Template& body = program.templates[program.segments[run.segment].body];
    for (std::uint32_t i = run.begin; i < run.end; ++i) shapes.push_back(body.instructions[i].cost);
  }
  return shapes;
}

}  // namespace

std::vector<std::string> CheckProgram(const Program& program) {
  std::vector<std::string> problems;
  for (std::size_t p = 0; p < program.programs.size(); ++p) {
    CheckWaits(program.programs[p], p, problems);
  }
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const Group& group = program.groups[g];
    std::vector<std::uint32_t> first;
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      const GroupMember& member = program.members[group.member_begin + m];
      const std::uint32_t rank_program = program.ranks[member.rank].program;
      std::vector<std::uint32_t> shapes = ShapesOf(program.programs[rank_program], member.lane);
      if (m == 0) {
        first = std::move(shapes);
      } else if (shapes != first) {
        problems.push_back(fmt::format(
            "group {}: rank {} issues {} transfers on lane {} that differ "
            "from the {} of its first member",
            g, program.ranks[member.rank].rank.value(), shapes.size(), member.lane, first.size()));
      }
    }
  }
  return problems;
}

}  // namespace quadrille::program
