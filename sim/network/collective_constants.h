// Named constants of the collective cost law, per kind of cluster. They live in a YAML file, each
// with its source.
//
// The law of one collective is t(X) = alpha + X / B + gamma sqrt(X), with X the bus-normalised
// bytes (nccl-tests' PERFORMANCE.md): X = S x 2(n-1)/n for all-reduce, S x (n-1)/n for all-gather,
// reduce-scatter and all-to-all, S for send/receive. The square root is the ramp of a pipelined
// chain: with the best chunk size, alpha + X/B + 2 sqrt(a X depth / B). Where the best chunk would
// be larger than its buffer the ramp stays as it is: gamma sqrt(min(X, ramp_ends_at)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::network {

struct Law {
  Duration alpha{0};
  BytesPerSecond bandwidth;             // B, of bus-normalised bytes
  Duration gamma_per_sqrt_megabyte{0};  // gamma, per sqrt(1e6 bytes)
};

// What a communication kernel takes from compute while it runs.
struct Footprint {
  std::int32_t multiprocessors = 0;
  double memory_bytes_per_wire_byte = 2.0;  // 2 for copies, 3 for reductions
};

// Which of NCCL's algorithms carry out an all-reduce (NCCL_ALGO).
enum class AllReduceAlgorithm : std::uint8_t {
  kFastest,  // as NCCL's tuner would choose: by time
  kRing,     // NCCL_ALGO=Ring, or no NVLS: nothing is reduced in the switch, nor along trees
  kTree,     // across nodes a (NVLS) tree, also where a ring would be faster
};

// Which of NCCL's algorithms carry out all-gathers and reduce-scatters with one GPU per node.
enum class GatherAlgorithm : std::uint8_t { kRing, kPat, kFastest };

struct CollectiveConstants {
  std::string name;
  AllReduceAlgorithm all_reduce_algorithm = AllReduceAlgorithm::kFastest;
  GatherAlgorithm gather_algorithm = GatherAlgorithm::kRing;
  // Within one NVLink domain of the calibrated size.
  Law nvlink_all_reduce;
  Law nvlink_all_gather;
  Law nvlink_reduce_scatter;
  Law nvlink_all_to_all;
  Law nvlink_send_receive;
  Bytes ramp_ends_at;  // X from which no ramp grows any more; zero: never
  // Ranks at which the NVLink laws were measured. Rings over fewer have less latency and ramp.
  std::int32_t calibrated_group = 8;
  // B of rings over 2, 3, 4 ... ranks of a domain where it differs from the laws' (which ring fits
  // a part of a hybrid cube mesh; pairs on A100). Ranks beyond the list follow the laws.
  std::vector<BytesPerSecond> ring_bandwidth_by_ranks;
  // NCCL's send/receive within a domain may use few channels below a size; zero: no such cliff.
  BytesPerSecond nvlink_send_receive_slow;
  Bytes nvlink_send_receive_slow_below;
  // What one site adds to the latencies, which do not carry over between sites as bandwidths do:
  // its hosts to every collective (negative where they are faster than the pooled laws), its
  // transport to whatever crosses the network: 0 for InfiniBand and RoCE, 50 to 300 us over EFA or
  // TCPX.
  Duration host_latency{0};
  Duration network_latency{0};
  Duration network_gamma_per_sqrt_megabyte{0};  // likewise, of the ramp across the network
  // The least that anything across the network takes (TCPX: a millisecond up to tens of megabytes).
  Duration network_minimum{0};
  // The most that one domain sends or receives, where a collective does not drive all NICs of a
  // rack; zero: all.
  BytesPerSecond domain_network_limit;
  // Rings across nodes: t = base + intra_steps x intra_step + inter_steps x inter_step + X /
  // (efficiency x NIC sum) (constants of NCCL's tuner, NVIDIA/nccl:src/graph/tuning.cc, and SimAI's
  // measured node scaling).
  Duration ring_base{0};
  Duration ring_intra_step{0};
  Duration ring_inter_step{0};
  Duration ring_gamma_per_sqrt_megabyte{0};
  double ring_nic_efficiency = 0.96;
  // Other algorithms across nodes.
  Duration tree_inter_step{0};  // per level of a double binary tree
  // Ramp that each level of the tree adds, twice where domains pass on two children's chunks.
  Duration tree_gamma_per_level{0};
  double tree_nic_efficiency = 0.92;
  double all_to_all_nic_efficiency = 0.95;
  // Per peer of an all-to-all across nodes (aliyun/SimAI:astra-sim-alibabacloud/inputs/ratio/
  // ata_ratio.csv: at 16 MB about 200 us beyond the wire time on 128 ranks).
  Duration all_to_all_peer{1'500'000};
  Law network_send_receive;  // one pair, one NIC; bandwidth is what NCCL's point-to-point reaches
  Duration point_to_point_spine_hop{0};
  // Userbuffers ring exchange and bulk copies inside a node (Transformer Engine), where TP overlap
  // is on.
  Law userbuffers;
  Footprint nvlink_collective;
  Footprint network_collective;
  Footprint send_receive;
  Footprint all_to_all;

  struct Source {
    std::string constant;
    std::string source;
    std::string kind;  // measured, fitted, published, assumed
  };
  std::vector<Source> sources;
};

}  // namespace quadrille::network
