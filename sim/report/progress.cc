#include "sim/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "sim/report/text_table.h"

namespace quadrille::report {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kQuietAtFirst{1000};
constexpr std::chrono::milliseconds kBetweenDrawings{200};
constexpr std::size_t kLongestBar = 40;
constexpr double kLeastForEstimate = 0.02;
constexpr std::string_view kErase = "\r\x1b[K";

std::string RemainingText(double done, steady_clock::duration elapsed) {
  if (done < kLeastForEstimate || done >= 1.0) return "";
  const double seconds = std::chrono::duration<double>(elapsed).count() * (1.0 - done) / done;
  if (seconds >= 5400.0) return fmt::format(" {:.1f} h left", seconds / 3600.0);
  if (seconds >= 90.0) return fmt::format(" {:.0f} min left", seconds / 60.0);
  return fmt::format(" {:.0f} s left", seconds);
}

// Progress that cannot be shown is no reason to fail.
void WriteToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string ProgressLine(std::string_view label, Ratio done, steady_clock::duration elapsed,
                         std::size_t width, bool color) {
  const double share = std::clamp(done.value(), 0.0, 1.0);
  const std::string head = fmt::format("{} {:3.0f} % [", label, share * 100.0);
  const std::string tail = "]" + RemainingText(share, elapsed);
  const std::size_t text = DisplayWidth(head) + DisplayWidth(tail);
  const std::size_t room = width > text ? std::min(width - text, kLongestBar) : 0;
  if (room < 4) return fmt::format("{:3.0f} %", share * 100.0);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(room));
  const TableStyle style{.color = color, .width = width};
  return head + Painted(std::string(filled, '#'), Emphasis::kGood, style) +
         std::string(room - filled, ' ') + tail;
}

ProgressBar::ProgressBar(std::string label)
    : ProgressBar(std::move(label), DetectTerminal(STDERR_FILENO)) {}

ProgressBar::ProgressBar(std::string label, const Terminal& terminal)
    : ProgressBar(std::move(label), terminal, WriteToStandardError, steady_clock::now) {}

ProgressBar::ProgressBar(std::string label, const Terminal& terminal, Output output, Clock clock)
    : label_(std::move(label)),
      terminal_(terminal),
      output_(std::move(output)),
      clock_(std::move(clock)),
      begin_(clock_()),
      next_(begin_ + kQuietAtFirst) {}

ProgressBar::~ProgressBar() { Finish(); }

void ProgressBar::Update(Ratio done) {
  if (!terminal_.interactive) return;
  const steady_clock::time_point now = clock_();
  if (now < next_) return;
  next_ = now + kBetweenDrawings;
  // One column is left free: terminals differ in what they do at the last one.
  output_(std::string(kErase) +
          ProgressLine(label_, done, now - begin_, terminal_.width - 1, terminal_.color));
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  output_(kErase);
  drawn_ = false;
}

void ProgressBar::Finish() {
  Clear();
  terminal_.interactive = false;
}

}  // namespace quadrille::report
