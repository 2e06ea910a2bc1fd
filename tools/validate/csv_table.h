// A CSV file as a table of texts in which every row knows its line.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace quadrille::tools {

// RFC 4180: commas, quoted fields, "" for a quote, a header line first; both line ends; a byte
// order mark and blank lines are skipped.
class CsvTable {
 public:
  static constexpr int kAbsent = -1;

  // Parses `text`, naming `file` in positions. Errors, all at once: no header, an empty or repeated
  // column name, a row of another length, an unclosed quote, text after a closing quote, a NUL.
  [[nodiscard]] static Result<CsvTable> Parse(std::string_view text, const std::string& file);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  // Index of a column, kAbsent when there is none.
  [[nodiscard]] int ColumnOf(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  // The text of a cell, empty for an absent column. REQUIRES: row < rows().
  [[nodiscard]] const std::string& At(std::size_t row, int column) const;
  [[nodiscard]] const std::string& At(std::size_t row, std::string_view column) const {
    return At(row, ColumnOf(column));
  }
  // The first of `columns` that row `row` leaves blank; empty: none.
  [[nodiscard]] std::string_view FirstBlank(std::size_t row,
                                            std::initializer_list<std::string_view> columns) const;
  // Where row `row` starts; `column` counts fields from 1, 0 for the row as a whole.
  [[nodiscard]] SourcePosition PositionOf(std::size_t row, int column = kAbsent) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::string empty_;
};

// Reads typed cells of a table and gathers what is wrong with them.
class CellReader {
 public:
  CellReader(const CsvTable& table, Diagnostics* problems) : table_(table), problems_(problems) {}

  // A number, `otherwise` for a blank cell or an absent column. A trailing '?' ("inferred") is
  // ignored. Not a number, not finite, or below `least`: a problem, and `otherwise`.
  [[nodiscard]] double Number(std::size_t row, std::string_view column, double otherwise,
                              double least);
  // A whole number, likewise; "8.0" is one. At most 2^31 - 1.
  [[nodiscard]] int Whole(std::size_t row, std::string_view column, int otherwise, int least);

 private:
  void Report(std::size_t row, std::string_view column, std::string_view what);

  const CsvTable& table_;
  Diagnostics* problems_;
};

}  // namespace quadrille::tools
