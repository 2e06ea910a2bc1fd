// Writes the body of an action: operation lists of a chunk's pieces become instructions on lanes.
//
// Compute operations go to the compute lane in list order. A collective goes to the lane of its
// axis and waits for what the model says it needs; an operation that needs a collective waits for
// that lane's count. At the border of two pieces the first operations of the next piece wait for
// all transfers of the previous one. The TP overlap table changes instructions, not durations: a
// ring exchange or a pipelined split cuts a GEMM in two parts around its transfer,
//
//   ring all-gather, n chunks:     part (n-1)/n of the GEMM beside the transfer, the last 1/n after
//   it pipelined or ring reduce-scatter, n splits:  1/n of the GEMM, then the rest beside (n-1)/n
//   of the transfer, then its last 1/n
//
// which takes exactly as long as n equal chunks in a software pipeline, (n-1) max(g, c) + g and g +
// (n-1) max(g, c) + c, with a fixed number of instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/compute/kernel_cost.h"
#include "sim/program/execution_options.h"
#include "sim/program/pass_filter.h"
#include "sim/program/program.h"
#include "sim/program/shape_table.h"
#include "sim/program/template_writer.h"

namespace quadrille::program {

struct PieceBody {
  const std::vector<model::Operation>* operations = nullptr;
  std::int32_t layer = -1;
  // Fully sharded parameters (ZeRO-3, FSDP): gathered before the piece runs. Sharded gradients
  // (ZeRO-2 and 3): reduced after its backward. No bytes: they are resident.
  Bytes gather;
  Bytes reduce;
  Bytes expert_gather{0};  // the same of expert weights, over their own groups
  Bytes weight_cast{0};    // read and written by the cast of what was gathered in 16 bits
  Bytes expert_reduce{0};
  // Completions of the lane of parameter gathers that the piece's first operation waits for, where
  // that lane runs beside the actions.
  std::int32_t buckets_gathered = 0;
  std::int32_t expert_buckets_gathered = 0;  // the same of expert weights
  // Only the recomputation of the list runs; its backward follows as a piece of its own.
  bool recompute_only = false;
  // No piece of the model: what happens to a message before the first one.
  bool boundary = false;
};

// One action's operations, in order: what one stream of a fused pair executes.
struct ActionBody {
  PassFilter filter = PassFilter::kForward;
  std::vector<PieceBody> pieces;
};

struct TemplateContext {
  const compute::KernelCostModel* kernels = nullptr;
  const TensorOverlapTable* tensor_overlap = nullptr;
  std::int32_t tensor_degree = 1;
  Duration host_launch{0};
  bool serial_pairs = false;  // the second action of a pair after the first instead of beside it
  double pair_scale = 1.0;    // of serial pairs: every operation lasts so many times its own time
  // In pairs that are not serial, to where the compute lane would wait.
  bool defer_weight_gradient = false;
  std::int32_t gather_ahead = 1;  // pieces gathered before they are needed (FSDP's prefetch)
  bool wait_for_reduce = false;   // the next piece waits for this one's gradients to be reduced
  // Alone time of a transfer, for the static order of a fused pair only.
  std::function<Duration(const network::TransferShape&)> transfer_time;
};

struct BuiltTemplate {
  std::uint32_t index = 0;
  // Compute-lane count at the end of each piece, in execution order, relative to the template's
  // start. Pieces that only recompute, and what is none of the model's, are left out.
  std::vector<std::int32_t> piece_ends;
  Duration launch_total{0};
};

// Appends a template to `program` that runs `first` alone or, fused, `first` and `second` merged:
// at each point the stream whose next operation has had its inputs for longer goes on. REQUIRES:
// program.lanes is complete.
[[nodiscard]] BuiltTemplate BuildActionTemplate(const TemplateContext& context, std::string name,
                                                const ActionBody& first, const ActionBody* second,
                                                ShapeTable& shapes, RankProgram& program);

}  // namespace quadrille::program
