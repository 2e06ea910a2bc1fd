// A progress bar for runs that take longer than one looks away.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/units.h"
#include "sim/report/terminal.h"

namespace quadrille::report {

// "simulating  42 % [########            ] 3 s left" in at most `width` columns. `elapsed` is
// wall-clock time; REQUIRES: width >= 20.
[[nodiscard]] std::string ProgressLine(std::string_view label, Ratio done,
                                       std::chrono::steady_clock::duration elapsed,
                                       std::size_t width, bool color);

// Draws the line above, first after one second, then a few times a second, and erases it when
// destroyed. Silent unless `terminal` is interactive. Only for one thread.
class ProgressBar {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Output = std::function<void(std::string_view)>;

  // Writes to standard error with the real clock; the first form looks at the terminal there.
  explicit ProgressBar(std::string label);
  ProgressBar(std::string label, const Terminal& terminal);
  ProgressBar(std::string label, const Terminal& terminal, Output output, Clock clock);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  // `done` is clamped to [0, 1].
  void Update(Ratio done);
  // Erases the bar, so that something else can be printed. A later Update draws it again.
  void Clear();
  // Erases the bar for good: later updates are ignored.
  void Finish();

 private:
  std::string label_;
  Terminal terminal_;
  Output output_;
  Clock clock_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point next_;
  bool drawn_ = false;
};

}  // namespace quadrille::report
