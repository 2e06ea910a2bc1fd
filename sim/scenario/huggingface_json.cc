// nlohmann's SAX parser tells what comes, not where. Its lexer reads character by character, so the
// end of each token is known from an iterator that counts, and its start is the first character
// after the previous token that is no blank, colon or comma.
//
// 1. `end_` is the end of the last token, or one character beyond a number, whose end the lexer
//    only sees on the next character; that one is a blank, a comma or a closing bracket, none of
//    which starts a value.
// 2. Open containers are a stack of values; a finished one moves into its parent.
#include "sim/scenario/huggingface_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace quadrille::scenario {
namespace {

using Json = nlohmann::json;

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char* begin, std::size_t* count)
      : at_(at), begin_(begin), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    *count_ = static_cast<std::size_t>(at_ - begin_);
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char* begin_;
  std::size_t* count_;
};

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, const std::string& file, const std::size_t* read,
              Diagnostics* problems)
      : text_(text), file_(file), read_(read), problems_(problems) {}

  bool null() override {
    (void)Start();
    if (!open_.empty() && open_.back().is_map()) return true;
    return Add(YamlValue{});
  }
  bool boolean(bool value) override { return Scalar(value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override {
    return Scalar(fmt::format("{}", value), false);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Scalar(fmt::format("{}", value), false);
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return Scalar(text, false);
  }
  bool string(string_t& value) override { return Scalar(std::move(value), true); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return Open(YamlValue::Kind::kMap); }
  bool start_array(std::size_t /*size*/) override { return Open(YamlValue::Kind::kSequence); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    const SourcePosition position = Start();
    if (open_.back().Find(value) != nullptr) {
      problems_->push_back({position, fmt::format("key '{}' is given twice", value)});
    }
    keys_.back() = {std::move(value), position};
    return true;
  }
  bool parse_error(std::size_t offset, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    std::string message = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": the
    // place is ours to say.
    const std::size_t colon = message.find(": ");
    if (colon != std::string::npos) message.erase(0, colon + 2);
    problems_->push_back({PositionAt(offset > 0 ? offset - 1 : 0), "not JSON: " + message});
    return false;
  }

  [[nodiscard]] std::optional<YamlValue> Take() { return std::move(root_); }

 private:
  struct Key {
    std::string text;
    SourcePosition position;
  };

  SourcePosition PositionAt(std::size_t offset) const {
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    return {file_, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            1 + static_cast<int>(before.size() - line_start)};
  }

  // The start of the token that was just read.
  SourcePosition Start() {
    const std::size_t start = std::min(text_.find_first_not_of(" \t\r\n:,", end_), text_.size());
    end_ = *read_;
    return PositionAt(start);
  }

  bool Scalar(std::string text, bool quoted) {
    YamlValue value;
    value.kind = YamlValue::Kind::kScalar;
    value.position = Start();
    value.text = std::move(text);
    value.quoted = quoted;
    return Add(std::move(value));
  }

  bool Open(YamlValue::Kind kind) {
    YamlValue value;
    value.kind = kind;
    value.position = Start();
    if (open_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      problems_->push_back({value.position, fmt::format("nested deeper than {}", kMaxYamlDepth)});
      return false;
    }
    open_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }

  bool Close() {
    (void)Start();
    YamlValue value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return Add(std::move(value));
  }

  bool Add(YamlValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    YamlValue& parent = open_.back();
    if (!parent.is_map()) {
      parent.items.push_back(std::move(value));
    } else if (parent.Find(keys_.back().text) == nullptr) {
      parent.entries.push_back(
          {std::move(keys_.back().text), keys_.back().position, std::move(value)});
    }
    return true;
  }

  std::string_view text_;
  std::string file_;
  const std::size_t* read_;
  Diagnostics* problems_;
  std::size_t end_ = 0;
  std::vector<YamlValue> open_;
  std::vector<Key> keys_;  // of each open container the key that waits for its value
  std::optional<YamlValue> root_;
};

}  // namespace

std::optional<YamlValue> ParseJson(std::string_view text, const std::string& file,
                                   Diagnostics* problems) {
  std::size_t read = 0;
  TreeBuilder builder(text, file, &read, problems);
  const char* begin = text.data();
  const char* end = begin + text.size();
  const bool parsed = Json::sax_parse(CountingIterator(begin, begin, &read),
                                      CountingIterator(end, begin, &read), &builder);
  if (!parsed) return std::nullopt;
  return builder.Take();
}

}  // namespace quadrille::scenario
