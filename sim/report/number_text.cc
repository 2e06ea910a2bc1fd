#include "sim/report/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace quadrille::report {
namespace {

struct Scaled {
  double value = 0.0;
  const char* unit = "";
};

// The largest unit of `units` (steps of 1000, ascending from 1) in which `value`, rounded to four
// digits, is at least 1.
template <std::size_t N>
Scaled FitUnit(double value, const std::array<const char*, N>& units) {
  std::size_t i = 0;
  while (i + 1 < N && std::abs(value) >= 999.95) {
    value /= 1000.0;
    ++i;
  }
  return {value, units[i]};
}

// Four significant digits for numbers below 1000, without a point that says nothing ("470", not
// "470.0").
std::string FourDigits(double value) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 999.95   ? 0
                       : magnitude >= 99.995 ? 1
                       : magnitude >= 9.9995 ? 2
                                             : 3;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string WithUnit(Scaled scaled) { return FourDigits(scaled.value) + " " + scaled.unit; }

}  // namespace

std::string TimeText(Duration duration) {
  if (duration.count() == 0) return "0 s";
  const double seconds = Seconds(duration);
  if (std::abs(seconds) >= 0.99995) return FourDigits(seconds) + " s";
  static constexpr std::array<const char*, 4> kUnits = {"ps", "ns", "us", "ms"};
  return WithUnit(FitUnit(static_cast<double>(duration.count()), kUnits));
}

std::string BytesText(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  return WithUnit(FitUnit(static_cast<double>(bytes.value()), kUnits));
}

std::string RateText(BytesPerSecond rate) {
  static constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return WithUnit(FitUnit(rate.value(), kUnits));
}

std::string FlopsText(FlopsPerSecond rate) {
  // Always tera: published figures are compared in this unit.
  return FourDigits(rate.value() / 1e12) + " TFLOP/s";
}

std::string PercentText(Ratio ratio) {
  std::string text = fmt::format("{:.1f} %", ratio.value() * 100.0);
  return text == "-0.0 %" ? "0.0 %" : text;
}

std::string CountText(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string ParametersText(ParameterCount parameters) {
  static constexpr std::array<const char*, 5> kUnits = {"", "K", "M", "B", "T"};
  const Scaled scaled = FitUnit(static_cast<double>(parameters.value()), kUnits);
  return scaled.unit[0] == '\0' ? FourDigits(scaled.value) : WithUnit(scaled);
}

std::string TokensText(TokenCount tokens) {
  if (tokens.value() < 1'000'000) return CountText(tokens.value());
  static constexpr std::array<const char*, 5> kUnits = {"", "K", "M", "B", "T"};
  return WithUnit(FitUnit(static_cast<double>(tokens.value()), kUnits));
}

std::string DaysText(double days) {
  if (days < 0.1) return TimeText(FromSeconds(days * 86400.0));
  return fmt::format("{:.{}f} days", days, days >= 10.0 ? 1 : 2);
}

std::string GpuHoursText(double hours) {
  if (hours >= 1e6) return fmt::format("{:.4g} M", hours / 1e6);
  if (hours >= 1e3) return CountText(std::llround(hours));
  return fmt::format("{:.3g}", hours);
}

std::string HexText(std::uint64_t value) { return fmt::format("{:016x}", value); }

double Seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e12; }

std::string SecondsText(Duration duration, int decimals) {
  std::string text = fmt::format("{:.{}f}", Seconds(duration), decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

}  // namespace quadrille::report
