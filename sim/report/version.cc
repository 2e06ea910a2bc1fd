#include "sim/report/version.h"

namespace quadrille::report {

std::string_view Version() { return QUADRILLE_VERSION; }

}  // namespace quadrille::report
