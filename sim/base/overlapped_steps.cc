#include "sim/base/overlapped_steps.h"

#include <algorithm>

namespace quadrille {
namespace {

// A rank that works less than others runs ahead step by step, until it has to wait for them.
constexpr int kMostSteps = 12;
// A millionth of a step is no difference: contention moves ends by picoseconds.
constexpr std::int64_t kAlike = 1'000'000;

}  // namespace

Result<OverlappedSteps> OverlapSteps(std::size_t ranks, const OneStep& step) {
  OverlappedSteps steps{std::vector<Duration>(ranks, Duration(0)), Duration(0)};
  for (int n = 0; n < kMostSteps; ++n) {
    Result<std::vector<Duration>> ends = step(steps.begins);
    if (!ends) return tl::unexpected<Diagnostics>(ends.error());
    Duration longest{0};
    Duration shortest = ranks == 0 ? Duration(0) : Duration::max();
    for (std::size_t r = 0; r < ranks; ++r) {
      longest = std::max(longest, (*ends)[r] - steps.begins[r]);
      shortest = std::min(shortest, (*ends)[r] - steps.begins[r]);
    }
    steps.period = longest;
    if (longest - shortest <= longest / kAlike || n + 1 == kMostSteps) break;
    const Duration first = *std::min_element(ends->begin(), ends->end());
    for (std::size_t r = 0; r < ranks; ++r) steps.begins[r] = (*ends)[r] - first;
  }
  return steps;
}

}  // namespace quadrille
