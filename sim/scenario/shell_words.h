// Words of a shell script: literal text, quoted text and expansions.
//
// A word is built from pieces. An expansion yields fields; where it is unquoted (or an array), its
// inner fields become words of their own, as in a shell. What is not understood inside a word stays
// in it as written, beginning with `$` or a backquote.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/result.h"

namespace quadrille::scenario {

using ShellFields = std::vector<std::string>;
using ShellVariables = std::map<std::string, ShellFields>;  // an array has any number of fields

// `text` at its blanks.
[[nodiscard]] ShellFields SplitAtBlanks(std::string_view text);

// A place in a script, and the words that begin there. Reading moves the place.
class ShellWords {
 public:
  // `variables` must outlive the reader; ${NAME:=default} writes to it.
  ShellWords(std::string_view text, std::string file, ShellVariables* variables);

  [[nodiscard]] bool AtEnd() const { return at_ >= text_.size(); }
  [[nodiscard]] char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool Sees(std::string_view text) const { return text_.substr(at_, 2) == text; }
  // The characters up to the next one that ends a word, which may be none.
  [[nodiscard]] std::string_view Bare() const;
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::string_view Slice(std::size_t from, std::size_t to) const {
    return text_.substr(from, to - from);
  }
  [[nodiscard]] SourcePosition PositionAt(std::size_t offset) const;
  [[nodiscard]] SourcePosition Here() const { return PositionAt(at_); }

  void Skip(std::size_t characters) { at_ = std::min(at_ + characters, text_.size()); }
  void MoveTo(std::size_t offset) { at_ = offset; }
  // Past blanks, comments and continued lines; past line breaks too with `lines`. True if it moved.
  bool SkipBlanks(bool lines);
  // Past the bracket that opens here and the one that closes it.
  void SkipBalanced(char open, char close);

  // One word; an unquoted expansion may make it none or several. `quoted`: expansions stay one
  // field.
  [[nodiscard]] ShellFields ReadWord(bool quoted);
  // `(...)` behind `NAME=`.
  [[nodiscard]] ShellFields ReadArray();
  // The words of `text` as one, with the variables of this script.
  [[nodiscard]] std::string Expanded(std::string_view text);

  // The value of a variable that holds one field.
  [[nodiscard]] std::optional<std::string> Lookup(const std::string& name);

  // Whether ${NAME:=default} assigns.
  void Follow(bool follows) { follows_ = follows; }
  // Variables that expansions asked for since it was last taken.
  [[nodiscard]] std::set<std::string> TakeUsed() { return std::exchange(used_, {}); }
  // Quotes and arrays that are not closed.
  [[nodiscard]] Diagnostics& problems() { return problems_; }

  [[nodiscard]] static bool EndsWord(char c);
  [[nodiscard]] static bool IsBlank(char c);

 private:
  // A word under construction: `fields` are complete but for the last, which still grows.
  struct Builder {
    ShellFields fields;
    void Append(std::string_view text);
    // Fields of an unquoted expansion: the first joins what stands before it, the last what
    // follows.
    void Splice(const ShellFields& more);
  };
  // `${...}` or `$NAME`.
  struct Expansion {
    std::string name;
    std::optional<std::string> otherwise;
    bool array = false;
    bool assigns = false;    // the default becomes the variable's value
    bool understood = true;  // else it stays as written
  };

  void ReadPieces(Builder* word, bool quoted);
  void ReadSingleQuoted(Builder* word);
  void ReadDoubleQuoted(Builder* word);
  void ReadBackquoted(Builder* word);
  void Expand(Builder* word, bool quoted);
  [[nodiscard]] Expansion ReadBraced();
  void Insert(Builder* word, const Expansion& expansion, bool quoted, std::string_view raw);
  [[nodiscard]] std::optional<std::string> Computed(std::string_view text);

  std::string_view text_;
  std::string file_;
  ShellVariables* variables_;
  std::vector<std::size_t> line_starts_;
  std::size_t at_ = 0;
  bool follows_ = true;
  bool vanished_ = false;  // an expansion that yields no word was read inside quotes
  std::set<std::string> used_;
  Diagnostics problems_;
};

}  // namespace quadrille::scenario
