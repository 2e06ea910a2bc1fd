// What bounds the step, summed by cause.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/program/critical_path.h"
#include "sim/program/program.h"

namespace quadrille::metrics {

struct PathCause {
  std::string cause;  // "gemm", "tp transfer", "host launch"; README.md lists them
  Duration time{0};
  std::int64_t operations = 0;  // steps of the path with a part of it
};

struct PathOperation {
  std::string name;  // of program::OperationName
  Duration time{0};
  std::int64_t operations = 0;
};

struct CriticalPathReport {
  bool followed = false;          // false: the run kept no times, and everything else is empty
  Duration length{0};             // the step time
  std::vector<PathCause> causes;  // those with time, in a fixed order; they sum to the length
  std::vector<Duration> stages;   // by pipeline rank: time on the path; they sum to the length
  std::vector<PathOperation> operations;  // all names, largest first
  std::int64_t steps = 0;
  std::int64_t crossings = 0;  // times that the path goes from one rank to another
};

// Sums `path` up. REQUIRES: it is a path of `program`.
[[nodiscard]] CriticalPathReport SummarisePath(const program::Program& program,
                                               const program::CriticalPath& path);

}  // namespace quadrille::metrics
