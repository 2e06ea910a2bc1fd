// The hybrid cube mesh of the DGX-1 with V100: which of the eight GPUs are wired to which, and with
// how many NVLinks.
#pragma once

#include <array>
#include <cstdint>

namespace quadrille::topology {

struct CubeMeshLink {
  std::int8_t low;
  std::int8_t high;
  std::int8_t links;  // 1 or 2
};

inline constexpr std::int32_t kCubeMeshEdges = 16;
inline constexpr std::int32_t kCubeMeshLinksPerGpu = 6;

// As `nvidia-smi topo -m` prints it on a DGX-1V (recalled, not reopened). Two quads, each fully
// connected, joined by four edges; every GPU has six links. Inside a quad GPUs pair up over two
// links along a ring.
inline constexpr std::array<CubeMeshLink, kCubeMeshEdges> kCubeMesh = {{{0, 1, 1},
                                                                        {0, 2, 1},
                                                                        {0, 3, 2},
                                                                        {0, 4, 2},
                                                                        {1, 2, 2},
                                                                        {1, 3, 1},
                                                                        {1, 5, 2},
                                                                        {2, 3, 2},
                                                                        {2, 6, 1},
                                                                        {3, 7, 1},
                                                                        {4, 5, 1},
                                                                        {4, 6, 1},
                                                                        {4, 7, 2},
                                                                        {5, 6, 2},
                                                                        {5, 7, 1},
                                                                        {6, 7, 2}}};

// Index into kCubeMesh of the edge between two GPUs, -1 when they are not neighbours.
[[nodiscard]] constexpr std::int32_t CubeMeshEdge(std::int32_t a, std::int32_t b) {
  const std::int32_t low = a < b ? a : b;
  const std::int32_t high = a < b ? b : a;
  for (std::int32_t i = 0; i < kCubeMeshEdges; ++i) {
    const auto& edge = kCubeMesh[static_cast<std::size_t>(i)];
    if (edge.low == low && edge.high == high) return i;
  }
  return -1;
}

}  // namespace quadrille::topology
