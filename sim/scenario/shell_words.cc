#include "sim/scenario/shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/shell_arithmetic.h"

namespace quadrille::scenario {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool IsEmpty(const ShellFields& value) {
  return value.empty() || (value.size() == 1 && value.front().empty());
}

}  // namespace

ShellFields SplitAtBlanks(std::string_view text) {
  ShellFields fields;
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && ShellWords::IsBlank(text[at])) ++at;
    const std::size_t start = at;
    while (at < text.size() && !ShellWords::IsBlank(text[at])) ++at;
    if (at > start) fields.emplace_back(text.substr(start, at - start));
  }
  return fields;
}

void ShellWords::Builder::Append(std::string_view text) {
  if (fields.empty()) fields.emplace_back();
  fields.back() += text;
}

void ShellWords::Builder::Splice(const ShellFields& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (i == 0) {
      Append(more[i]);
    } else {
      fields.push_back(more[i]);
    }
  }
}

ShellWords::ShellWords(std::string_view text, std::string file, ShellVariables* variables)
    : text_(text), file_(std::move(file)), variables_(variables), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

bool ShellWords::IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool ShellWords::EndsWord(char c) {
  return c == '\0' || IsBlank(c) || c == ';' || c == '|' || c == '&' || c == '<' || c == '>' ||
         c == '(' || c == ')';
}

std::string_view ShellWords::Bare() const {
  std::size_t end = at_;
  while (end < text_.size() && !EndsWord(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

SourcePosition ShellWords::PositionAt(std::size_t offset) const {
  const auto line = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset) - 1;
  return {file_, static_cast<int>(line - line_starts_.begin()) + 1,
          static_cast<int>(offset - *line) + 1};
}

bool ShellWords::SkipBlanks(bool lines) {
  const std::size_t before = at_;
  while (!AtEnd()) {
    const char c = Peek();
    if (c == '\\' && Peek(1) == '\n') {
      at_ += 2;
    } else if (c == '\\' && Peek(1) == '\r' && Peek(2) == '\n') {
      at_ += 3;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
      ++at_;
    } else {
      break;
    }
  }
  return at_ > before;
}

void ShellWords::SkipBalanced(char open, char close) {
  int level = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == open) ++level;
    if (c == close && --level == 0) break;
  }
}

ShellFields ShellWords::ReadWord(bool quoted) {
  Builder word;
  ReadPieces(&word, quoted);
  return std::move(word.fields);
}

ShellFields ShellWords::ReadArray() {
  const std::size_t start = at_++;
  ShellFields fields;
  while (SkipBlanks(true) || (!AtEnd() && Peek() != ')')) {
    if (AtEnd() || Peek() == ')') break;
    const std::size_t before = at_;
    const ShellFields word = ReadWord(false);
    if (at_ == before) ++at_;
    fields.insert(fields.end(), word.begin(), word.end());
  }
  if (Peek() == ')') {
    ++at_;
  } else {
    problems_.push_back({PositionAt(start), "the array is not closed"});
  }
  return fields;
}

std::string ShellWords::Expanded(std::string_view text) {
  ShellWords reader(text, file_, variables_);
  reader.follows_ = follows_;
  const ShellFields fields = reader.ReadWord(true);
  used_.merge(reader.used_);
  return fields.empty() ? "" : fields.front();
}

void ShellWords::ReadPieces(Builder* word, bool quoted) {
  while (!AtEnd() && problems_.empty()) {
    const char c = Peek();
    if (c == '\\') {
      if (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n')) return;
      word->Append(text_.substr(at_ + 1, 1));
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'') {
      ReadSingleQuoted(word);
    } else if (c == '"') {
      ReadDoubleQuoted(word);
    } else if (c == '$') {
      Expand(word, quoted);
    } else if (c == '`') {
      ReadBackquoted(word);
    } else if (EndsWord(c)) {
      return;
    } else {
      word->Append(text_.substr(at_++, 1));
    }
  }
}

void ShellWords::ReadSingleQuoted(Builder* word) {
  const std::size_t start = at_++;
  const std::size_t end = text_.find('\'', at_);
  if (end == std::string_view::npos) {
    problems_.push_back({PositionAt(start), "the quote ' is not closed"});
    return;
  }
  word->Append(text_.substr(at_, end - at_));
  at_ = end + 1;
}

void ShellWords::ReadBackquoted(Builder* word) {
  const std::size_t start = at_++;
  while (!AtEnd() && Peek() != '`') ++at_;
  at_ = std::min(at_ + 1, text_.size());
  word->Append(text_.substr(start, at_ - start));
}

void ShellWords::ReadDoubleQuoted(Builder* word) {
  const std::size_t start = at_++;
  vanished_ = false;
  word->Append("");
  const bool alone = word->fields.size() == 1 && word->fields.front().empty();
  while (!AtEnd() && Peek() != '"' && problems_.empty()) {
    if (Peek() == '\\' && Peek(1) == '\n') {
      at_ += 2;
    } else if (Peek() == '\\' && at_ + 1 < text_.size()) {
      if (Peek(1) != '"' && Peek(1) != '$' && Peek(1) != '\\' && Peek(1) != '`') {
        word->Append("\\");
      }
      word->Append(text_.substr(at_ + 1, 1));
      at_ += 2;
    } else if (Peek() == '$') {
      Expand(word, true);
    } else {
      word->Append(text_.substr(at_++, 1));
    }
  }
  if (Peek() != '"') {
    problems_.push_back({PositionAt(start), "the quote \" is not closed"});
    return;
  }
  ++at_;
  // "${EMPTY[@]}" and "$@" are no word at all.
  if (alone && vanished_ && word->fields.size() == 1 && word->fields.front().empty()) {
    word->fields.clear();
  }
  vanished_ = false;
}

void ShellWords::Expand(Builder* word, bool quoted) {
  const std::size_t start = at_;
  if (Peek(1) == '(') {
    SkipBalanced('(', ')');
    const std::string_view whole = Slice(start, at_);
    word->Append(Computed(whole).value_or(std::string(whole)));
    return;
  }
  if (Peek(1) == '@' || Peek(1) == '*') {
    at_ += 2;
    vanished_ = true;
    return;
  }
  Expansion expansion;
  if (Peek(1) == '{') {
    expansion = ReadBraced();
  } else {
    ++at_;
    while (IsNameCharacter(Peek())) expansion.name += text_[at_++];
    // `$#` and `$?` are as little known as a name that is unset.
    if (expansion.name.empty() && (Peek() == '#' || Peek() == '?')) ++at_;
  }
  const std::string_view raw = Slice(start, at_);
  if (!expansion.understood) {
    word->Append(raw);
    return;
  }
  Insert(word, expansion, quoted, raw);
  if (!expansion.assigns || !follows_) return;
  const auto found = variables_->find(expansion.name);
  if (found == variables_->end() || IsEmpty(found->second)) {
    (*variables_)[expansion.name] = {*expansion.otherwise};
  }
}

ShellWords::Expansion ShellWords::ReadBraced() {
  const std::size_t start = at_++;
  SkipBalanced('{', '}');
  std::string_view inside = text_.substr(start + 2, at_ - start - 3);
  std::size_t length = 0;
  while (length < inside.size() && IsNameCharacter(inside[length])) ++length;
  Expansion expansion;
  expansion.name = std::string(inside.substr(0, length));
  inside.remove_prefix(length);
  if (inside == "[@]" || inside == "[*]") {
    expansion.array = true;
  } else if (inside.starts_with(":-") || inside.starts_with(":=")) {
    expansion.assigns = inside[1] == '=';
    expansion.otherwise = Expanded(inside.substr(2));
  } else if (inside.starts_with("-") || inside.starts_with("=")) {
    expansion.assigns = inside[0] == '=';
    expansion.otherwise = Expanded(inside.substr(1));
  } else {
    expansion.understood = inside.empty();
  }
  return expansion;
}

std::optional<std::string> ShellWords::Lookup(const std::string& name) {
  used_.insert(name);
  const auto found = variables_->find(name);
  if (found == variables_->end() || found->second.size() != 1) return std::nullopt;
  return found->second.front();
}

// `$((...))` of whole numbers and known variables.
std::optional<std::string> ShellWords::Computed(std::string_view text) {
  if (!text.starts_with("$((") || !text.ends_with("))")) return std::nullopt;
  const std::optional<std::int64_t> value = EvaluateShellArithmetic(
      text.substr(3, text.size() - 5), [this](const std::string& name) { return Lookup(name); });
  if (!value) return std::nullopt;
  return fmt::format("{}", *value);
}

void ShellWords::Insert(Builder* word, const Expansion& expansion, bool quoted,
                        std::string_view raw) {
  used_.insert(expansion.name);
  const auto found = variables_->find(expansion.name);
  const std::optional<std::string>& otherwise = expansion.otherwise;
  ShellFields value;
  if (found != variables_->end()) {
    value = found->second;
  } else if (otherwise) {
    value = {*otherwise};
  } else {
    word->Append(raw);  // unset here: perhaps set in the environment
    return;
  }
  if (otherwise && value.size() == 1 && value.front().empty()) value = {*otherwise};
  if (expansion.array) {
    if (value.empty()) vanished_ = true;
    ShellFields split;
    for (const std::string& field : value) {
      const ShellFields parts = quoted ? ShellFields{field} : SplitAtBlanks(field);
      split.insert(split.end(), parts.begin(), parts.end());
    }
    word->Splice(split);
  } else if (quoted) {
    word->Append(value.empty() ? "" : value.front());
  } else {
    word->Splice(value.empty() ? ShellFields{} : SplitAtBlanks(value.front()));
  }
}

}  // namespace quadrille::scenario
