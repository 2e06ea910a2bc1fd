// How a run sends between stages when it does not say.
#pragma once

#include <string_view>

#include "sim/program/execution_options.h"

namespace quadrille::scenario {

// As Megatron-LM does, which overlaps point-to-point transfers only where there are virtual stages
// (NVIDIA/Megatron-LM:megatron/core/pipeline_parallel/schedules.py); receives are posted ahead for
// schedules that it does not have.
[[nodiscard]] constexpr program::PointToPoint DefaultPointToPoint(std::string_view schedule,
                                                                  std::int32_t virtual_stages) {
  return virtual_stages <= 1 && schedule == "1f1b" ? program::PointToPoint::kBatchedBlocking
                                                   : program::PointToPoint::kPostedAhead;
}

}  // namespace quadrille::scenario
