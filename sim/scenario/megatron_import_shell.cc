// A reader of shell scripts that runs nothing.
//
// The text is read once, front to back, but for the bodies of `for`, which are read once per value.
// A command ends at a line break, `;`, `|`, `&`, `&&`, `||` or a parenthesis. ShellWords reads
// words and expands them, ShellFlow says what runs; here is the syntax between them.
#include "sim/scenario/megatron_import_shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "sim/scenario/shell_conditions.h"
#include "sim/scenario/shell_words.h"

namespace quadrille::scenario {
namespace {

constexpr std::size_t kLongestValue = 1 << 20;

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameCharacter(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }

// The length of `NAME=` or `NAME+=` that `word` starts with, or 0.
std::size_t AssignmentLength(std::string_view word) {
  if (word.empty() || !IsNameStart(word.front())) return 0;
  std::size_t at = 0;
  while (at < word.size() && IsNameCharacter(word[at])) ++at;
  if (at < word.size() && word[at] == '+') ++at;
  return at < word.size() && word[at] == '=' ? at + 1 : 0;
}

bool IsUnknown(std::string_view text) { return text.find_first_of("$`") != std::string_view::npos; }

class ShellReader {
 public:
  ShellReader(std::string_view text, const std::string& file, bool one_command)
      : words_(text, file, &variables_), one_command_(one_command) {}

  Result<ShellScript> Read() {
    while (!words_.AtEnd() && words_.problems().empty()) Step();
    EndCommand(ShellSeparator::kEnd);
    if (!words_.problems().empty()) {
      return tl::unexpected<Diagnostics>(std::move(words_.problems()));
    }
    script_.passed_over = flow_.TakePassedOver();
    return std::move(script_);
  }

 private:
  // ---- words and commands ----

  void Step() {
    if (words_.SkipBlanks(one_command_)) return;
    if (flow_.InCasePattern()) return ReadCasePattern();
    const char c = words_.Peek();
    if (words_.Sees("&&") || words_.Sees("||")) {
      words_.Skip(2);
      EndCommand(c == '&' ? ShellSeparator::kAnd : ShellSeparator::kOr);
    } else if (words_.Sees(";;")) {
      EndCaseBranch();
    } else if (words_.Sees("((") && command_.empty()) {
      ReadArithmetic();
    } else if (c == '(' && command_.size() == 1 && words_.Peek(1) == ')') {
      words_.Skip(2);
      function_ = std::exchange(command_, {}).front().text;
    } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == ')' || c == '(') {
      words_.Skip(1);
      EndCommand(c == '|' ? ShellSeparator::kPipe : ShellSeparator::kEnd);
    } else if (c == '<' || c == '>') {
      SkipRedirection();
    } else {
      ReadWord();
    }
  }

  // `> file`, `2>&1`, `<<EOF` (its body is read as commands).
  void SkipRedirection() {
    const std::size_t at = words_.at();
    const std::string_view before = at > 0 ? words_.Slice(at - 1, at) : "";
    if (before >= "0" && before <= "9" && !command_.empty() && command_.back().text == before) {
      command_.pop_back();
    }
    while (words_.Peek() == '<' || words_.Peek() == '>' || words_.Peek() == '&') words_.Skip(1);
    while (words_.Peek() == ' ' || words_.Peek() == '\t') words_.Skip(1);
    while (!words_.AtEnd() && !ShellWords::IsBlank(words_.Peek()) && words_.Peek() != ';') {
      words_.Skip(1);
    }
  }

  // Only words that may stand before an assignment or a test.
  [[nodiscard]] bool OnlyBefore(std::initializer_list<std::string_view> allowed) const {
    return std::all_of(command_.begin(), command_.end(), [&](const ShellWord& word) {
      return std::find(allowed.begin(), allowed.end(), word.text) != allowed.end();
    });
  }

  void ReadWord() {
    const std::size_t start = words_.at();
    const std::string_view bare = words_.Bare();
    if (!one_command_ && OnlyBefore({"!"})) {
      if (bare == "[[") return ReadDoubleBracket();
      if (command_.empty() && ReadKeyword(bare)) return;
    }
    // `NAME=` opens a word whose expansions are not split, or an array.
    const std::size_t length =
        OnlyBefore({"export", "declare", "local", "readonly", "typeset", "-a", "-x", "-i", "-r"})
            ? AssignmentLength(bare.substr(0, bare.find_first_of("\"'$")))
            : 0;
    if (length > 0) return ReadAssignment(length);
    ShellFields fields = words_.ReadWord(false);
    NoteUses();
    if (fields.empty() && words_.at() == start) words_.Skip(1);
    for (std::string& field : fields) {
      command_.push_back({std::move(field), words_.PositionAt(start)});
    }
  }

  // `[[ ... ]]` is one command whatever stands in it.
  void ReadDoubleBracket() {
    const auto add = [&](std::string text, std::size_t start) {
      command_.push_back({std::move(text), words_.PositionAt(start)});
    };
    while (!words_.AtEnd() && words_.problems().empty()) {
      if (words_.SkipBlanks(true)) continue;
      const std::size_t start = words_.at();
      if (words_.Sees("&&") || words_.Sees("||")) {
        words_.Skip(2);
        add(std::string(words_.Slice(start, start + 2)), start);
        continue;
      }
      const bool closes = words_.Bare() == "]]";
      const ShellFields fields = words_.ReadWord(true);
      if (words_.at() == start) {
        words_.Skip(1);
        add(std::string(words_.Slice(start, start + 1)), start);
      } else {
        add(fields.empty() ? "" : fields.front(), start);
      }
      if (closes) break;
    }
    NoteUses();
  }

  // `((...))`
  void ReadArithmetic() {
    const std::size_t start = words_.at();
    words_.SkipBalanced('(', ')');
    const std::string_view text = words_.Slice(start, words_.at());
    if (!text.ends_with("))")) return;
    status_ = StatusOfShellArithmetic(text.substr(2, text.size() - 4),
                                      [this](const auto& name) { return words_.Lookup(name); });
    NoteUses();
    whole_ = true;
  }

  void ReadAssignment(std::size_t length) {
    std::string_view name = words_.Slice(words_.at(), words_.at() + length - 1);
    const bool append = name.back() == '+';
    if (append) name.remove_suffix(1);
    const std::string key(name);
    words_.Skip(length);
    ShellFields value;
    const bool array = words_.Peek() == '(';
    if (array) {
      value = words_.ReadArray();
    } else {
      const ShellFields word = words_.ReadWord(true);
      value.push_back(word.empty() ? "" : word.front());
    }
    whole_ = true;
    if (!words_.problems().empty()) return;
    NoteUses();
    if (!flow_.runs()) return flow_.Doubt(key, value);
    Assign(key, std::move(value), append, array);
  }

  void Assign(const std::string& key, ShellFields value, bool append, bool array) {
    if (!append) flow_.Settle(key);
    ShellFields& variable = variables_[key];
    if (!append) {
      variable = std::move(value);
    } else if (!array && !variable.empty()) {
      variable.front() += value.front();
    } else {
      variable.insert(variable.end(), value.begin(), value.end());
    }
    std::size_t size = 0;
    for (const std::string& field : variable) size += field.size() + 1;
    if (size > kLongestValue) {
      words_.problems().push_back(
          {words_.Here(), fmt::format("the value of '{}' is longer than a megabyte", key)});
    }
  }

  void NoteUses() { flow_.Use(words_.TakeUsed()); }

  void EndCommand(ShellSeparator separator) {
    const bool command = !command_.empty() || whole_;
    if (command) RunCommand();
    flow_.Separate(separator, command, words_.Here());
    words_.Follow(flow_.runs());
  }

  void RunCommand() {
    const ShellCommand command = std::exchange(command_, {});
    whole_ = false;
    const ShellTruth own = std::exchange(status_, true);
    function_.reset();
    ShellFields texts;
    for (const ShellWord& word : command) texts.push_back(word.text);
    if (!flow_.runs()) return flow_.Passed(texts);
    if (command.empty()) return flow_.Ran(own);
    const std::string& first = texts.front();
    if (first == "break" || first == "continue") return flow_.LeaveLoop(first == "break");
    const ShellTruth status = StatusOfShellCommand(texts);
    const bool test = first == "[" || first == "[[" || first == "test" || first == "!";
    flow_.Ran(status || test || flow_.InCondition() ? status : true);
    script_.commands.push_back(command);
  }

  // ---- compound commands ----

  // True when `word` is one, which is then read.
  bool ReadKeyword(std::string_view word) {
    static constexpr std::array<std::pair<std::string_view, void (ShellReader::*)()>, 15>
        kKeywords = {{{"if", &ShellReader::OpenCondition},
                      {"while", &ShellReader::OpenCondition},
                      {"until", &ShellReader::OpenCondition},
                      {"then", &ShellReader::Then},
                      {"elif", &ShellReader::Elif},
                      {"else", &ShellReader::Else},
                      {"fi", &ShellReader::Fi},
                      {"for", &ShellReader::OpenFor},
                      {"do", &ShellReader::Do},
                      {"done", &ShellReader::Done},
                      {"case", &ShellReader::OpenCase},
                      {"esac", &ShellReader::Esac},
                      {"function", &ShellReader::OpenFunction},
                      {"{", &ShellReader::OpenGroup},
                      {"}", &ShellReader::CloseGroup}}};
    for (const auto& [keyword, read] : kKeywords) {
      if (keyword != word) continue;
      keyword_ = keyword;
      keyword_position_ = words_.Here();
      words_.Skip(word.size());
      (this->*read)();
      words_.Follow(flow_.runs());
      return true;
    }
    return false;
  }

  // A compound command is one command of the list that it stands in.
  void Closed(bool closed) {
    if (!closed) return;
    whole_ = true;
    status_ = true;
  }

  void OpenCondition() { flow_.OpenCondition(keyword_, keyword_position_); }
  void Then() { flow_.Then(); }
  void Elif() { flow_.Elif(); }
  void Else() { flow_.Else(); }
  void Fi() { Closed(flow_.Close(ShellFlow::Construct::kIf)); }
  void Esac() { Closed(flow_.Close(ShellFlow::Construct::kCase)); }
  void CloseGroup() { Closed(flow_.Close(ShellFlow::Construct::kGroup)); }

  void OpenFor() {
    words_.SkipBlanks(false);
    const std::string variable(words_.Bare());
    bool known = AssignmentLength(variable + "=") == variable.size() + 1;
    words_.Skip(variable.size());
    words_.SkipBlanks(true);
    const bool listed = words_.Bare() == "in";
    if (listed) words_.Skip(2);
    ShellFields values;
    while (!words_.AtEnd() && words_.Peek() != ';' && words_.Peek() != '\n') {
      if (words_.SkipBlanks(false)) continue;
      const std::size_t start = words_.at();
      for (std::string& value : words_.ReadWord(false)) {
        known = known && !IsUnknown(value);
        values.push_back(std::move(value));
      }
      if (words_.at() == start) words_.Skip(1);
    }
    NoteUses();
    flow_.OpenFor(keyword_position_, variable, std::move(values), known && listed);
  }

  void Do() {
    flow_.Do(words_.at());
    TakeTurn();
  }

  void Done() {
    const bool loop =
        flow_.Within(ShellFlow::Construct::kFor) || flow_.Within(ShellFlow::Construct::kWhile);
    const std::optional<std::size_t> again = flow_.Done();
    if (!again) return Closed(loop);
    words_.MoveTo(*again);
    TakeTurn();
  }

  void TakeTurn() {
    if (const auto turn = flow_.TakeTurn()) {
      Assign(turn->first, {turn->second}, false, false);
    } else if (flow_.TooManyTurns()) {
      words_.problems().push_back(
          {keyword_position_,
           fmt::format("loops have more than {} turns in all", ShellFlow::kMostTurns)});
    }
  }

  void OpenCase() {
    words_.SkipBlanks(true);
    const ShellFields subject = words_.ReadWord(true);
    NoteUses();
    words_.SkipBlanks(true);
    if (words_.Bare() == "in") words_.Skip(2);
    flow_.OpenCase(keyword_position_, subject.empty() ? "" : subject.front());
  }

  // `a|b)` or `esac`.
  void ReadCasePattern() {
    if (words_.SkipBlanks(true)) return;
    if (words_.Bare() == "esac") {
      (void)ReadKeyword("esac");
      return;
    }
    if (words_.Peek() == '(') words_.Skip(1);
    ShellTruth matches = false;
    while (!words_.AtEnd() && words_.Peek() != ')') {
      if (words_.SkipBlanks(true)) continue;
      const std::size_t start = words_.at();
      const ShellFields pattern = words_.ReadWord(true);
      if (!words_.problems().empty()) return;
      if (words_.at() == start) {
        words_.Skip(1);
        continue;
      }
      const ShellTruth one =
          MatchesShellPattern(flow_.CaseSubject(), pattern.empty() ? "" : pattern.front());
      // A pattern that matches outweighs one that is not known, which outweighs those that do not.
      if (one.value_or(true) && !matches.value_or(false)) matches = one;
    }
    words_.Skip(1);
    NoteUses();
    flow_.EnterCaseBranch(matches);
  }

  // `;;` (and `;&`, as if it were that).
  void EndCaseBranch() {
    words_.Skip(2);
    EndCommand(ShellSeparator::kEnd);
    flow_.EndCaseBranch();
  }

  void OpenFunction() {
    words_.SkipBlanks(false);
    const std::string name(words_.Bare());
    words_.Skip(name.size());
    if (words_.Sees("()")) words_.Skip(2);
    function_ = name;
  }

  void OpenGroup() { flow_.OpenGroup(keyword_position_, std::exchange(function_, std::nullopt)); }

  ShellVariables variables_;
  ShellWords words_;
  bool one_command_;
  ShellCommand command_;
  bool whole_ = false;        // an assignment or a compound command stands in the command's place
  ShellTruth status_ = true;  // its status
  std::optional<std::string> function_;  // its body comes next
  std::string_view keyword_;
  SourcePosition keyword_position_;
  ShellFlow flow_;
  ShellScript script_;
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
