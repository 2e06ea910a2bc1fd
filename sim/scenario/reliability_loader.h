// The `reliability` section: how a run of many days is expected to break.
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

// An absent section leaves `scenario->reliability` empty.
void LoadReliability(MapReader reader, Scenario* scenario);

}  // namespace quadrille::scenario
