#include "sim/report/json_stream.h"

#include <fmt/format.h>

namespace quadrille::report {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 if it is malformed.
std::size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string JsonEscaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      escaped += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return escaped;
}

}  // namespace quadrille::report
