// The version of the program, printed in every output.
#pragma once

#include <string_view>

namespace quadrille::report {

// "0.1.0", from the build system's project version.
[[nodiscard]] std::string_view Version();

}  // namespace quadrille::report
