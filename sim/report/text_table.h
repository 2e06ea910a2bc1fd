// A table of text: aligned columns for a terminal, or the same cells as CSV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quadrille::report {

enum class Align : std::uint8_t { kLeft, kRight };

// How much a cell or a line stands out, where colour is allowed.
enum class Emphasis : std::uint8_t { kPlain, kStrong, kFaint, kGood, kWarning, kError };

// How a terminal report may look.
struct TableStyle {
  bool color = false;       // ANSI escape sequences may be used
  std::size_t width = 100;  // columns of the terminal; text wraps, tables do not
};

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

struct Cell {
  Cell() = default;
  Cell(std::string t, Emphasis e = Emphasis::kPlain) : text(std::move(t)), emphasis(e) {}
  Cell(const char* t, Emphasis e = Emphasis::kPlain) : text(t), emphasis(e) {}

  std::string text;
  Emphasis emphasis = Emphasis::kPlain;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // REQUIRES: as many cells as columns, CHECKed.
  void AddRow(std::vector<Cell> cells);
  // A line between the rows before and after it; not part of the CSV.
  void AddRule();

  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Every line ends in a newline, no line in a blank. A table whose titles are all empty has no
  // header.
  [[nodiscard]] std::string Render(const TableStyle& style, std::size_t indent = 2) const;

  // RFC 4180 with "\n" as line end: a header line, then the rows; quotes only where needed.
  [[nodiscard]] std::string RenderCsv() const;

 private:
  [[nodiscard]] std::vector<std::size_t> Widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> rules_;  // indices of the rows that a rule precedes, ascending
};

// Columns that UTF-8 `text` takes on a terminal: combining marks take none, East Asian wide
// characters and emoji two. A byte that is not UTF-8 counts as one.
[[nodiscard]] std::size_t DisplayWidth(std::string_view text);

// `text` in the colour of `emphasis`, or as it is.
[[nodiscard]] std::string Painted(std::string_view text, Emphasis emphasis,
                                  const TableStyle& style);

// The line above a section of a report, after an empty one: the title, and beside it the remark, if
// any.
[[nodiscard]] std::string Heading(std::string_view title, std::string_view remark,
                                  const TableStyle& style);

// One CSV field, quoted if it holds a comma, a quote, a line break or outer blanks.
[[nodiscard]] std::string CsvField(std::string_view text);

// `text` broken at blanks into lines of at most `width` columns (a longer word stays whole), all
// but the first preceded by `indent` blanks.
[[nodiscard]] std::string Wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace quadrille::report
