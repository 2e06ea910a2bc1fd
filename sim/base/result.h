// Result<T>: a value, or everything that is wrong with the user's input.
//
// A loader collects all problems before it gives up, hence a list. A Diagnostic without a file
// speaks of the call itself (a flag, a combination of keys).
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace quadrille {

// Lines and columns count from 1; 0 means unknown.
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Diagnostic {
  SourcePosition position;
  std::string message;
  // The input is well formed, but what it describes cannot run: a deadlock, a fabric in two parts.
  bool cannot_run = false;
};

// "file:line:column: message", leaving out what is unknown.
[[nodiscard]] std::string ToString(const Diagnostic& diagnostic);

using Diagnostics = std::vector<Diagnostic>;

// "one per line", without a trailing newline.
[[nodiscard]] std::string ToString(const Diagnostics& diagnostics);

// Whether there are problems and each of them says that what was described cannot run.
[[nodiscard]] bool CannotRun(const Diagnostics& diagnostics);

template <typename T>
using Result = tl::expected<T, Diagnostics>;

// Makes the error side of a Result from one message.
[[nodiscard]] inline tl::unexpected<Diagnostics> Error(std::string message,
                                                       SourcePosition position = {}) {
  return tl::unexpected<Diagnostics>(
      Diagnostics{Diagnostic{std::move(position), std::move(message)}});
}

// The same for something well formed that cannot run.
[[nodiscard]] inline tl::unexpected<Diagnostics> CannotRunError(std::string message,
                                                                SourcePosition position = {}) {
  return tl::unexpected<Diagnostics>(
      Diagnostics{Diagnostic{std::move(position), std::move(message), true}});
}

}  // namespace quadrille
