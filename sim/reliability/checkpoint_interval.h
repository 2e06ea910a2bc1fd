// The classical optima of the time between two checkpoints.
#pragma once

#include "sim/reliability/reliability_spec.h"

namespace quadrille::reliability {

// Young's first-order optimum sqrt(2 C M) of the training time between checkpoints, with C the cost
// of one and M the mean time between failures (J. W. Young, "A first order approximation to the
// optimum checkpoint interval", Communications of the ACM 17(9), 1974).
[[nodiscard]] WallTime YoungInterval(WallTime cost, WallTime mean_time_between_failures);

// Daly's higher-order optimum sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C for C < 2M, and
// M otherwise (J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
// dumps", Future Generation Computer Systems 22(3), 2006, equation 37).
[[nodiscard]] WallTime DalyInterval(WallTime cost, WallTime mean_time_between_failures);

}  // namespace quadrille::reliability
