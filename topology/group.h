// How a group of GPUs lies in the cluster: what a collective's cost, and a reader of `quadrille
// plan`, needs to know.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "topology/cluster.h"
#include "topology/ids.h"

namespace quadrille::topology {

struct GroupShape {
  std::int32_t gpus = 0;     // n
  std::int32_t domains = 0;  // NVLink domains (nodes, without NVLink): N of the collective formulas
  std::int32_t gpus_per_domain = 0;  // g, the largest
  bool uniform = true;               // every domain holds as many
  std::int32_t nodes = 0;
  std::int32_t gpus_per_node = 0;  // the largest
  // NICs behind the members of one domain, the fewest of any domain; 0 when the group does not
  // leave its domain.
  std::int32_t nics_per_domain = 0;
  std::int32_t leaves = 0;  // leaf switches behind the members' NICs (in one plane); 0 as above
  bool same_rail = true;    // all members on one rail
  // The widest tier between any two members.
  Tier widest = Tier::kSelf;
  // The widest tier that a collective has to use when it moves between rails over NVLink, as NCCL's
  // rings do: rail r of one node sends to rail r of the next. Equal to `widest` unless every domain
  // has members on the same set of rails.
  Tier rail_aligned = Tier::kSelf;
};

// REQUIRES: at least one GPU, none twice. O(n log n) for built-in fabrics.
[[nodiscard]] GroupShape DescribeGroup(const Cluster& cluster, std::span<const GpuId> gpus);

// One line: "16 GPUs: 1 on each of 16 nodes, same rail, 1 leaf, same leaf".
[[nodiscard]] std::string ToString(const GroupShape& group);

}  // namespace quadrille::topology
