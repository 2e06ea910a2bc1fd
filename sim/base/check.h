// CHECK: an invariant of ours, on in every build. A user's mistake is never a CHECK; it is a
// Diagnostic.
#pragma once

#include <fmt/format.h>

#include <string>

namespace quadrille {

// Prints the failed condition with its values on standard error and aborts; `main` turns that into
// exit status 70.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace quadrille

// QUADRILLE_CHECK(condition, format, values...): the message says what was expected and prints the
// values.
#define QUADRILLE_CHECK(condition, ...)                                                   \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      ::quadrille::CheckFailed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
    }                                                                                     \
  } while (false)
