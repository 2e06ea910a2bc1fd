// What a generator refuses, collected as messages: all broken rules of a request at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// An order may hold this many actions over all ranks (2.4 GB of slots); larger requests are
// refused, not attempted.
inline constexpr std::int64_t kMaxActions = std::int64_t{1} << 26;

// Slices per sequence when a request leaves them at the default: the setting of Seq1F1B's main
// experiments.
inline constexpr std::int32_t kDefaultSlices = 4;

// Which optional fields of ScheduleRequest a schedule reads. One that it does not read must be left
// at its default, so that a `group` given to GPipe is an error and not silently ignored.
struct Options {
  std::int32_t fixed_virtual_stages = 0;  // 0: free; otherwise the only v there is
  bool group = false;
  bool slices = false;
  bool waves = false;
  bool memory_limit = false;
};

class Refusals {
 public:
  // Checks what is common to all: P, M >= 1, v, Q >= 1, unused options, total size.
  Refusals(std::string_view name, const ScheduleRequest& request, const Options& options);

  // Adds "NAME: message".
  void Add(const std::string& message);
  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  [[nodiscard]] tl::unexpected<Diagnostics> Take() {
    return tl::unexpected<Diagnostics>(std::move(diagnostics_));
  }

 private:
  std::string name_;
  Diagnostics diagnostics_;
};

// v of the request, or `fallback` when it leaves v at its default.
[[nodiscard]] inline std::int32_t VirtualStagesOr(const ScheduleRequest& request,
                                                  std::int32_t fallback) {
  return request.virtual_stages > 0 ? request.virtual_stages : fallback;
}

// The microbatch group of an interleaved schedule, or 0 after adding the reason why there is none.
// kAutomaticGroup is PyTorch's rule (torch/distributed/pipelining/schedules.py): rounds = max(1, M
// div P), N = M div rounds, refused if rounds does not divide M; it alone allows M < P. Otherwise
// Megatron-LM's: N defaults to P, P <= N <= M, and the last group is full or holds at least P
// (megatron/core/pipeline_parallel/schedules.py).
[[nodiscard]] std::int32_t ResolveGroup(const ScheduleRequest& request, Refusals& refusals);

}  // namespace quadrille::schedules
