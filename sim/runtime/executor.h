// The event-driven executor: runs a program with contention, interference, jitter and stragglers.
//
// Idea. Lanes are in order, so each lane has at most one operation under way and one event pending,
// and "the k-th completion of lane s" is a counter. A completion bumps its lane's counter, wakes
// the lanes of the same rank that are blocked on that lane, and lets the lane go on. A transfer
// posts at its group; the last member to post starts it. Nothing is allocated while it runs.
//
// A compute kernel has a rate. When communication kernels on its rank begin or end, its remaining
// work is carried over and its completion moved: an event that comes too early finds the new end,
// one that comes too late is recognised by its generation and dropped. Transfers that could meet
// others on a port go through FluidNetwork; those that cannot (a static test) have a fixed
// duration.
//
// Invariants: (1) time never decreases; (2) results do not depend on the order of ties, because
// rates are solved once per instant after all completions and starts of it, and everything else
// commutes; (3) each rank's states sum to the step; (4) a run that stops with unfinished lanes is
// an error that names every blocked rank, instruction and counter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/network/network_options.h"
#include "sim/network/transfer.h"
#include "sim/program/program.h"
#include "sim/program/run_result.h"
#include "sim/runtime/perturbation.h"

namespace quadrille::runtime {

// One direction of a link above the NICs, and what groups load it with per byte of X. In a folded
// run a group stands for all real groups of its class, and the load is the sum of theirs on this
// one link.
struct FabricEdge {
  BytesPerSecond capacity;
  // (Index into Program::groups, load), ascending.
  std::vector<std::pair<std::uint32_t, double>> loads;
  // For which states of Machine::fabric_windows this is so (bit i: the i-th is open), ascending;
  // empty: for all.
  std::vector<std::uint32_t> states{};
  std::string name{};  // of one of the links that are alike, and of which tier it is
  FabricTier tier = FabricTier::kLeafSpine;

  [[nodiscard]] bool InForce(std::uint32_t state) const {
    return states.empty() || std::binary_search(states.begin(), states.end(), state);
  }
};

// Where real ranks are and which links join them, for fidelity chunk. Without functions, members of
// a group fill domains in order and nothing lies between NICs.
struct ChunkFabric {
  std::function<std::int32_t(RankId)> domain_of;
  // Indices into `links` of the `way`-th way between two ranks of different domains.
  std::function<std::vector<std::uint32_t>(RankId from, RankId to, std::int32_t way)> route;
  std::vector<BytesPerSecond> links;
};

// Everything that turns a program's indices into durations.
struct Machine {
  // costs[shape * placements + placement].
  std::vector<network::TransferCost> costs;
  network::PortCapacities ports;
  network::NetworkOptions network;
  std::vector<FabricEdge> fabric;      // fidelity flow only
  std::vector<Window> fabric_windows;  // of what comes and goes on the fabric, at most 31
  ChunkFabric chunk;                   // fidelity chunk only
  std::int32_t multiprocessors = 132;
  // Of these, those that GEMM and attention kernels leave free anyway: their durations count it.
  std::int32_t multiprocessor_margin = 0;
  BytesPerSecond memory_bandwidth;
};

struct RunOptions {
  // A permutation of ties: 0 keeps content order. No result depends on it.
  std::uint64_t shuffle_ties = 0;
  std::uint64_t seed = 1;
  std::span<const Perturbation> perturbations;
  // Ranks (indices into Program::ranks) whose operations go to `sink`.
  std::vector<std::uint32_t> recorded;
  program::RecordSink* sink = nullptr;
  // Fill RunResult::times: 16 bytes per operation.
  bool keep_times = false;
  // Called now and then with the share of operations done.
  std::function<void(Ratio)> progress;
};

// A step that is not over by then is given up: one that lasts as long as kUnending.
inline constexpr Duration kLongestStep = kUnending - Duration(1);

// Runs `program` once. An error is a deadlock, with its diagnosis, or a step of no reasonable
// length.
[[nodiscard]] Result<program::RunResult> Execute(const program::Program& program,
                                                 const Machine& machine, const RunOptions& options);

// The highest cap of any transfer of a group: index into program.groups. Zero when it has none.
[[nodiscard]] BytesPerSecond FastestTransfer(const program::Program& program,
                                             std::span<const network::TransferCost> costs,
                                             std::uint32_t group);

// The cost of every (shape, placement) of `program`.
[[nodiscard]] std::vector<network::TransferCost> PriceTransfers(
    const program::Program& program, const network::CollectiveConstants& constants,
    const network::PortCapacities& ports, network::Fidelity fidelity);

}  // namespace quadrille::runtime
