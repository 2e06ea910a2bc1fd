// What NVIDIA's nccl-tests print.
//
//   # Collective test starting: all_reduce_perf
//   # nThread 1 nGpus 8 minBytes 1048576 maxBytes 8589934592 step: 2(factor) ...
//   #  Rank  0 Group  0 Pid  4711 on  node-1 device  0 [0x1b] NVIDIA H100 80GB HBM3
//   #       size         count      type   redop    root     time   algbw   busbw #wrong  ...
//        1048576        262144     float     sum      -1    35.25   29.75   52.06      0  ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "tools/validate/measured_collective.h"

namespace quadrille::tools {

// Told from a table of commas by its comment lines: ranks with their devices, and the header of the
// columns. What a launcher writes before a line ("[1,0]<stdout>:", "0: ") does not matter.
[[nodiscard]] bool IsNcclTestsOutput(std::string_view text);

// One row per size, by the time of the out-of-place operation. The system is the GPU's name; nodes
// are the hosts that ranks name, except of GPUs that NVLink joins across hosts (GB200, GB300),
// where up to 72 count as one. The collective is that of the header of newer releases, else of the
// file's name, else of an all-reduce's bus bandwidth. Errors: no collective can be told; no ranks;
// lines in the table that are none of it.
[[nodiscard]] Result<std::vector<MeasuredCollective>> ReadNcclTestsOutput(std::string_view text,
                                                                          const std::string& file);

}  // namespace quadrille::tools
