// Identifiers of the parts of a cluster. All are dense and start at 0.
#pragma once

#include "sim/base/ids.h"

namespace quadrille::topology {

using GpuId = Id<struct GpuTag>;    // node-major: GPU i of node n is n * gpus_per_node + i
using NodeId = Id<struct NodeTag>;  // a server, or a compute tray of an NVL72 rack
using NvlinkDomainId = Id<struct NvlinkDomainTag>;
using NicId = Id<struct NicTag>;  // node-major, like GpuId
using LeafId = Id<struct LeafTag>;
using VertexId = Id<struct VertexTag>;  // anything in the cluster graph; GPUs come first
using LinkId = Id<struct LinkTag>;  // one direction; link 2i and 2i + 1 are each other's reverse

}  // namespace quadrille::topology
