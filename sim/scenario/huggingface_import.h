// A Hugging Face config.json in place of a model: `model: {huggingface: path/to/config.json}`.
//
// Keys are those of huggingface/transformers (src/transformers/models/*/configuration_*.py) and, as
// NVIDIA-NeMo/Megatron-Bridge maps them, of src/megatron/bridge/models/conversion/model_bridge.py.
#pragma once

#include <string>

#include "sim/scenario/findings.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// If `*model` is a map with the key `huggingface`, replaces it by a map in the keys of our own
// models, each with the place in config.json that it comes from. Other keys of the map stay and
// win. Relative paths start at the file that names them. What config.json leaves open is filled
// with the defaults of its model type and told as assumptions. Problems go to `findings` and leave
// the map as it was; true when there were none.
[[nodiscard]] bool ExpandHuggingFace(YamlValue* model, Findings* findings);

// The translation alone. `config` is the tree of a config.json, `name` the model's name if it does
// not state one. Problems go to `findings`, under the path "model".
[[nodiscard]] YamlValue TranslateHuggingFace(const YamlValue& config, const std::string& name,
                                             Findings* findings);

}  // namespace quadrille::scenario
