// Helpers over operation lists.
#pragma once

#include <string>
#include <vector>

#include "sim/model/layer_operations.h"

namespace quadrille::model {

// Every piece of the model in order: embedding, layers, head, prediction modules.
[[nodiscard]] std::vector<Piece> AllPieces(const TransformerConfig& config);

// FLOPs that a model needs, of one list: no recomputation, and attention's backward as twice its
// forward (the flash kernel does 2.5 times).
[[nodiscard]] double ModelFlops(const std::vector<Operation>& operations);

[[nodiscard]] std::vector<Operation> Where(const std::vector<Operation>& operations,
                                           const std::string& name, Pass pass);
// REQUIRES: there is exactly one.
[[nodiscard]] Operation Only(const std::vector<Operation>& operations, const std::string& name,
                             Pass pass);
[[nodiscard]] std::int64_t CollectiveBytes(const std::vector<Operation>& operations, Axis axis);
// Names of a pass or of all, in order, joined by ", ".
[[nodiscard]] std::string Names(const std::vector<Operation>& operations);

}  // namespace quadrille::model
