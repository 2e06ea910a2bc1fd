// The machine that small steps run on, and ways to compare two runs.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/runtime/executor.h"
#include "sim/runtime/static_evaluator.h"
#include "test/program/small_step.h"

namespace quadrille::runtime {

// Prices `program` at `fidelity`.
inline Machine MachineFor(const program::Program& program, network::Fidelity fidelity,
                          bool interference = false,
                          const network::PortCapacities& ports = program::SmallPorts()) {
  Machine machine;
  machine.costs = PriceTransfers(program, program::SmallNetwork(), ports, fidelity);
  machine.ports = ports;
  machine.network.fidelity = fidelity;
  machine.network.interference = interference;
  machine.multiprocessors = 100;
  machine.memory_bandwidth = BytesPerSecond(1e12);
  return machine;
}

// The run, failing the test with the diagnosis when there is none.
inline program::RunResult MustExecute(const program::Program& program, const Machine& machine,
                                      const RunOptions& options = {}) {
  auto result = Execute(program, machine, options);
  if (!result) {
    ADD_FAILURE() << ToString(result.error());
    return {};
  }
  return *std::move(result);
}

inline bool Same(const program::ActionSpan& a, const program::ActionSpan& b) {
  return a.begin == b.begin && a.end == b.end;
}

// What differs between two runs of one program, in words; "" when nothing does. States and lane
// accounts are compared when both runs have them.
inline std::string Difference(const program::RunResult& a, const program::RunResult& b) {
  if (a.ranks.size() != b.ranks.size()) return "number of ranks";
  if (a.end != b.end) return "end of the step";
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    const std::string where = " of rank " + std::to_string(r);
    const program::RankResult& x = a.ranks[r];
    const program::RankResult& y = b.ranks[r];
    if (x.end != y.end) return "end" + where;
    for (std::size_t s = 0; s < x.spans.size(); ++s) {
      if (!Same(x.spans[s], y.spans[s])) return "span " + std::to_string(s) + where;
    }
    if (x.lanes.empty() || y.lanes.empty()) continue;
    if (x.states != y.states) return "states" + where;
    for (std::size_t lane = 0; lane < x.lanes.size(); ++lane) {
      if (x.lanes[lane].busy != y.lanes[lane].busy || x.lanes[lane].bytes != y.lanes[lane].bytes ||
          x.lanes[lane].operations != y.lanes[lane].operations) {
        return "lane " + std::to_string(lane) + where;
      }
    }
  }
  if (a.operations != b.operations) return "operations";
  return a.fingerprint == b.fingerprint ? "" : "fingerprint";
}

}  // namespace quadrille::runtime
