// One number that stands for everything a run depends on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

// Every value of the scenario that can change a result, one `key=value` per line, in a fixed order
// and with numbers printed exactly. Names of files, descriptions, sources, assumptions and warnings
// are left out.
[[nodiscard]] std::string CanonicalText(const Scenario& scenario);

// The same values one by one, named like their keys ("overlap.p2p"; numbered where a key repeats),
// with the scenario's words for choices and with units.
using NamedValues = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] NamedValues ValuesOf(const Scenario& scenario);

// 64 bits of CanonicalText; the same on every machine.
[[nodiscard]] std::uint64_t HashOf(const Scenario& scenario);

}  // namespace quadrille::scenario
