// Reads the flat YAML of scenarios/models without the scenario module, which is of higher rank.
#pragma once

#include <string>

#include "sim/model/transformer_config.h"

namespace quadrille::model {

// The shipped model of that name. Aborts the test on a file that is missing or a key that is
// unknown.
[[nodiscard]] TransformerConfig ShippedModel(const std::string& name);

}  // namespace quadrille::model
