// Conditions of a shell script, as far as they are known without running it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quadrille::scenario {

// True, false, or not known.
using ShellTruth = std::optional<bool>;

[[nodiscard]] ShellTruth ShellNot(ShellTruth a);

// Whether `text` matches a pattern of `*`, `?` and literal characters. Not known when either holds
// something unevaluated or the pattern a set in brackets.
[[nodiscard]] ShellTruth MatchesShellPattern(std::string_view text, std::string_view pattern);

// The status of a command of these words: `[ ... ]`, `test ...`, `[[ ... ]]`, `true`, `false`, `:`,
// and `!` before one. Of tests, comparisons of text (=, ==, !=, <, >, -z, -n) and of whole numbers
// (-eq, -ne, -lt, -le, -gt, -ge), joined by !, &&, ||, -a, -o and parentheses. Not known: other
// commands, questions about files, and operands that hold something unevaluated.
[[nodiscard]] ShellTruth StatusOfShellCommand(std::span<const std::string> words);

// The status of `((text))`: a comparison of whole numbers, or one of them against 0. `lookup` as in
// EvaluateShellArithmetic.
[[nodiscard]] ShellTruth StatusOfShellArithmetic(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& lookup);

}  // namespace quadrille::scenario
