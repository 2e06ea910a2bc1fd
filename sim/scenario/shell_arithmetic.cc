#include "sim/scenario/shell_arithmetic.h"

#include "sim/scenario/quantity_text.h"

namespace quadrille::scenario {
namespace {

using Value = std::optional<std::int64_t>;
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

constexpr int kDeepest = 64;  // parentheses within each other

// Recursive descent: sum of products of factors.
class Evaluator {
 public:
  Evaluator(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Value Whole() {
    const Value value = Sum();
    Skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  [[nodiscard]] char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r') ++at_;
  }
  char Operator(std::string_view among) {
    Skip();
    return Peek() != '\0' && among.find(Peek()) != std::string_view::npos ? text_[at_++] : '\0';
  }

  Value Sum() {
    Value left = Product();
    while (left) {
      const char op = Operator("+-");
      if (op == '\0') break;
      left = Apply(op, left, Product());
    }
    return left;
  }

  Value Product() {
    Value left = Factor();
    while (left) {
      const char op = Operator("*/%");
      if (op == '\0') break;
      left = Apply(op, left, Factor());
    }
    return left;
  }

  static Value Apply(char op, Value left, Value right) {
    if (!left || !right) return std::nullopt;
    std::int64_t result = 0;
    switch (op) {
      case '+': return __builtin_add_overflow(*left, *right, &result) ? Value{} : Value{result};
      case '-': return __builtin_sub_overflow(*left, *right, &result) ? Value{} : Value{result};
      case '*': return __builtin_mul_overflow(*left, *right, &result) ? Value{} : Value{result};
      default: break;
    }
    if (*right == 0 || *right == -1) return std::nullopt;  // -1 may overflow, and nobody divides so
    return op == '/' ? *left / *right : *left % *right;
  }

  Value Factor() {
    Skip();
    if (Peek() == '(') {
      if (++depth_ > kDeepest) return std::nullopt;
      ++at_;
      const Value inner = Sum();
      if (Operator(")") == '\0') return std::nullopt;
      --depth_;
      return inner;
    }
    bool brace = false;
    if (Peek() == '$') {
      ++at_;
      brace = Peek() == '{';
      if (brace) ++at_;
    }
    std::string word;
    const auto is_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (is_word(Peek())) word += text_[at_++];
    if (brace && Operator("}") == '\0') return std::nullopt;
    if (word.empty()) return std::nullopt;
    if (word.front() < '0' || word.front() > '9') {
      const std::optional<std::string> known = lookup_(word);
      if (!known) return std::nullopt;
      word = *known;
    }
    const Parsed<std::int64_t> number = ParseInteger(word);
    return number ? Value{*number} : std::nullopt;
  }

  std::string_view text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> EvaluateShellArithmetic(std::string_view text, const Lookup& lookup) {
  return Evaluator(text, lookup).Whole();
}

}  // namespace quadrille::scenario
