// The actions of a rank: what each executes, gathers, reduces, allocates and frees.
//
// Full recomputation comes in two methods. Uniform with groups of n: each n layers of a chunk keep
// the input of the first alone; the backward of a group repeats the forwards of all its layers and
// then runs their backwards, with the activations of n layers at hand. Block: the first n layers of
// a chunk repeat themselves one by one, the others keep their activations.
//
// Sharded weights are gathered before each forward and, where they are let go after it, before each
// backward. Where they are kept, a pipeline gathers them once a step, in the first forward of a
// chunk, and lets go of them after its last backward; without a pipeline each forward gathers them
// (pytorch/pytorch:torch/distributed/pipelining/stage.py; torch/distributed/fsdp, FSDP2).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "schedules/text.h"
#include "sim/base/check.h"
#include "sim/program/rank_program_builder.h"

namespace quadrille::program {
namespace {

using model::Axis;
using parallel::DataSharding;
using schedules::Action;
using schedules::ActionKind;
using schedules::Slot;

// A key under which all microbatches of an action share a template.
Slot TemplateKey(const Slot& slot) {
  Slot key = slot;
  key.first.microbatch = MicrobatchId(0);
  if (key.second) key.second->microbatch = MicrobatchId(0);
  return key;
}

PassFilter FilterOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return PassFilter::kForward;
    case ActionKind::kBackward: return PassFilter::kBackward;
    case ActionKind::kBackwardInput: return PassFilter::kBackwardInput;
    case ActionKind::kBackwardWeight: return PassFilter::kBackwardWeight;
  }
  return PassFilter::kForward;
}

bool IsBackward(ActionKind kind) { return kind != ActionKind::kForward; }

}  // namespace

bool RankProgramBuilder::KeepsGatheredWeights() const {
  return input_.ranks.config().sharding == DataSharding::kFull &&
         !input_.overlap.fsdp_reshard_after_forward && !GathersAhead();
}

std::vector<RankProgramBuilder::PieceRecompute> RankProgramBuilder::RecomputePlan(
    const std::vector<model::Piece>& pieces) const {
  std::vector<PieceRecompute> plan(pieces.size());
  const model::ExecutionConfig& execution = input_.execution;
  const bool full = execution.recomputation == model::Recomputation::kFull;
  const auto layers = static_cast<std::size_t>(execution.recompute_layers);
  std::size_t layer = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    plan[i].first = i;
    if (!full || pieces[i].kind != model::PieceKind::kLayer) continue;
    if (execution.recompute_method == model::RecomputeMethod::kBlock) {
      plan[i].recomputes = layer < layers;
    } else if (layer % layers != 0) {
      plan[i].first = plan[i - 1].first;
      for (std::size_t j = plan[i].first; j <= i; ++j) plan[j].in_group = i - plan[i].first + 1;
    }
    ++layer;
  }
  return plan;
}

RankProgramBuilder::Weights RankProgramBuilder::WeightsOf(const Slot& slot, bool first_forward) {
  const bool forward = slot.first.kind == ActionKind::kForward;
  if (KeepsGatheredWeights() && input_.schedule.pipeline > 1 && forward && !first_forward) {
    return Weights::kResident;
  }
  const auto is_cut = [&](Axis axis) {
    return ParameterBuckets(slot.first.chunk, axis).buckets.size() > 1;
  };
  const bool in_buckets =
      first_forward && !slot.second && (is_cut(Axis::kData) || is_cut(Axis::kExpertData));
  return in_buckets ? Weights::kInBuckets : Weights::kGathered;
}

bool RankProgramBuilder::Receives(const Action& action) const {
  if (action.kind == ActionKind::kBackwardWeight) return false;
  const schedules::PipelineSchedule& schedule = input_.schedule;
  const std::int32_t own = schedule.StageOf(pipeline_rank_, action.chunk).value();
  const std::int32_t from = own + (IsBackward(action.kind) ? 1 : -1);
  return from >= 0 && from < schedule.stage_count() &&
         schedule.RankOf(StageId(from), action.chunk) != pipeline_rank_;
}

ActionBody RankProgramBuilder::BodyOf(const Action& action, Weights weights) {
  ActionBody body;
  body.filter = FilterOf(action.kind);
  const bool backward = IsBackward(action.kind);
  const DataSharding sharding = input_.ranks.config().sharding;
  // Under look-ahead both are matters of whole chunks (rank_program_unsharding.cc).
  const bool fully = sharding == DataSharding::kFull && !GathersAhead();
  const bool shards_gradients = fully || sharding == DataSharding::kGradient;
  const bool shards_weights = fully && (backward ? input_.overlap.fsdp_reshard_after_forward
                                                 : weights != Weights::kResident);
  const double weight = BytesPerElement(input_.optimizer.parameter_gather_dtype);
  const double gradient = BytesPerElement(input_.optimizer.gradient_dtype);
  const std::vector<model::Piece> pieces = PiecesOf(action.chunk);
  const std::vector<ParameterCount> dense = ParametersOf(action.chunk).pieces;
  const std::vector<PieceRecompute> plan = RecomputePlan(pieces);
  const bool in_buckets = !backward && weights == Weights::kInBuckets;
  const auto buckets_of = [&](Axis axis) {
    return in_buckets ? ParameterBuckets(action.chunk, axis) : GatherPlan{};
  };
  const GatherPlan buckets = buckets_of(Axis::kData);
  const GatherPlan expert_buckets = buckets_of(Axis::kExpertData);
  const auto entry_of = [&](std::size_t i, bool recomputes) {
    const model::PieceOperations& operations =
        pieces_.Operations(pieces[i], action.slice, recomputes);
    PieceBody entry;
    entry.operations = backward ? &operations.backward : &operations.forward;
    entry.layer = pieces[i].kind == model::PieceKind::kLayer ? pieces[i].layer : -1;
    return entry;
  };
  const auto gather = [&](PieceBody& entry, std::size_t i) {
    if (!shards_weights) return;
    entry.gather = BytesOf(dense[i], weight);
    entry.expert_gather = BytesOf(pieces_.Parameters(pieces[i]).expert, weight);
    if (action.kind != ActionKind::kBackwardWeight) {
      entry.weight_cast = GatheredCastBytes(pieces[i], backward, plan[i].recomputes);
    }
  };
  const auto add = [&](std::size_t i) {
    const PieceRecompute& group = plan[i];
    const bool together = backward && group.in_group > 1;
    if (together && i == group.first + group.in_group - 1) {
      for (std::size_t j = group.first; j <= i; ++j) {
        PieceBody again = entry_of(j, true);
        again.recompute_only = true;
        gather(again, j);
        body.pieces.push_back(again);
      }
    }
    PieceBody entry = entry_of(i, group.recomputes && !together);
    if (buckets.buckets.size() > 1) entry.buckets_gathered = buckets.needed[i];
    if (expert_buckets.buckets.size() > 1) {
      entry.expert_buckets_gathered = expert_buckets.needed[i];
    }
    if (!together) gather(entry, i);
    if (shards_gradients && CompletesGradients(action.kind)) {
      entry.reduce = BytesOf(dense[i], gradient);
      entry.expert_reduce = BytesOf(pieces_.Parameters(pieces[i]).expert, gradient);
    }
    body.pieces.push_back(entry);
  };
  const model::PieceOperations& boundary = pieces_.Boundary();
  if (!boundary.forward.empty() && Receives(action)) {
    PieceBody arrival;
    arrival.operations = backward ? &boundary.backward : &boundary.forward;
    arrival.boundary = true;
    body.pieces.push_back(arrival);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) add(backward ? pieces.size() - 1 - i : i);
  return body;
}

// What an action allocates when it begins and frees when it ends, per microbatch and slice. Pieces
// store and release one after the other, so that a piece's temporaries meet what those behind it
// have not yet stored (F) or have already released (B, I) least of all at the end.
void RankProgramBuilder::AccountMemory(const Action& action, ActionTemplate& result) {
  Bytes stored{0};
  Bytes at_weight{0};
  Bytes held{0};
  Bytes forward_peak{0};  // above the begin of F
  const std::vector<model::Piece> pieces = PiecesOf(action.chunk);
  const std::vector<PieceRecompute> plan = RecomputePlan(pieces);
  const auto kept = [&](std::size_t i) {
    const bool first = plan[i].first == i;
    return first ? pieces_.Activations(pieces[i], plan[i].recomputes).stored : Bytes{0};
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const model::PieceActivations& a = pieces_.Activations(pieces[i], plan[i].recomputes);
    forward_peak = std::max(forward_peak, stored + a.stored + a.forward_workspace);
    stored += kept(i);
    at_weight += a.released_at_weight_gradient;
    held += a.held_for_weight_gradient;
  }
  const Bytes at_input = stored - at_weight;
  Bytes backward_peak{0};  // above the begin of B
  Bytes input_peak{0};     // above the begin of I
  Bytes released{0};
  Bytes exchanged{0};  // of I: released, less what is held for W in its place
  for (std::size_t i = pieces.size(); i-- > 0;) {
    const model::PieceActivations& a = pieces_.Activations(pieces[i], plan[i].recomputes);
    // The whole group's activations are there while its backward runs; one layer's are in its
    // workspace already.
    const Bytes others = Scale(pieces_.Activations(pieces[i], false).stored,
                               static_cast<double>(plan[i].in_group - 1));
    backward_peak = std::max(backward_peak, a.backward_workspace + others - released);
    input_peak = std::max(input_peak, a.input_gradient_workspace + others - exchanged);
    released += kept(i);
    exchanged += kept(i) - a.released_at_weight_gradient - a.held_for_weight_gradient;
  }
  AccountExpertMemory(action, pieces, plan, result);
  switch (action.kind) {
    case ActionKind::kForward:
      if (input_.execution.forward_only) {
        result.workspace += forward_peak;
        break;
      }
      result.allocated += stored;
      result.workspace += std::max(forward_peak - stored, Bytes{0});
      break;
    case ActionKind::kBackward:
      result.freed += stored;
      result.workspace += backward_peak;
      break;
    case ActionKind::kBackwardInput: {
      // What is held for W takes the place of what is released.
      const Bytes more = std::max(held - at_input, Bytes{0});
      result.allocated += more;
      result.freed += more + at_input - held;
      result.workspace += std::max(input_peak - more, Bytes{0});
      break;
    }
    case ActionKind::kBackwardWeight: result.freed += at_weight + held; break;
  }
}

// The part of it that goes with the tokens that the experts of a layer get.
void RankProgramBuilder::AccountExpertMemory(const Action& action,
                                             const std::vector<model::Piece>& pieces,
                                             const std::vector<PieceRecompute>& plan,
                                             ActionTemplate& result) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    model::PieceActivations more = pieces_.ExpertActivations(pieces[i], plan[i].recomputes);
    if ((more.stored + more.forward_workspace + more.backward_workspace).value() == 0) continue;
    if (plan[i].first != i) more.stored = Bytes(0);
    ExpertMemory memory;
    if (pieces[i].kind == model::PieceKind::kLayer) {
      memory.layer = static_cast<std::int16_t>(pieces[i].layer);
    }
    switch (action.kind) {
      case ActionKind::kForward:
        // What F needs above what it stores is mostly stored later, and grows no more than that.
        if (!input_.execution.forward_only) memory.allocated = more.stored;
        if (input_.execution.forward_only) memory.workspace = more.forward_workspace;
        break;
      case ActionKind::kBackward:
        memory.freed = more.stored;
        memory.workspace = more.backward_workspace;
        break;
      case ActionKind::kBackwardInput:
        memory.freed = more.stored - more.released_at_weight_gradient;
        memory.allocated = more.held_for_weight_gradient;
        memory.workspace = more.input_gradient_workspace;
        break;
      case ActionKind::kBackwardWeight:
        memory.freed = more.released_at_weight_gradient + more.held_for_weight_gradient;
        break;
    }
    result.expert_memory.push_back(memory);
  }
}

RankProgramBuilder::ActionTemplate RankProgramBuilder::MakeActionTemplate(const Slot& slot,
                                                                          Weights weights) {
  std::string name =
      fmt::format("{} chunk {}", schedules::LetterOf(slot.first.kind), slot.first.chunk.value());
  ActionTemplate result;
  const ActionBody first = BodyOf(slot.first, weights);
  AccountMemory(slot.first, result);
  std::optional<ActionBody> second;
  if (slot.second) {
    second = BodyOf(*slot.second, weights);
    AccountMemory(*slot.second, result);
    name += fmt::format(" & {} chunk {}", schedules::LetterOf(slot.second->kind),
                        slot.second->chunk.value());
  }
  result.built = BuildActionTemplate(context_, std::move(name), first, second ? &*second : nullptr,
                                     shapes_, program_);
  program_.templates[result.built.index].expert_memory = std::move(result.expert_memory);
  return result;
}

void RankProgramBuilder::AddActions() {
  std::vector<bool> seen(static_cast<std::size_t>(input_.schedule.virtual_stages), false);
  for (const Slot& slot : Slots()) {
    const bool forward = slot.first.kind == ActionKind::kForward;
    const bool first = forward && !seen[slot.first.chunk.index()];
    if (forward) seen[slot.first.chunk.index()] = true;
    const Weights weights = WeightsOf(slot, first);
    const std::pair<Slot, Weights> key{TemplateKey(slot), weights};
    auto it = templates_.find(key);
    if (it == templates_.end()) {
      it = templates_.emplace(key, MakeActionTemplate(slot, weights)).first;
    }
    const ActionTemplate& action = it->second;
    slot_templates_.push_back(&action);
    slot_begin_.push_back(compute_count_);
    compute_count_ += static_cast<std::int32_t>(
        program_.templates[action.built.index].lane_begin[kComputeLane + 1]);
    Segment segment;
    segment.body = action.built.index;
    segment.slot = slot;
    segment.allocated_at_begin = action.allocated;
    segment.freed_at_end = action.freed;
    segment.workspace = action.workspace;
    AddSegment(segment, action.built.launch_total);
  }
  slot_begin_.push_back(compute_count_);
  slot_entry_waits_.resize(Slots().size());
}

}  // namespace quadrille::program
