// Quantities as text for people: a unit that fits, and as many digits as mean something.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::report {

// Four significant digits in the largest of s, ms, us, ns that leaves at least 1: "19.84 s", "530.2
// ms", "0 s".
[[nodiscard]] std::string TimeText(Duration duration);

// Decimal units, three or four significant digits: "470 MB", "68.02 GB", "12 B".
[[nodiscard]] std::string BytesText(Bytes bytes);

// "450 GB/s".
[[nodiscard]] std::string RateText(BytesPerSecond rate);

// "989.4 TFLOP/s".
[[nodiscard]] std::string FlopsText(FlopsPerSecond rate);

// "12.7 %".
[[nodiscard]] std::string PercentText(Ratio ratio);

// All digits, in groups of three: "12,345,678".
[[nodiscard]] std::string CountText(std::int64_t count);

// "405.9 B" (1e9), "8.03 B", "124 M".
[[nodiscard]] std::string ParametersText(ParameterCount parameters);

// "15.6 T", "300 B", "131,072": all digits below a million, where they mean something.
[[nodiscard]] std::string TokensText(TokenCount tokens);

// "54.3 days", below a tenth of a day as TimeText has it: "1.382 s".
[[nodiscard]] std::string DaysText(double days);

// "2.788 M", "180,000", "0.0246".
[[nodiscard]] std::string GpuHoursText(double hours);

// Sixteen hexadecimal digits, for hashes and fingerprints.
[[nodiscard]] std::string HexText(std::uint64_t value);

// Seconds for JSON and CSV. Unlike ToSeconds correctly rounded, so that the shortest decimal that
// reads back is the exact time.
[[nodiscard]] double Seconds(Duration duration);

// Seconds with `decimals` digits after the point and no unit, for the columns of a table.
[[nodiscard]] std::string SecondsText(Duration duration, int decimals);

}  // namespace quadrille::report
