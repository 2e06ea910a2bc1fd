#include "sim/report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace quadrille::report {
namespace {

constexpr std::size_t kDefaultWidth = 100;
constexpr std::size_t kLeastWidth = 40;

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::size_t WidthOf(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::string_view columns = Environment("COLUMNS");
  std::size_t width = kDefaultWidth;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width;
}

}  // namespace

Terminal DetectTerminal(int descriptor, ColorChoice color) {
  Terminal terminal;
  const std::string_view term = Environment("TERM");
  terminal.interactive = ::isatty(descriptor) == 1 && !term.empty() && term != "dumb";
  terminal.color =
      color == ColorChoice::kAlways ||
      (color == ColorChoice::kAuto && terminal.interactive && Environment("NO_COLOR").empty());
  terminal.width = std::max(WidthOf(descriptor), kLeastWidth);
  return terminal;
}

}  // namespace quadrille::report
