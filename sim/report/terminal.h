// What the terminal at a file descriptor can show.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quadrille::report {

enum class ColorChoice : std::uint8_t { kAuto, kAlways, kNever };

struct Terminal {
  bool interactive = false;  // a terminal that can redraw a line: progress makes sense
  bool color = false;
  std::size_t width = 100;
};

// Colour by default on a terminal, unless NO_COLOR is set and not empty (no-color.org) or TERM is
// "dumb" or unset. The width is the terminal's, else COLUMNS, else 100, and at least 40.
[[nodiscard]] Terminal DetectTerminal(int descriptor, ColorChoice color = ColorChoice::kAuto);

}  // namespace quadrille::report
