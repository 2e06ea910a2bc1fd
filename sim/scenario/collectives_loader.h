// The constants of the collective cost law from YAML: the fields of network::CollectiveConstants in
// snake_case.
#pragma once

#include "sim/network/collective_constants.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

// Reads the map at "cluster.collectives". Every constant may cite its source, as `{value: 14 us,
// source: "...", kind: published}`; laws and footprints carry `source` and `kind` beside their own
// keys.
void LoadCollectives(MapReader reader, network::CollectiveConstants* constants);

}  // namespace quadrille::scenario
