// Whole-number arithmetic as shells have it: `$((GPUS / (TP * PP)))`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace quadrille::scenario {

// The value of an expression of whole numbers, names (with or without `$` and braces), + - * / %
// and parentheses. Nothing when it is no such expression, a name is not known to `lookup`, a
// division is by zero, or a result leaves 64 bits.
[[nodiscard]] std::optional<std::int64_t> EvaluateShellArithmetic(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& lookup);

}  // namespace quadrille::scenario
