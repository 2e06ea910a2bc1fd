// Quantities as people write them: a number, a space, a unit. `450 GB/s`, `400 Gb/s`, `80 GiB`,
// `0.7 us`, `989 TFLOP/s`.
//
// Prefixes are exact: k, M, G, T, P, E are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024; B is a
// byte and b is a bit. Nothing is guessed: a number without its unit is an error that lists the
// accepted ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/reliability/reliability_spec.h"

namespace quadrille::scenario {

// The value, or what is wrong with the text in words that follow "key: ".
template <typename T>
using Parsed = tl::expected<T, std::string>;

// All values are finite and, unless it says otherwise, not negative. Whole quantities are rounded
// to the nearest unit.
[[nodiscard]] Parsed<Bytes> ParseBytes(std::string_view text);
[[nodiscard]] Parsed<BytesPerSecond> ParseBandwidth(std::string_view text);  // per direction
[[nodiscard]] Parsed<FlopsPerSecond> ParseFlopRate(std::string_view text);
[[nodiscard]] Parsed<Duration> ParseDuration(std::string_view text);  // to the picosecond
// The same with either sign: a correction, not a length of time.
[[nodiscard]] Parsed<Duration> ParseSignedDuration(std::string_view text);
// Time on the wall clock, to the microsecond: "54 d", "10 min".
[[nodiscard]] Parsed<reliability::WallTime> ParseWallTime(std::string_view text);
// "95 %" or "0.95".
[[nodiscard]] Parsed<Ratio> ParseRatio(std::string_view text);
// "15.6T", "2B", "4096": counts take the letters of the field, K, M, B and T, powers of 1000,
// without a space.
[[nodiscard]] Parsed<TokenCount> ParseTokens(std::string_view text);
[[nodiscard]] Parsed<ParameterCount> ParseParameters(std::string_view text);

// The same text for texts that say the same: "400 Gb/s" and "50 GB/s", "95 %" and "0.95", and lists
// of them. What is no quantity is left as it is.
[[nodiscard]] std::string CanonicalQuantity(std::string_view text);

// A whole number in decimal: no sign but '-', no leading zero, no exponent, no underscores, no 0x.
[[nodiscard]] Parsed<std::int64_t> ParseInteger(std::string_view text);
[[nodiscard]] Parsed<std::uint64_t> ParseUnsigned(std::string_view text);
// A finite decimal number of either sign.
[[nodiscard]] Parsed<double> ParseNumber(std::string_view text);
// `true` or `false`, in no other spelling.
[[nodiscard]] Parsed<bool> ParseBool(std::string_view text);

}  // namespace quadrille::scenario
