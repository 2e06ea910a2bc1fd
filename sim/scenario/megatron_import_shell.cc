// A reader of shell scripts that runs nothing.
//
// The text is read once, front to back. A word is built from pieces: literal text, quoted text and
// expansions. An expansion yields fields; where it is unquoted (or an array), its inner fields
// become words of their own, as in a shell. A command ends at a line break, `;`, `|`, `&` or a
// closing parenthesis.
//
// 1. `depth_` counts the compound commands that are open. Only at depth 0 are assignments followed
//    and commands kept.
// 2. What is not understood inside a word stays in it as written, beginning with `$` or a
// backquote.
#include "sim/scenario/megatron_import_shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/scenario/shell_arithmetic.h"

namespace quadrille::scenario {
namespace {

using Fields = std::vector<std::string>;

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameCharacter(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

Fields SplitAtBlanks(std::string_view text) {
  Fields fields;
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    const std::size_t start = at;
    while (at < text.size() && !IsBlank(text[at])) ++at;
    if (at > start) fields.emplace_back(text.substr(start, at - start));
  }
  return fields;
}

// The length of `NAME=` or `NAME+=` that `word` starts with, or 0.
std::size_t AssignmentLength(std::string_view word) {
  if (word.empty() || !IsNameStart(word.front())) return 0;
  std::size_t at = 0;
  while (at < word.size() && IsNameCharacter(word[at])) ++at;
  if (at < word.size() && word[at] == '+') ++at;
  return at < word.size() && word[at] == '=' ? at + 1 : 0;
}

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file, bool one_command)
      : text_(text), file_(file), one_command_(one_command) {}

  Result<ShellScript> Read() {
    while (at_ < text_.size() && problems_.empty()) Step();
    EndCommand();
    if (!problems_.empty()) return tl::unexpected<Diagnostics>(std::move(problems_));
    return std::move(script_);
  }

 private:
  // A word under construction: `fields` are complete but for the last, which still grows.
  struct Builder {
    Fields fields;
    bool started = false;
    void Append(std::string_view text) {
      if (fields.empty()) fields.emplace_back();
      fields.back() += text;
      started = true;
    }
    // Fields of an unquoted expansion: the first joins what stands before it, the last what
    // follows.
    void Splice(const Fields& more) {
      for (std::size_t i = 0; i < more.size(); ++i) {
        if (i == 0) {
          Append(more[i]);
        } else {
          fields.push_back(more[i]);
        }
      }
    }
  };

  [[nodiscard]] char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] SourcePosition PositionAt(std::size_t offset) const {
    const std::string_view before = text_.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') + 1;
    return {file_, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            1 + static_cast<int>(before.size() - line_start)};
  }

  void Step() {
    const char c = Peek();
    if (c == '\\' && Peek(1) == '\n') {
      at_ += 2;
    } else if (c == '\\' && Peek(1) == '\r' && Peek(2) == '\n') {
      at_ += 3;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || (one_command_ && c == '\n')) {
      ++at_;
    } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == ')' || c == '(') {
      ++at_;
      EndCommand();
    } else if (c == '<' || c == '>') {
      SkipRedirection();
    } else {
      ReadWord();
    }
  }

  // `> file`, `2>&1`, `<<EOF` (its body is read as commands that run nothing).
  void SkipRedirection() {
    const bool numbered = at_ > 0 && text_[at_ - 1] >= '0' && text_[at_ - 1] <= '9';
    if (numbered && !command_.empty() && command_.back().text.size() == 1) command_.pop_back();
    while (Peek() == '<' || Peek() == '>' || Peek() == '&') ++at_;
    while (Peek() == ' ' || Peek() == '\t') ++at_;
    while (at_ < text_.size() && !IsBlank(Peek()) && Peek() != ';') ++at_;
  }

  [[nodiscard]] static bool EndsWord(char c) {
    return c == '\0' || IsBlank(c) || c == ';' || c == '|' || c == '&' || c == '<' || c == '>' ||
           c == '(' || c == ')';
  }

  void ReadWord() {
    const std::size_t start = at_;
    // `NAME=` opens a word whose expansions are not split, or an array.
    std::size_t name_end = at_;
    while (name_end < text_.size() && !EndsWord(text_[name_end]) && text_[name_end] != '"' &&
           text_[name_end] != '\'' && text_[name_end] != '$') {
      ++name_end;
    }
    const bool only_assignments =
        std::all_of(command_.begin(), command_.end(), [](const ShellWord& word) {
          return word.text == "export" || word.text == "declare" || word.text == "local" ||
                 word.text == "readonly" || word.text == "-a" || word.text == "-x";
        });
    const std::size_t assignment =
        only_assignments ? AssignmentLength(text_.substr(at_, name_end - at_)) : 0;
    if (assignment > 0) return ReadAssignment(assignment);
    Builder word;
    ReadPieces(&word, false);
    if (!word.started && at_ == start) ++at_;  // nothing that a word can start with
    for (std::string& field : word.fields) {
      command_.push_back({std::move(field), PositionAt(start)});
    }
  }

  void ReadAssignment(std::size_t length) {
    std::string_view name = text_.substr(at_, length - 1);
    const bool append = name.back() == '+';
    if (append) name.remove_suffix(1);
    const std::string key(name);
    at_ += length;
    Fields value;
    const bool array = Peek() == '(';
    if (array) {
      value = ReadArray();
    } else {
      Builder word;
      ReadPieces(&word, true);
      value.push_back(word.fields.empty() ? "" : word.fields.front());
    }
    if (depth_ > 0 || !problems_.empty()) return;
    Fields& variable = variables_[key];
    if (!append) {
      variable = std::move(value);
    } else if (!array && !variable.empty()) {
      variable.front() += value.front();
    } else {
      variable.insert(variable.end(), value.begin(), value.end());
    }
  }

  Fields ReadArray() {
    const std::size_t start = at_++;
    Fields fields;
    while (at_ < text_.size() && Peek() != ')') {
      const char c = Peek();
      if (IsBlank(c)) {
        ++at_;
      } else if (c == '\\' && (Peek(1) == '\n' || Peek(1) == '\r')) {
        at_ += 2;
      } else if (c == '#') {
        while (at_ < text_.size() && Peek() != '\n') ++at_;
      } else {
        const std::size_t before = at_;
        Builder word;
        ReadPieces(&word, false);
        if (at_ == before) ++at_;
        fields.insert(fields.end(), word.fields.begin(), word.fields.end());
      }
    }
    if (Peek() != ')') {
      problems_.push_back({PositionAt(start), "the array is not closed"});
      return fields;
    }
    ++at_;
    return fields;
  }

  // Pieces up to the end of the word. `quoted`: expansions stay one field.
  void ReadPieces(Builder* word, bool quoted) {
    while (at_ < text_.size() && problems_.empty()) {
      const char c = Peek();
      if (c == '\\') {
        if (Peek(1) == '\n') return;
        word->Append(text_.substr(at_ + 1, 1));
        at_ += 2;
      } else if (c == '\'') {
        ReadSingleQuoted(word);
      } else if (c == '"') {
        ReadDoubleQuoted(word);
      } else if (c == '$') {
        Expand(word, quoted);
      } else if (c == '`') {
        const std::size_t start = at_++;
        while (at_ < text_.size() && Peek() != '`') ++at_;
        at_ = std::min(at_ + 1, text_.size());
        word->Append(text_.substr(start, at_ - start));
      } else if (EndsWord(c)) {
        return;
      } else {
        word->Append(text_.substr(at_++, 1));
      }
    }
  }

  void ReadSingleQuoted(Builder* word) {
    const std::size_t start = at_++;
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) {
      problems_.push_back({PositionAt(start), "the quote ' is not closed"});
      return;
    }
    word->Append(text_.substr(at_, end - at_));
    at_ = end + 1;
  }

  void ReadDoubleQuoted(Builder* word) {
    const std::size_t start = at_++;
    vanished_ = false;
    word->Append("");
    const bool alone = word->fields.size() == 1 && word->fields.front().empty();
    while (at_ < text_.size() && Peek() != '"' && problems_.empty()) {
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

  // `$...` at the current place.
  void Expand(Builder* word, bool quoted) {
    const std::size_t start = at_;
    if (Peek(1) == '(') {
      const std::string_view whole = text_.substr(start, Balanced('(', ')') - start);
      word->Append(Computed(whole).value_or(std::string(whole)));
      return;
    }
    if (Peek(1) == '@' || Peek(1) == '*') {
      at_ += 2;
      vanished_ = true;
      return;
    }
    std::string name;
    std::optional<std::string> otherwise;
    bool array = false;
    bool assigns = false;  // the default becomes the variable's value
    if (Peek(1) == '{') {
      const std::size_t end = Balanced('{', '}');
      std::string_view inside = text_.substr(start + 2, end - start - 3);
      std::size_t length = 0;
      while (length < inside.size() && IsNameCharacter(inside[length])) ++length;
      name = std::string(inside.substr(0, length));
      inside.remove_prefix(length);
      if (inside == "[@]" || inside == "[*]") {
        array = true;
      } else if (inside.rfind(":-", 0) == 0 || inside.rfind(":=", 0) == 0) {
        assigns = inside[1] == '=';
        otherwise = Inner(inside.substr(2));
      } else if (inside.rfind("-", 0) == 0 || inside.rfind("=", 0) == 0) {
        assigns = inside[0] == '=';
        otherwise = Inner(inside.substr(1));
      } else if (!inside.empty()) {
        word->Append(text_.substr(start, end - start));
        return;
      }
    } else {
      ++at_;
      while (IsNameCharacter(Peek())) name += text_[at_++];
    }
    Insert(word, name, otherwise, array, quoted, text_.substr(start, at_ - start));
    if (!assigns || depth_ > 0) return;
    const auto found = variables_.find(name);
    const bool empty = found == variables_.end() || found->second.empty() ||
                       (found->second.size() == 1 && found->second.front().empty());
    if (empty) variables_[name] = {*otherwise};
  }

  // `$((...))` of whole numbers and known variables.
  [[nodiscard]] std::optional<std::string> Computed(std::string_view text) const {
    if (!text.starts_with("$((") || !text.ends_with("))")) return std::nullopt;
    const std::optional<std::int64_t> value =
        EvaluateShellArithmetic(text.substr(3, text.size() - 5),
                                [&](const std::string& name) -> std::optional<std::string> {
                                  const auto found = variables_.find(name);
                                  if (found == variables_.end() || found->second.size() != 1)
                                    return std::nullopt;
                                  return found->second.front();
                                });
    if (!value) return std::nullopt;
    return fmt::format("{}", *value);
  }

  // The default of ${NAME:-default}, which may hold expansions itself.
  std::string Inner(std::string_view text) {
    ShellReader reader(text, file_, true);
    reader.variables_ = variables_;
    Builder word;
    reader.ReadPieces(&word, true);
    return word.fields.empty() ? "" : word.fields.front();
  }

  void Insert(Builder* word, const std::string& name, const std::optional<std::string>& otherwise,
              bool array, bool quoted, std::string_view raw) {
    const auto found = variables_.find(name);
    Fields value;
    if (found != variables_.end()) {
      value = found->second;
    } else if (otherwise) {
      value = {*otherwise};
    } else {
      word->Append(raw);  // unset here: perhaps set in the environment
      return;
    }
    if (otherwise && value.size() == 1 && value.front().empty()) value = {*otherwise};
    if (array) {
      if (value.empty()) vanished_ = true;
      Fields split;
      for (const std::string& field : value) {
        const Fields parts = quoted ? Fields{field} : SplitAtBlanks(field);
        split.insert(split.end(), parts.begin(), parts.end());
      }
      word->Splice(split);
    } else if (quoted) {
      word->Append(value.empty() ? "" : value.front());
    } else {
      word->Splice(value.empty() ? Fields{} : SplitAtBlanks(value.front()));
    }
  }

  // The end of the bracket that opens at the next character; moves there.
  std::size_t Balanced(char open, char close) {
    int level = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == open) ++level;
      if (c == close && --level == 0) break;
    }
    return at_;
  }

  void EndCommand() {
    ShellCommand command = std::exchange(command_, {});
    // `then echo a` and `do echo a` are commands behind a word of the construct.
    static constexpr std::array<std::string_view, 4> kInner = {"then", "else", "do", "elif"};
    static constexpr std::array<std::string_view, 7> kOpen = {"if",   "for", "while",   "until",
                                                              "case", "{",   "function"};
    static constexpr std::array<std::string_view, 4> kClose = {"fi", "done", "esac", "}"};
    const auto is = [](const auto& words, const std::string& word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    while (!command.empty() && depth_ > 0 && is(kInner, command.front().text)) {
      command.erase(command.begin());
    }
    if (command.empty()) return;
    const std::string& first = command.front().text;
    if (is(kOpen, first)) {
      // `function name {` opens one body, not two.
      if (depth_++ == 0) {
        script_.notes.push_back(
            {command.front().position, fmt::format("the body of '{}' is passed over", first)});
      }
      return;
    }
    if (is(kClose, first)) {
      depth_ = std::max(depth_ - 1, 0);
      return;
    }
    if (depth_ == 0) script_.commands.push_back(std::move(command));
  }

  std::string_view text_;
  std::string file_;
  bool one_command_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool vanished_ = false;  // an expansion that yields no word was read inside quotes
  ShellCommand command_;
  std::map<std::string, Fields> variables_;
  ShellScript script_;
  Diagnostics problems_;
};

}  // namespace

Result<ShellScript> ReadShell(std::string_view text, const std::string& file) {
  return ShellReader(text, file, false).Read();
}

Result<ShellCommand> ReadShellWords(std::string_view text, const std::string& file) {
  Result<ShellScript> script = ShellReader(text, file, true).Read();
  if (!script) return tl::unexpected<Diagnostics>(script.error());
  ShellCommand all;
  for (ShellCommand& command : script->commands) {
    for (ShellWord& word : command) all.push_back(std::move(word));
  }
  return all;
}

}  // namespace quadrille::scenario
