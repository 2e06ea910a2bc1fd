#include "sim/scenario/text_checks.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {
namespace {

constexpr std::size_t kMaxQuoted = 60;
// After so many a file is not a text with mistakes; it is not a text.
constexpr std::size_t kMaxTextProblems = 5;

bool IsControl(unsigned char c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

bool IsContinuation(unsigned char c) { return (c & 0xc0u) == 0x80u; }

// Length of the UTF-8 sequence at `i`, or 0 when it is not well-formed (RFC 3629: no overlong
// forms, no surrogates, at most U+10FFFF).
std::size_t Utf8Length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : std::uint8_t{0};
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return IsContinuation(byte(1)) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;
    return IsContinuation(byte(1)) && IsContinuation(byte(2)) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return IsContinuation(byte(1)) && IsContinuation(byte(2)) && IsContinuation(byte(3)) ? 4 : 0;
  }
  return 0;
}

// The column (from 1) of a tab in the indentation of `line`, or 0. A line without content may hold
// what it likes.
int IndentingTab(std::string_view line) {
  const std::size_t content = line.find_first_not_of(" \t\r");
  if (content == std::string_view::npos || line[content] == '#') return 0;
  const std::size_t tab = line.substr(0, content).find('\t');
  return tab == std::string_view::npos ? 0 : static_cast<int>(tab) + 1;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  std::size_t i = 0;
  while (i < text.size() && i < kMaxQuoted) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = Utf8Length(text, i);
    if (c == '\n') {
      quoted += "\\n";
    } else if (IsControl(c) || c == '\t' || c == '\r' || length == 0) {
      quoted += fmt::format("\\x{:02x}", c);
    } else {
      quoted += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  if (i < text.size()) quoted += "...";
  return quoted + "'";
}

bool CheckText(std::string_view text, const std::string& file, Diagnostics* problems) {
  if (text.size() > kMaxYamlBytes) {
    problems->push_back({{file, 0, 0},
                         fmt::format("{} bytes are too many for a description (at most {})",
                                     text.size(), kMaxYamlBytes)});
    return false;
  }
  const std::size_t before = problems->size();
  int line = 1;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size() && problems->size() - before < kMaxTextProblems;) {
    if (i == line_start) {
      const std::string_view rest = text.substr(i);
      if (const int column = IndentingTab(rest.substr(0, rest.find('\n'))); column != 0) {
        problems->push_back({{file, line, column}, "a tab indents this line; YAML wants spaces"});
      }
    }
    const SourcePosition here{file, line, static_cast<int>(i - line_start) + 1};
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = Utf8Length(text, i);
    if (length == 0) {
      problems->push_back({here, fmt::format("byte 0x{:02x} is not valid UTF-8", c)});
      return false;  // whatever follows is as likely to be binary
    }
    if (IsControl(c)) {
      problems->push_back({here, fmt::format("control character 0x{:02x}", c)});
    }
    i += length;
    if (c == '\n') {
      ++line;
      line_start = i;
    }
  }
  return problems->size() == before;
}

}  // namespace quadrille::scenario
