// From dimensions to operations: every kernel and collective of one piece of a model on one GPU.
//
// A model is a list of pieces: embedding, decoder layers, head (final norm, LM head,
// vocabulary-parallel loss) and, where the model has them, multi-token-prediction modules. Which
// pieces a pipeline chunk holds is the layout's matter.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/execution_config.h"
#include "sim/model/operation.h"
#include "sim/model/transformer_config.h"

namespace quadrille::model {

enum class PieceKind : std::uint8_t { kEmbedding, kLayer, kHead, kMultiTokenPrediction };

struct Piece {
  PieceKind kind = PieceKind::kLayer;
  std::int32_t layer = 0;  // 0-based, of a decoder layer or prediction module

  bool operator==(const Piece&) const = default;
};

struct PieceOperations {
  std::vector<Operation> forward;
  // Recomputation (Pass::kRecompute), then input and weight gradients in the order of a whole
  // backward.
  std::vector<Operation> backward;
};

// Activations that one microbatch leaves in memory between its forward and its backward, and what
// runs on top of them.
struct PieceActivations {
  Bytes stored;                       // from the end of F
  Bytes released_at_input_gradient;   // of `stored`, at the end of I
  Bytes released_at_weight_gradient;  // the rest, at the end of W
  // Beyond `stored`, only where I and W are separate actions: output gradients and recomputed
  // inputs that weight gradients read. Allocated by the end of I, freed by the end of W.
  Bytes held_for_weight_gradient;
  // Transient peaks while an action runs, above what is held when F has ended (F) and when the
  // action begins (B, and I alone), with what the piece has stored and released until then.
  Bytes forward_workspace;
  Bytes backward_workspace;        // recomputed activations included
  Bytes input_gradient_workspace;  // the same, and `held_for_weight_gradient`
};

// Parameters that one GPU holds of a piece, by the group their gradients are reduced over. With
// tied embeddings the head counts no table: a stage that holds the head but not the embedding has a
// copy of TiedTableParameters. A prediction module shares the model's table and head in the same
// way.
struct PieceParameters {
  ParameterCount dense;
  ParameterCount expert;
};

// Lists chain: operation 0 of a list reads what the last operation of the list before it made (the
// previous piece in forward, the next in backward), and every list ends with the operation that
// completes its result. REQUIRES: a config and execution that passed CheckModel.
[[nodiscard]] PieceOperations OperationsOf(const TransformerConfig& config,
                                           const ExecutionConfig& execution, Piece piece);
// What more of each there would be if this GPU's experts got twice their rows; zero without
// experts.
[[nodiscard]] PieceActivations ExpertActivationsOf(const TransformerConfig& config,
                                                   const ExecutionConfig& execution, Piece piece);
[[nodiscard]] PieceActivations ActivationsOf(const TransformerConfig& config,
                                             const ExecutionConfig& execution, Piece piece);
[[nodiscard]] PieceParameters ParametersOf(const TransformerConfig& config,
                                           const Sharding& sharding, Piece piece);

// Of the dense parameters, those that every TP rank holds whole and whose gradients each finds from
// its own tokens or heads alone, so that they are summed over TP at the end of the step: with
// sequence parallelism norms, biases behind row-parallel layers, routers, gates and latent
// down-projections; without it the norms of queries and keys. (NVIDIA/Megatron-LM:
// megatron/core/distributed/finalize_model_grads.py.)
[[nodiscard]] ParameterCount PartialGradientParameters(const TransformerConfig& config,
                                                       const Sharding& sharding, Piece piece);

// Weights of the linear layers in `pieces`, each shape counted once: an expert's stand for all.
[[nodiscard]] ParameterCount DistinctWeights(const TransformerConfig& config,
                                             const Sharding& sharding,
                                             const std::vector<Piece>& pieces);

// The vocabulary shard of the embedding table.
[[nodiscard]] ParameterCount TiedTableParameters(const TransformerConfig& config,
                                                 const Sharding& sharding);

// The weights of a piece that the recipe's GEMMs read in its narrow format; none without one. All
// matrices but the router's, embedding and head; norms and biases are counted along, less than 1e-4
// of it.
[[nodiscard]] PieceParameters NarrowParameters(const TransformerConfig& config,
                                               const ExecutionConfig& execution, Piece piece);

// Bytes of one such weight in the narrow format, with its scales.
[[nodiscard]] double NarrowBytesPerParameter(Recipe recipe);

// Bytes that casting a piece's weights to the narrow format reads and writes (both layouts). Once
// per optimizer step: microbatches share the cast weights (NVIDIA/TransformerEngine:
// is_first_microbatch).
[[nodiscard]] Bytes WeightCastBytes(const TransformerConfig& config,
                                    const ExecutionConfig& execution, Piece piece);

// Activation (or its gradient) that crosses a stage boundary per microbatch and GPU: tokens x
// hidden in 16 bits, divided by TP when sequence parallelism shards it or each rank sends its
// share.
[[nodiscard]] Bytes BoundaryBytes(const TransformerConfig& config,
                                  const ExecutionConfig& execution);

// What makes the activations (forward) and the gradients (backward) whole that have arrived as
// shares under ExecutionConfig::scatter_gather; nothing otherwise.
[[nodiscard]] PieceOperations BoundaryOperations(const TransformerConfig& config,
                                                 const ExecutionConfig& execution);

}  // namespace quadrille::model
