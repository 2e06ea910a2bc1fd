#include "sim/base/result.h"

#include <fmt/format.h>

namespace quadrille {

std::string ToString(const Diagnostic& diagnostic) {
  const SourcePosition& at = diagnostic.position;
  if (at.file.empty()) return diagnostic.message;
  if (at.line == 0) return fmt::format("{}: {}", at.file, diagnostic.message);
  if (at.column == 0) return fmt::format("{}:{}: {}", at.file, at.line, diagnostic.message);
  return fmt::format("{}:{}:{}: {}", at.file, at.line, at.column, diagnostic.message);
}

std::string ToString(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += ToString(diagnostic);
  }
  return text;
}

}  // namespace quadrille
