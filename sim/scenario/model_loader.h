// A transformer's dimensions from YAML: the fields of model::TransformerConfig in snake_case.
#pragma once

#include "sim/model/transformer_config.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

// Reads the map at "model" into `*config`. Problems go to the reader's findings: missing
// dimensions, and dimensions that contradict each other (heads and KV heads, experts and top-k).
void LoadModel(MapReader reader, model::TransformerConfig* config);

}  // namespace quadrille::scenario
