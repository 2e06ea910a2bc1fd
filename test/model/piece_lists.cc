#include "test/model/piece_lists.h"

#include "sim/base/check.h"
#include "sim/model/attention_operations.h"

namespace quadrille::model {

std::vector<Piece> AllPieces(const TransformerConfig& config) {
  std::vector<Piece> pieces = {{.kind = PieceKind::kEmbedding}};
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    pieces.push_back({.kind = PieceKind::kLayer, .layer = layer});
  }
  pieces.push_back({.kind = PieceKind::kHead});
  for (std::int32_t module = 0; module < config.multi_token_prediction_layers; ++module) {
    pieces.push_back({.kind = PieceKind::kMultiTokenPrediction, .layer = module});
  }
  return pieces;
}

double ModelFlops(const std::vector<Operation>& operations) {
  double flops = 0.0;
  for (const Operation& operation : operations) {
    if (operation.pass == Pass::kRecompute) continue;
    if (operation.kind == OperationKind::kAttention) {
      AttentionShape forward = operation.attention;
      forward.backward = false;
      flops += AttentionFlops(forward).value() * (operation.attention.backward ? 2.0 : 1.0);
    } else {
      flops += operation.flops.value();
    }
  }
  return flops;
}

std::vector<Operation> Where(const std::vector<Operation>& operations, const std::string& name,
                             Pass pass) {
  std::vector<Operation> found;
  for (const Operation& operation : operations) {
    if (operation.name == name && operation.pass == pass) found.push_back(operation);
  }
  return found;
}

Operation Only(const std::vector<Operation>& operations, const std::string& name, Pass pass) {
  const std::vector<Operation> found = Where(operations, name, pass);
  QUADRILLE_CHECK(found.size() == 1, "{} operations named {}", found.size(), name);
  return found.front();
}

std::int64_t CollectiveBytes(const std::vector<Operation>& operations, Axis axis) {
  std::int64_t bytes = 0;
  for (const Operation& operation : operations) {
    if (operation.kind == OperationKind::kCollective && operation.collective.axis == axis) {
      bytes += operation.collective.bytes.value();
    }
  }
  return bytes;
}

std::string Names(const std::vector<Operation>& operations) {
  std::string names;
  for (const Operation& operation : operations) {
    if (!names.empty()) names += ", ";
    names += operation.name;
  }
  return names;
}

}  // namespace quadrille::model
