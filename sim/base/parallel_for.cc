#include "sim/base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace quadrille {

void ParallelFor(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                 const std::function<void(Ratio)>& progress) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  const std::size_t workers =
      std::min(count, static_cast<std::size_t>(std::clamp(threads, 1, 256)));
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
      ++done;
    }
  };
  std::vector<std::thread> pool;
  for (std::size_t i = 0; i < workers; ++i) pool.emplace_back(run);
  while (progress && done < count) {
    progress(Ratio(static_cast<double>(done) / static_cast<double>(count)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : pool) thread.join();
}

}  // namespace quadrille
