// Which pieces of the model each pipeline stage holds, as explicit lists.
//
// Megatron's rules (NVIDIA/Megatron-LM:megatron/core/transformer/transformer_block.py and
// pipeline_parallel_layer_layout.py): an even split where the embedding and the loss may each take
// a decoder layer's slot; stated numbers of layers for the first and last pipeline rank with the
// rest split evenly; or a layout string, one `|`-separated list per stage of E (embedding), t
// (decoder layer), m (prediction module) and L (loss), with `x*n` repetition and parentheses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/model/layer_operations.h"
#include "sim/model/transformer_config.h"
#include "sim/program/execution_options.h"

namespace quadrille::program {

// pieces[s]: what global stage s holds, in forward order.
using StageLayout = std::vector<std::vector<model::Piece>>;

// Deals the pieces of `config` to `pipeline * virtual_stages` stages in model order. Errors name
// the rule that is broken.
[[nodiscard]] Result<StageLayout> BuildLayout(const model::TransformerConfig& config,
                                              const LayoutOptions& options, std::int32_t pipeline,
                                              std::int32_t virtual_stages);

// "3 decoder layers, embedding" for messages and tables.
[[nodiscard]] std::string Describe(const std::vector<model::Piece>& pieces);

}  // namespace quadrille::program
