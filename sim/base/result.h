// Result<T>: a value, or everything that is wrong with the user's input.
//
// A loader collects all problems before it gives up, hence a list. A Diagnostic without a file
// speaks of the call itself (a flag, a combination of keys).
#pragma once

#include <cstdint>
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

// What has to change for a problem to go away.
enum class ProblemKind : std::uint8_t {
  kWrongInput,  // the text, the value or the call
  kCannotRun,   // the plan: it is well formed and cannot run (a deadlock, a fabric in two parts)
  kUnreadable,  // the disk: a file that is named by its path is not there or cannot be read
};

struct Diagnostic {
  SourcePosition position;
  std::string message;
  ProblemKind kind = ProblemKind::kWrongInput;
};

// "file:line:column: message", leaving out what is unknown.
[[nodiscard]] std::string ToString(const Diagnostic& diagnostic);

using Diagnostics = std::vector<Diagnostic>;

// "one per line", without a trailing newline.
[[nodiscard]] std::string ToString(const Diagnostics& diagnostics);

// Whether there are problems and each of them is of this kind.
[[nodiscard]] bool AllAre(ProblemKind kind, const Diagnostics& diagnostics);

template <typename T>
using Result = tl::expected<T, Diagnostics>;

// Makes the error side of a Result from one message.
[[nodiscard]] inline tl::unexpected<Diagnostics> Error(
    std::string message, SourcePosition position = {},
    ProblemKind kind = ProblemKind::kWrongInput) {
  return tl::unexpected<Diagnostics>(
      Diagnostics{Diagnostic{std::move(position), std::move(message), kind}});
}

}  // namespace quadrille
