// Tests by recursive descent in three-valued logic: `false && unknown` is false, `true || unknown`
// is true, and everything else that meets an unknown operand is unknown.
#include "sim/scenario/shell_conditions.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "sim/scenario/shell_arithmetic.h"

namespace quadrille::scenario {
namespace {

constexpr int kDeepest = 64;  // parentheses and `!` within each other

ShellTruth And(ShellTruth a, ShellTruth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? ShellTruth(true) : std::nullopt;
}

ShellTruth Or(ShellTruth a, ShellTruth b) { return ShellNot(And(ShellNot(a), ShellNot(b))); }

bool IsKnown(std::string_view text) { return text.find_first_of("$`") == std::string_view::npos; }

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

ShellTruth CompareNumbers(std::int64_t a, std::string_view relation, std::int64_t b) {
  if (relation == "-eq" || relation == "==") return a == b;
  if (relation == "-ne" || relation == "!=") return a != b;
  if (relation == "-lt" || relation == "<") return a < b;
  if (relation == "-le" || relation == "<=") return a <= b;
  if (relation == "-gt" || relation == ">") return a > b;
  if (relation == "-ge" || relation == ">=") return a >= b;
  return std::nullopt;
}

bool Matches(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;  // the last star, and where it began to match
  std::size_t star_at = 0;
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_at = at;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || pattern[in_pattern] == text[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

// The words between the brackets of a test. `patterns`: == compares with a pattern, as [[ does.
class Test {
 public:
  Test(std::span<const std::string> words, bool patterns) : words_(words), patterns_(patterns) {}

  ShellTruth Value() {
    if (words_.empty()) return false;
    const ShellTruth value = Alternatives();
    return at_ == words_.size() ? value : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view Peek(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? std::string_view(words_[at_ + ahead]) : "";
  }
  bool Take(std::string_view word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }

  ShellTruth Alternatives() {
    ShellTruth value = Conjunction();
    while (Take("||") || Take("-o")) value = Or(value, Conjunction());
    return value;
  }

  ShellTruth Conjunction() {
    ShellTruth value = Negation();
    while (Take("&&") || Take("-a")) value = And(value, Negation());
    return value;
  }

  ShellTruth Negation() {
    if (++depth_ > kDeepest) return std::nullopt;
    if (words_.size() - at_ > 1 && Take("!")) return ShellNot(Negation());
    if (words_.size() - at_ > 1 && Take("(")) {
      const ShellTruth value = Alternatives();
      return Take(")") ? value : std::nullopt;
    }
    return Primary();
  }

  ShellTruth Primary() {
    const std::size_t left = words_.size() - at_;
    if (left >= 3 && IsComparison(Peek(1))) {
      const ShellTruth value = Compare(Peek(), Peek(1), Peek(2));
      at_ += 3;
      return value;
    }
    if (left >= 2 && Peek().size() == 2 && Peek()[0] == '-' && !IsJoint(Peek(1))) {
      const std::string_view question = Peek();
      const std::string_view operand = Peek(1);
      at_ += 2;
      if (!IsKnown(operand) || (question != "-z" && question != "-n")) return std::nullopt;
      return operand.empty() == (question == "-z");
    }
    if (left == 0) return std::nullopt;
    const std::string_view word = words_[at_++];
    return IsKnown(word) ? ShellTruth(!word.empty()) : std::nullopt;
  }

  static bool IsJoint(std::string_view word) {
    return word == "&&" || word == "||" || word == "-a" || word == "-o" || word == ")";
  }

  static bool IsComparison(std::string_view word) {
    static constexpr std::array<std::string_view, 15> kComparisons = {
        "=",   "==",  "!=",  "<",   ">",   "=~",  "-eq", "-ne",
        "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"};
    for (std::string_view comparison : kComparisons) {
      if (word == comparison) return true;
    }
    return false;
  }

  [[nodiscard]] ShellTruth Compare(std::string_view a, std::string_view relation,
                                   std::string_view b) const {
    if (!IsKnown(a) || !IsKnown(b) || relation == "=~") return std::nullopt;
    if (relation == "<") return a < b;
    if (relation == ">") return a > b;
    if (relation[0] != '-') {
      const ShellTruth same = patterns_ ? MatchesShellPattern(a, b) : ShellTruth(a == b);
      return relation == "!=" ? ShellNot(same) : same;
    }
    const std::optional<std::int64_t> left = Number(a);
    const std::optional<std::int64_t> right = Number(b);
    return left && right ? CompareNumbers(*left, relation, *right) : std::nullopt;
  }

  std::span<const std::string> words_;
  bool patterns_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellTruth ShellNot(ShellTruth a) { return a ? ShellTruth(!*a) : std::nullopt; }

ShellTruth MatchesShellPattern(std::string_view text, std::string_view pattern) {
  if (!IsKnown(text) || !IsKnown(pattern)) return std::nullopt;
  if (pattern.find('[') != std::string_view::npos) return std::nullopt;
  return Matches(text, pattern);
}

ShellTruth StatusOfShellCommand(std::span<const std::string> words) {
  bool negated = false;
  while (!words.empty() && words.front() == "!") {
    negated = !negated;
    words = words.subspan(1);
  }
  if (words.empty()) return std::nullopt;
  const std::string& first = words.front();
  ShellTruth status;
  if (first == "true" || first == ":") {
    status = true;
  } else if (first == "false") {
    status = false;
  } else if (first == "test") {
    status = Test(words.subspan(1), false).Value();
  } else if ((first == "[" && words.back() == "]") || (first == "[[" && words.back() == "]]")) {
    status = Test(words.subspan(1, words.size() - 2), first == "[[").Value();
  }
  return negated ? ShellNot(status) : status;
}

ShellTruth StatusOfShellArithmetic(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& lookup) {
  const auto value = [&](std::string_view part) { return EvaluateShellArithmetic(part, lookup); };
  const std::size_t at = text.find_first_of("<>=!");
  if (at == std::string_view::npos) {
    const std::optional<std::int64_t> number = value(text);
    return number ? ShellTruth(*number != 0) : std::nullopt;
  }
  const std::size_t length = text.substr(at + 1, 1) == "=" ? 2 : 1;
  const std::optional<std::int64_t> left = value(text.substr(0, at));
  const std::optional<std::int64_t> right = value(text.substr(at + length));
  return left && right ? CompareNumbers(*left, text.substr(at, length), *right) : std::nullopt;
}

}  // namespace quadrille::scenario
