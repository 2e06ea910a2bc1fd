#include "sim/scenario/quantity_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr double kKi = 1024.0;
constexpr Unit kByteUnits[] = {{"B", 1},
                               {"kB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", kKi},
                               {"MiB", kKi* kKi},
                               {"GiB", kKi* kKi* kKi},
                               {"TiB", kKi* kKi* kKi* kKi}};
constexpr Unit kBandwidthUnits[] = {{"B/s", 1},
                                    {"kB/s", 1e3},
                                    {"MB/s", 1e6},
                                    {"GB/s", 1e9},
                                    {"TB/s", 1e12},
                                    {"MiB/s", kKi* kKi},
                                    {"GiB/s", kKi* kKi* kKi},
                                    {"TiB/s", kKi* kKi* kKi* kKi},
                                    {"b/s", 0.125},
                                    {"kb/s", 0.125e3},
                                    {"Mb/s", 0.125e6},
                                    {"Gb/s", 0.125e9},
                                    {"Tb/s", 0.125e12}};
constexpr Unit kFlopRateUnits[] = {
    {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};
// In picoseconds, so that decimal text is scaled once.
constexpr Unit kDurationUnits[] = {{"ps", 1},   {"ns", 1e3},    {"us", 1e6},   {"ms", 1e9},
                                   {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}};
// In microseconds.
constexpr Unit kWallTimeUnits[] = {
    {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86'400e6}};
constexpr Unit kRatioUnits[] = {{"", 1}, {"%", 0.01}};
constexpr Unit kCountUnits[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Length of the decimal number at the start of `text`: [sign] digits [. digits] [e [sign] digits];
// 0 when there is none.
std::size_t NumberLength(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i > start;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (!digits()) return 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return 0;
  }
  const std::size_t mantissa = i;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (!digits()) return mantissa;
  }
  return i;
}

tl::unexpected<std::string> Wrong(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

// REQUIRES: all of `text` is what NumberLength accepts.
Parsed<double> ReadDouble(std::string_view text) {
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    return Wrong(fmt::format("{} is out of range", Quoted(text)));
  }
  return value;
}

std::string ListUnits(std::span<const Unit> units) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) {
    if (!unit.name.empty()) names.push_back(unit.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// A number and one of `units`, scaled; `example` shows how it should have looked.
Parsed<double> ParseScaled(std::string_view text, std::span<const Unit> units,
                           std::string_view example) {
  const std::size_t length = NumberLength(text);
  if (length == 0) {
    return Wrong(fmt::format("expected a quantity such as '{}', got {}", example, Quoted(text)));
  }
  const Parsed<double> number = ReadDouble(text.substr(0, length));
  if (!number) return number;
  if (*number < 0) return Wrong(fmt::format("{} must not be negative", Quoted(text)));
  std::string_view name = text.substr(length);
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double value = *number * unit.scale;
    if (!std::isfinite(value)) return Wrong(fmt::format("{} is out of range", Quoted(text)));
    return value;
  }
  if (name.empty()) {
    return Wrong(fmt::format("{} has no unit, as in '{}'; accepted: {}", Quoted(text), example,
                             ListUnits(units)));
  }
  return Wrong(fmt::format("unknown unit {} in {}; accepted: {}", Quoted(name), Quoted(text),
                           ListUnits(units)));
}

constexpr double kMaxWhole = 9.2e18;  // rounds safely into a signed 64-bit integer

Parsed<std::int64_t> ParseWhole(std::string_view text, std::span<const Unit> units,
                                std::string_view example) {
  const Parsed<double> value = ParseScaled(text, units, example);
  if (!value) return tl::unexpected(value.error());
  if (*value > kMaxWhole) return Wrong(fmt::format("{} is out of range", Quoted(text)));
  return std::llround(*value);
}

template <typename T>
Parsed<T> ParseDecimal(std::string_view text, std::string_view digits) {
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) {
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      return Wrong(fmt::format("{}: write the number in decimal", Quoted(text)));
    }
    return Wrong(fmt::format("expected a whole number, got {}", Quoted(text)));
  }
  if (digits.size() > 1 && digits.front() == '0') {
    return Wrong(fmt::format("{} has a leading zero, which YAML may read as octal", Quoted(text)));
  }
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Wrong(fmt::format("{} is out of range", Quoted(text)));
  }
  return value;
}

}  // namespace

Parsed<Bytes> ParseBytes(std::string_view text) {
  return ParseWhole(text, kByteUnits, "80 GiB").map([](std::int64_t v) { return Bytes(v); });
}

Parsed<BytesPerSecond> ParseBandwidth(std::string_view text) {
  return ParseScaled(text, kBandwidthUnits, "450 GB/s").map([](double v) {
    return BytesPerSecond(v);
  });
}

Parsed<FlopsPerSecond> ParseFlopRate(std::string_view text) {
  return ParseScaled(text, kFlopRateUnits, "989 TFLOP/s").map([](double v) {
    return FlopsPerSecond(v);
  });
}

Parsed<Duration> ParseDuration(std::string_view text) {
  return ParseWhole(text, kDurationUnits, "0.7 us").map([](std::int64_t v) { return Duration(v); });
}

Parsed<Duration> ParseSignedDuration(std::string_view text) {
  if (!text.starts_with('-')) return ParseDuration(text);
  return ParseDuration(text.substr(1)).map([](Duration d) { return -d; });
}

Parsed<reliability::WallTime> ParseWallTime(std::string_view text) {
  return ParseWhole(text, kWallTimeUnits, "10 min").map([](std::int64_t v) {
    return reliability::WallTime(v);
  });
}

Parsed<Ratio> ParseRatio(std::string_view text) {
  return ParseScaled(text, kRatioUnits, "95 %").map([](double v) { return Ratio(v); });
}

Parsed<TokenCount> ParseTokens(std::string_view text) {
  return ParseWhole(text, kCountUnits, "15.6T").map([](std::int64_t v) { return TokenCount(v); });
}

Parsed<ParameterCount> ParseParameters(std::string_view text) {
  return ParseWhole(text, kCountUnits, "40M").map([](std::int64_t v) { return ParameterCount(v); });
}

Parsed<std::int64_t> ParseInteger(std::string_view text) {
  return ParseDecimal<std::int64_t>(text, text.starts_with('-') ? text.substr(1) : text);
}

Parsed<std::uint64_t> ParseUnsigned(std::string_view text) {
  if (text.starts_with('-')) {
    return Wrong(fmt::format("{} must not be negative", Quoted(text)));
  }
  return ParseDecimal<std::uint64_t>(text, text);
}

Parsed<double> ParseNumber(std::string_view text) {
  const std::size_t length = NumberLength(text);
  if (length == 0 || length != text.size()) {
    return Wrong(fmt::format("expected a number, got {}", Quoted(text)));
  }
  return ReadDouble(text);
}

Parsed<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Wrong(fmt::format("expected true or false, got {}", Quoted(text)));
}

std::string CanonicalQuantity(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    std::string list;
    for (text = text.substr(1, text.size() - 2); !text.empty();) {
      const std::size_t comma = std::min(text.find(", "), text.size());
      list += (list.empty() ? "" : ", ") + CanonicalQuantity(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 2, text.size()));
    }
    return fmt::format("[{}]", list);
  }
  const std::size_t length = NumberLength(text);
  const Parsed<double> number = length == 0 ? Wrong("") : ReadDouble(text.substr(0, length));
  std::string_view name = text.substr(length);
  // A seed may have more digits than a double.
  constexpr double kExactWhole = 9e15;
  if (!number || (name.empty() && std::abs(*number) > kExactWhole)) return std::string(text);
  // Counts stand before bytes and want no space: "2B" parameters, "2 B" of memory.
  struct Family {
    std::span<const Unit> units;
    double scale;
    std::string_view base;
  };
  for (const Family& family :
       {Family{kCountUnits, 1, ""}, Family{kByteUnits, 1, " B"}, Family{kBandwidthUnits, 1, " B/s"},
        Family{kFlopRateUnits, 1, " FLOP/s"}, Family{kDurationUnits, 1, " ps"},
        Family{kWallTimeUnits, 1e6, " ps"}, Family{kRatioUnits, 1, ""}}) {
    for (const Unit& unit : family.units) {
      if (unit.name != name) continue;
      return fmt::format("{:.15g}{}", *number * unit.scale * family.scale, family.base);
    }
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  }
  return std::string(text);
}

}  // namespace quadrille::scenario
