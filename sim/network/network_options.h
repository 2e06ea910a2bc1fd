// Choices of the network model that a scenario makes.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace quadrille::network {

enum class Fidelity : std::uint8_t {
  kIdeal,      // X / B of the narrowest resource; no latency, no sharing
  kAlphaBeta,  // alpha + X / B + gamma sqrt(X); no sharing
  kEndpoint,   // as alpha-beta, and concurrent flows share each GPU's NVLink and NIC ports
  kFlow,       // as endpoint, and the edges of the fabric
  kChunk,      // store-and-forward per chunk, for validation up to 64 GPUs
};

enum class Routing : std::uint8_t { kAdaptive, kEcmp };

struct NetworkOptions {
  Fidelity fidelity = Fidelity::kEndpoint;
  // Communication kernels take SMs and HBM bandwidth from compute kernels that run beside them.
  bool interference = true;
  Routing routing = Routing::kAdaptive;
  std::int32_t ecmp_flows_per_pair = 16;
};

}  // namespace quadrille::network
