#include "sim/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quadrille {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fputs(
      fmt::format("{}:{}: internal error: {} does not hold: {}\n", file, line, condition, message)
          .c_str(),
      stderr);
  std::abort();
}

}  // namespace quadrille
