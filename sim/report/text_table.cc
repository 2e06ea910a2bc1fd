#include "sim/report/text_table.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"

namespace quadrille::report {
namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
};

// The code point at the front of `text`; a malformed byte is taken alone.
CodePoint Decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return {0xFFFD, 1};
  if (length == 1) return {lead, 1};
  char32_t value = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  return {value, length};
}

struct Range {
  char32_t first;
  char32_t last;
};

// Blocks of combining marks and zero-width characters (Unicode 15, general categories Mn and Cf;
// the common ones).
constexpr std::array kZeroWidth = {
    Range{0x0300, 0x036F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF}, Range{0x200B, 0x200F},
    Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}};
// Blocks that are wide or full-width (Unicode 15, EastAsianWidth W and F).
constexpr std::array kDoubleWidth = {
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0xA4CF},  Range{0xAC00, 0xD7A3},
    Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},   Range{0xFF01, 0xFF60},  Range{0xFFE0, 0xFFE6},
    Range{0x1F300, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

template <std::size_t N>
bool Within(const std::array<Range, N>& ranges, char32_t value) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range r) { return r.first <= value && value <= r.last; });
}

std::string_view EscapeOf(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kPlain: return "";
    case Emphasis::kStrong: return "\x1b[1m";
    case Emphasis::kFaint: return "\x1b[2m";
    case Emphasis::kGood: return "\x1b[32m";
    case Emphasis::kWarning: return "\x1b[33m";
    case Emphasis::kError: return "\x1b[1;31m";
  }
  return "";
}

void TrimRight(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = Decode(text);
    text.remove_prefix(point.bytes);
    if (Within(kZeroWidth, point.value)) continue;
    width += Within(kDoubleWidth, point.value) ? 2 : 1;
  }
  return width;
}

std::string Painted(std::string_view text, Emphasis emphasis, const TableStyle& style) {
  if (!style.color || emphasis == Emphasis::kPlain || text.empty()) return std::string(text);
  std::string painted(EscapeOf(emphasis));
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

std::string Heading(std::string_view title, std::string_view remark, const TableStyle& style) {
  std::string text = "\n" + Painted(title, Emphasis::kStrong, style);
  if (!remark.empty()) text += "  " + Painted(remark, Emphasis::kFaint, style);
  return text + "\n";
}

std::string CsvField(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos &&
                     (text.empty() || (text.front() != ' ' && text.back() != ' '));
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

std::string Wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t columns = DisplayWidth(word);
    if (used > 0 && used + 1 + columns > width) {
      result += '\n';
      result.append(indent, ' ');
      used = 0;
    } else if (used > 0) {
      result += ' ';
      ++used;
    }
    result += word;
    used += columns;
  }
  return result;
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::AddRow(std::vector<Cell> cells) {
  QUADRILLE_CHECK(cells.size() == columns_.size(), "a row of {} cells in a table of {} columns",
                  cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::AddRule() { rules_.push_back(rows_.size()); }

std::vector<std::size_t> TextTable::Widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = DisplayWidth(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[c].text));
    widths.push_back(width);
  }
  return widths;
}

std::string TextTable::Render(const TableStyle& style, std::size_t indent) const {
  const std::vector<std::size_t> widths = Widths();
  std::string result;
  // The last column is not padded on its right, so that no line ends in blanks, painted or not.
  const auto append_line = [&](const std::vector<Cell>& cells) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::size_t padding = widths[c] - DisplayWidth(cells[c].text);
      if (c > 0) line.append(2, ' ');
      if (columns_[c].align == Align::kRight) line.append(padding, ' ');
      line += Painted(cells[c].text, cells[c].emphasis, style);
      if (columns_[c].align == Align::kLeft && c + 1 < cells.size()) line.append(padding, ' ');
    }
    TrimRight(line);
    result += line + '\n';
  };
  const auto append_rule = [&] {
    std::size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
    for (std::size_t width : widths) total += width;
    std::string rule;
    for (std::size_t i = 0; i < total; ++i) rule += "─";
    result += std::string(indent, ' ') + Painted(rule, Emphasis::kFaint, style) + '\n';
  };
  if (std::any_of(columns_.begin(), columns_.end(),
                  [](const Column& c) { return !c.title.empty(); })) {
    std::vector<Cell> header;
    for (const Column& column : columns_) header.emplace_back(column.title, Emphasis::kFaint);
    append_line(header);
  }
  auto rule = rules_.begin();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (; rule != rules_.end() && *rule == r; ++rule) append_rule();
    append_line(rows_[r]);
  }
  return result;
}

std::string TextTable::RenderCsv() const {
  std::string result;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    result += (c > 0 ? "," : "") + CsvField(columns_[c].title);
  }
  result += '\n';
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c)
      result += (c > 0 ? "," : "") + CsvField(row[c].text);
    result += '\n';
  }
  return result;
}

}  // namespace quadrille::report
