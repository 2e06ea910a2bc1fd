#include "tools/validate/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace quadrille::tools {
namespace {

struct Record {
  int line = 0;
  std::vector<std::string> cells;
};

// Splits text into records; a state per character, as RFC 4180 describes.
class RecordReader {
 public:
  RecordReader(std::string_view text, const std::string& file, Diagnostics* problems)
      : text_(text), file_(file), problems_(problems) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") position_ = 3;
  }

  // The next record that is not blank; nullopt at the end of the text.
  std::optional<Record> Next() {
    while (position_ < text_.size()) {
      Record record = ReadRecord();
      if (record.cells.size() > 1 || !record.cells.front().empty()) return record;
    }
    return std::nullopt;
  }

 private:
  Record ReadRecord() {
    Record record;
    record.line = line_;
    while (true) {
      record.cells.push_back(ReadField());
      if (position_ >= text_.size()) return record;
      const char end = text_[position_++];
      if (end == '\n') {
        ++line_;
        return record;
      }
    }
  }

  // Leaves position_ at the comma or newline behind the field, or at the end.
  std::string ReadField() {
    std::string field;
    if (position_ < text_.size() && text_[position_] == '"') field = ReadQuoted();
    while (position_ < text_.size() && text_[position_] != ',' && text_[position_] != '\n') {
      field += text_[position_++];
    }
    if (!field.empty() && field.back() == '\r') field.pop_back();
    return field;
  }

  std::string ReadQuoted() {
    std::string field;
    const int opened = line_;
    ++position_;
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c == '"') {
        if (position_ < text_.size() && text_[position_] == '"') {
          field += '"';
          ++position_;
          continue;
        }
        const char next = position_ < text_.size() ? text_[position_] : '\n';
        if (next != ',' && next != '\n' && next != '\r') Report("text after a closing quote");
        return field;
      }
      if (c == '\n') ++line_;
      field += c;
    }
    problems_->push_back({{file_, opened, 0}, "a quote is opened here and never closed"});
    return field;
  }

  void Report(const char* what) { problems_->push_back({{file_, line_, 0}, what}); }

  std::string_view text_;
  const std::string& file_;
  Diagnostics* problems_;
  std::size_t position_ = 0;
  int line_ = 1;
};

// Without the mark of an inferred value and blanks around it.
std::string_view Trimmed(std::string_view text) {
  const auto drop = [](char c) { return c == ' ' || c == '\t' || c == '?'; };
  while (!text.empty() && drop(text.front())) text.remove_prefix(1);
  while (!text.empty() && drop(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<CsvTable> CsvTable::Parse(std::string_view text, const std::string& file) {
  if (const std::size_t binary = text.find('\0'); binary != std::string_view::npos) {
    const auto line = std::count(text.begin(), text.begin() + binary, '\n');
    return Error("a NUL byte: this is no text", {file, static_cast<int>(line) + 1, 0});
  }
  CsvTable table;
  table.file_ = file;
  Diagnostics problems;
  RecordReader reader(text, file, &problems);
  std::optional<Record> header = reader.Next();
  if (!header) return Error("no header line", {file, 0, 0});
  table.columns_ = std::move(header->cells);
  if (const std::size_t other = table.columns_.front().find_first_of(";\t");
      table.columns_.size() == 1 && other != std::string::npos) {
    return Error("fields are separated by commas, and this header has none",
                 {file, header->line, static_cast<int>(other) + 1});
  }
  for (std::size_t i = 0; i < table.columns_.size(); ++i) {
    const std::string& name = table.columns_[i];
    const auto first = std::find(table.columns_.begin(), table.columns_.end(), name);
    const int column = static_cast<int>(i) + 1;
    if (name.empty()) {
      problems.push_back({{file, header->line, column}, "a column has no name"});
    } else if (first != table.columns_.begin() + static_cast<std::ptrdiff_t>(i)) {
      problems.push_back(
          {{file, header->line, column}, fmt::format("column '{}' appears twice", name)});
    }
  }
  while (std::optional<Record> record = reader.Next()) {
    if (record->cells.size() != table.columns_.size()) {
      problems.push_back({{file, record->line, 0},
                          fmt::format("{} fields, but the header names {}", record->cells.size(),
                                      table.columns_.size())});
    }
    table.rows_.push_back({record->line, std::move(record->cells)});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return table;
}

int CsvTable::ColumnOf(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? kAbsent : static_cast<int>(found - columns_.begin());
}

const std::string& CsvTable::At(std::size_t row, int column) const {
  return column == kAbsent ? empty_ : rows_[row].cells[static_cast<std::size_t>(column)];
}

std::string_view CsvTable::FirstBlank(std::size_t row,
                                      std::initializer_list<std::string_view> columns) const {
  for (const std::string_view column : columns) {
    if (At(row, column).empty()) return column;
  }
  return {};
}

SourcePosition CsvTable::PositionOf(std::size_t row, int column) const {
  return {file_, rows_[row].line, column + 1};
}

void CellReader::Report(std::size_t row, std::string_view column, std::string_view what) {
  const int index = table_.ColumnOf(column);
  problems_->push_back({table_.PositionOf(row, index),
                        fmt::format("{}: '{}' is {}", column, table_.At(row, index), what)});
}

double CellReader::Number(std::size_t row, std::string_view column, double otherwise,
                          double least) {
  const std::string_view text = Trimmed(table_.At(row, column));
  if (text.empty()) return otherwise;
  double value = 0.0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() ||
      !std::isfinite(value)) {
    Report(row, column, "not a number");
    return otherwise;
  }
  if (value < least) {
    Report(row, column, fmt::format("less than {}", least));
    return otherwise;
  }
  return value;
}

int CellReader::Whole(std::size_t row, std::string_view column, int otherwise, int least) {
  const std::size_t before = problems_->size();
  const double value = Number(row, column, otherwise, least);
  if (problems_->size() != before) return otherwise;
  if (value != std::floor(value) || value > std::numeric_limits<int>::max()) {
    Report(row, column, "not a whole number");
    return otherwise;
  }
  return static_cast<int>(value);
}

}  // namespace quadrille::tools
