#include "sim/base/result.h"

#include <fmt/format.h>

#include <algorithm>

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

bool AllAre(ProblemKind kind, const Diagnostics& diagnostics) {
  return !diagnostics.empty() &&
         std::all_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.kind == kind; });
}

}  // namespace quadrille
