#include "sim/compute/slowest_gpu.h"

#include <iterator>

#include "sim/base/check.h"

namespace quadrille::compute {
namespace {

// Integrals of n x phi(x) Phi(x)^(n-1) for n = 1, 2, 4, ... 2^20.
constexpr double kLargest[] = {0.0,    0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437,
                               2.5946, 2.8269, 3.0439, 3.2482, 3.4418, 3.6261, 3.8023,
                               3.9714, 4.1341, 4.2911, 4.4430, 4.5903, 4.7332, 4.8723};

}  // namespace

double ExpectedLargestNormal(std::int64_t count) {
  QUADRILLE_CHECK(count >= 1, "the largest of {} numbers", count);
  std::size_t power = 0;
  while (power + 1 < std::size(kLargest) && (std::int64_t{2} << power) <= count) ++power;
  if (power + 1 == std::size(kLargest)) return kLargest[power];
  const double low = static_cast<double>(std::int64_t{1} << power);
  const double share = (static_cast<double>(count) - low) / low;
  return kLargest[power] + share * (kLargest[power + 1] - kLargest[power]);
}

double SlowestGpuFactor(double spread, std::int64_t gpus) {
  QUADRILLE_CHECK(spread >= 0.0, "a standard deviation of {}", spread);
  return 1.0 + spread * ExpectedLargestNormal(gpus);
}

}  // namespace quadrille::compute
