// Appends pieces of JSON to a file through a buffer: std::to_chars, no document in memory, no
// formatting library.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/time.h"
#include "sim/report/gzip_file.h"

namespace quadrille::report {

// `text` as the inside of a JSON string: quotes, backslashes and control characters escaped, bytes
// that are not UTF-8 replaced.
[[nodiscard]] std::string JsonEscaped(std::string_view text);

// How a time becomes microseconds. Both are monotone, so intervals that do not overlap stay so.
enum class MicrosecondForm : std::uint8_t {
  kNanoseconds,  // rounded to a nanosecond, three decimals: "12.345"
  kWhole,        // rounded down to a microsecond: "12"
};

// A time in the unit of `form`: nanoseconds or microseconds.
[[nodiscard]] constexpr std::int64_t ToTicks(TimePoint time, MicrosecondForm form) {
  const std::int64_t picoseconds = time.time_since_epoch().count();
  return form == MicrosecondForm::kNanoseconds ? (picoseconds + 500) / 1000
                                               : picoseconds / 1'000'000;
}

class JsonStream {
 public:
  JsonStream(GzipFile file, std::size_t buffer_bytes)
      : file_(std::move(file)), limit_(buffer_bytes) {
    buffer_.reserve(limit_ + kSlack);
  }

  void Raw(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= limit_) Flush();
  }
  void Integer(std::int64_t value) {
    char digits[24];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
    buffer_.append(digits, end.ptr);
  }
  // Ticks as microseconds. REQUIRES: ticks >= 0.
  void Microseconds(std::int64_t ticks, MicrosecondForm form) {
    if (form == MicrosecondForm::kWhole) {
      Integer(ticks);
      return;
    }
    Integer(ticks / 1000);
    const auto rest = static_cast<int>(ticks % 1000);
    if (rest == 0) return;
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    buffer_.append(decimals, 4);
  }

  // The keys ts and dur of a slice. A duration in nanoseconds is written a tenth of one short:
  // readers that keep microseconds in a double (speedscope) would else find the sum of both a
  // rounding error after the begin of the next slice and nest that, and all that follow, in this
  // one. Readers that keep nanoseconds (Perfetto) round it to the true duration.
  // REQUIRES: 0 <= begin <= end.
  void Slice(std::int64_t begin, std::int64_t end, MicrosecondForm form) {
    Raw("\"ts\":");
    Microseconds(begin, form);
    Raw(",\"dur\":");
    if (form == MicrosecondForm::kWhole || begin == end) {
      Microseconds(end - begin, form);
      return;
    }
    const std::int64_t below = end - begin - 1;
    Integer(below / 1000);
    const auto rest = static_cast<int>(below % 1000);
    const char decimals[5] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10), '9'};
    buffer_.append(decimals, 5);
  }

  [[nodiscard]] bool failed() const { return file_.failed(); }
  [[nodiscard]] std::int64_t raw_bytes() const { return file_.raw_bytes(); }
  [[nodiscard]] Result<void> Commit() {
    Flush();
    return file_.Commit();
  }

 private:
  static constexpr std::size_t kSlack = 1024;

  void Flush() {
    file_.Write(buffer_);
    buffer_.clear();
  }

  GzipFile file_;
  std::string buffer_;
  std::size_t limit_;
};

}  // namespace quadrille::report
