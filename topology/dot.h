// The cluster as a GraphViz graph.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "topology/cluster.h"

namespace quadrille::topology {

enum class DotDetail : std::uint8_t {
  kAutomatic,  // GPUs up to 32 of them, nodes up to 256, else switches
  kGpus,       // every vertex
  kNodes,      // a node (or NVLink domain) is one vertex
  kSwitches,   // leaf switches and above, each leaf with the number of GPUs behind it
};

// Writes an undirected graph: one edge per cable bundle (parallel ones drawn as one), labelled with
// its bandwidth per direction. Vertices and edges appear in the order of their ids.
void WriteDot(const Cluster& cluster, std::ostream& out, DotDetail detail = DotDetail::kAutomatic);

}  // namespace quadrille::topology
