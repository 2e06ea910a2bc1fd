#include "sim/network/scale_laws.h"

namespace quadrille::network {

void ScaleNvlinkLaws(double factor, CollectiveConstants* constants) {
  CollectiveConstants& c = *constants;
  for (BytesPerSecond* bandwidth :
       {&c.nvlink_all_reduce.bandwidth, &c.nvlink_all_gather.bandwidth,
        &c.nvlink_reduce_scatter.bandwidth, &c.nvlink_all_to_all.bandwidth,
        &c.nvlink_send_receive.bandwidth, &c.nvlink_send_receive_slow, &c.userbuffers.bandwidth}) {
    *bandwidth = *bandwidth * factor;
  }
  for (BytesPerSecond& bandwidth : c.ring_bandwidth_by_ranks) bandwidth = bandwidth * factor;
}

void ScaleNetworkLaws(double factor, CollectiveConstants* constants) {
  CollectiveConstants& c = *constants;
  c.network_send_receive.bandwidth = c.network_send_receive.bandwidth * factor;
  c.domain_network_limit = c.domain_network_limit * factor;
}

}  // namespace quadrille::network
