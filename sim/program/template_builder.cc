#include "sim/program/template_builder.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/program/pass_filter.h"
#include "sim/program/tensor_overlap.h"

namespace quadrille::program {
namespace {

using model::Operation;
using model::OperationKind;
using model::Pass;

LaneKind LaneOf(model::Axis axis) {
  switch (axis) {
    case model::Axis::kTensor: return LaneKind::kTensor;
    case model::Axis::kContext: return LaneKind::kContext;
    case model::Axis::kExpert:
    case model::Axis::kExpertTensor: return LaneKind::kExpert;
    case model::Axis::kData:
    case model::Axis::kExpertData: return LaneKind::kParameterGather;
    default: break;
  }
  QUADRILLE_CHECK(false, "no layer communicates over axis {}", static_cast<int>(axis));
  return LaneKind::kTensor;
}

// What a kernel is, whatever schedule runs it: forward and whole or split backwards of a piece read
// the same two lists, so the place in its list tells kernels of one name apart.
std::uint32_t IdentityOf(const Operation& op, std::size_t place) {
  std::uint64_t hash = Hash(static_cast<std::uint64_t>(op.pass), place);
  for (const char* c = op.name; *c != '\0'; ++c) hash = Mix(hash ^ static_cast<unsigned char>(*c));
  return static_cast<std::uint32_t>(hash);
}

bool Needs(const Operation& op, std::int32_t index) {
  return std::find(op.needs.begin(), op.needs.end(), index) != op.needs.end();
}

// Emits the operations of one action in order, remembering where each completes.
class ActionStream {
 public:
  ActionStream(const TemplateContext& context, const ActionBody& body, ShapeTable& shapes,
               RankProgram& program, TemplateWriter& writer,
               std::vector<std::vector<Duration>>& finish, double time_scale, bool second_of_pair)
      : context_(context),
        body_(body),
        time_scale_(time_scale),
        second_of_pair_(second_of_pair),
        shapes_(shapes),
        program_(program),
        writer_(writer),
        finish_(finish),
        own_counts_(program.lanes.size(), 0) {
    own_counts_[kComputeLane] = writer.Count(kComputeLane);
    EnterPiece();
  }

  [[nodiscard]] bool done() const { return piece_ >= body_.pieces.size(); }
  [[nodiscard]] bool has_deferred() const { return !deferred_.empty(); }
  [[nodiscard]] const std::vector<std::int32_t>& piece_ends() const { return piece_ends_; }

  // Estimated instant at which the next operation's inputs are there.
  [[nodiscard]] Duration NextReady() const {
    Duration ready{0};
    for (const Wait& wait : WaitsOf(Current())) ready = std::max(ready, FinishOf(wait));
    return ready;
  }

  // Compute time that this stream needs before its next transfer can be posted.
  [[nodiscard]] Duration ComputeBeforeTransfer() const {
    Duration sum{0};
    for (std::size_t i = next_; i < Operations().size(); ++i) {
      const Operation& op = Operations()[i];
      if (!Selects(op.pass)) continue;
      if (op.kind == OperationKind::kCollective) break;
      sum += KernelOf(op).duration;
    }
    return sum;
  }

  // From here on, weight-gradient kernels wait for EmitDeferred. REQUIRES: no piece of the action
  // reduces gradients on its own.
  void Defer() { defers_ = true; }

  // The oldest weight-gradient kernel that was put off. Gradients are complete with the last one.
  void EmitDeferred() {
    const Deferred next = deferred_.front();
    deferred_.erase(deferred_.begin());
    EmitNamed(*next.operation, next.layer, next.identity, KernelOf(*next.operation), next.waits);
    std::fill(piece_ends_.begin(), piece_ends_.end(), writer_.Count(kComputeLane));
  }

  // Emits the next operation together with those collectives and parts that belong to it.
  void EmitNext() {
    const Operation& op = Current();
    if (defers_ && op.pass == Pass::kWeightGradient && op.kind != OperationKind::kCollective) {
      deferred_.push_back({&op, body_.pieces[piece_].layer, IdentityOf(op, next_), WaitsOf(op)});
      return Advance();
    }
    if (op.kind == OperationKind::kCollective) {
      EmitCollective(op);
    } else {
      EmitCompute(op);
    }
    Advance();
  }

 private:
  [[nodiscard]] const std::vector<Operation>& Operations() const {
    return *body_.pieces[piece_].operations;
  }
  [[nodiscard]] const Operation& Current() const { return Operations()[next_]; }

  void EnterPiece() {
    while (!done()) {
      joins_.clear();
      for (std::size_t lane = 1; lane < program_.lanes.size(); ++lane) {
        const auto index = static_cast<LaneIndex>(lane);
        if (own_counts_[index] > 0 && !RunsAhead(index))
          joins_.push_back({index, own_counts_[index]});
      }
      entry_count_ = own_counts_[kComputeLane];
      first_compute_ = true;
      completed_.assign(Operations().size(), std::nullopt);
      next_ = 0;
      GatherAhead();
      SkipUnselected();
      if (next_ < Operations().size()) return CastGathered(body_.pieces[piece_].weight_cast);
      LeavePiece();
    }
  }

  void LeavePiece() {
    const PieceBody& piece = body_.pieces[piece_];
    if (!piece.recompute_only && !piece.boundary)
      piece_ends_.push_back(writer_.Count(kComputeLane));
    if (body_.filter != PassFilter::kForward) {
      const std::vector<Wait> done = {{kComputeLane, own_counts_[kComputeLane]}};
      const auto reduce = [&](model::Axis axis, Bytes bytes, const char* name) {
        const int lane = FindLane(program_, LaneKind::kGradientReduce, axis);
        if (bytes.value() == 0 || lane < 0) return;
        EmitShard({model::CollectiveKind::kReduceScatter, axis, bytes}, name,
                  static_cast<LaneIndex>(lane), done);
      };
      reduce(model::Axis::kData, piece.reduce, "reduce-scatter gradients");
      reduce(model::Axis::kExpertData, piece.expert_reduce, "reduce-scatter expert gradients");
    }
    ++piece_;
  }

  // Lanes of sharded parameters and gradients run ahead or behind; no border waits for them.
  [[nodiscard]] bool RunsAhead(LaneIndex lane) const {
    const LaneKind kind = program_.lanes[lane].kind;
    return kind == LaneKind::kParameterGather ||
           (kind == LaneKind::kGradientReduce && !context_.wait_for_reduce);
  }

  // Posts the gathers of this piece and the next `gather_ahead`; its first kernel waits for its.
  void GatherAhead() {
    if (body_.filter == PassFilter::kBackwardWeight) return;
    const std::size_t ahead = piece_ + static_cast<std::size_t>(context_.gather_ahead);
    while (gathered_ < body_.pieces.size() && gathered_ <= ahead) {
      const PieceBody& piece = body_.pieces[gathered_++];
      std::vector<Wait>& own = gathers_.emplace_back();
      const auto gather = [&](model::Axis axis, Bytes bytes, const char* name) {
        const int lane = FindLane(program_, LaneKind::kParameterGather, axis);
        if (bytes.value() == 0 || lane < 0) return;
        const auto index = static_cast<LaneIndex>(lane);
        EmitShard({model::CollectiveKind::kAllGather, axis, bytes}, name, index,
                  {{kComputeLane, entry_count_}});
        own.push_back({index, own_counts_[index]});
      };
      gather(model::Axis::kData, piece.gather, "all-gather parameters");
      gather(model::Axis::kExpertData, piece.expert_gather, "all-gather expert parameters");
    }
    joins_.insert(joins_.end(), gathers_[piece_].begin(), gathers_[piece_].end());
    const auto arrive = [&](model::Axis axis, std::int32_t buckets) {
      const int lane = FindLane(program_, LaneKind::kParameterGather, axis);
      if (buckets > 0 && lane >= 0) joins_.push_back({static_cast<LaneIndex>(lane), buckets});
    };
    arrive(model::Axis::kData, body_.pieces[piece_].buckets_gathered);
    arrive(model::Axis::kExpertData, body_.pieces[piece_].expert_buckets_gathered);
  }

  // A narrow recipe casts the weights that were gathered in 16 bits, each time.
  void CastGathered(Bytes bytes) {
    if (bytes.value() == 0) return;
    Operation cast;
    cast.name = "cast weights";
    cast.pass = body_.filter == PassFilter::kForward ? Pass::kForward : Pass::kInputGradient;
    cast.memory = {model::MemoryBoundClass::kCast, bytes, 1};
    EmitKernel(cast, KernelOf(cast), WaitsOf(cast));
  }

  void EmitShard(const model::CollectiveShape& collective, const char* name, LaneIndex lane,
                 const std::vector<Wait>& waits) {
    network::TransferShape shape;
    shape.collective = collective;
    Instruction instruction;
    instruction.kind = InstructionKind::kTransfer;
    instruction.lane = lane;
    instruction.operation =
        NameOf(program_, name, OperationKind::kCollective,
               body_.filter == PassFilter::kForward ? Pass::kForward : Pass::kInputGradient, false);
    instruction.layer = static_cast<std::int16_t>(body_.pieces[piece_].layer);
    instruction.cost = shapes_.IndexOf(shape);
    Emit(instruction, waits, context_.transfer_time ? context_.transfer_time(shape) : Duration(0));
  }

  // Whether the action runs operations of `pass` in the current piece.
  [[nodiscard]] bool Selects(Pass pass) const {
    if (body_.pieces[piece_].recompute_only && pass != Pass::kRecompute) return false;
    return Selected(body_.filter, pass);
  }

  void SkipUnselected() {
    while (next_ < Operations().size() && !Selects(Current().pass)) ++next_;
  }

  void Advance() {
    ++next_;
    SkipUnselected();
    if (next_ < Operations().size()) return;
    LeavePiece();
    EnterPiece();
  }

  // What an operation waits for: its needs, and the border of the piece where it has none that say
  // otherwise.
  [[nodiscard]] std::vector<Wait> WaitsOf(const Operation& op) const {
    std::vector<Wait> waits;
    bool has_producer = false;
    for (std::int32_t need : op.needs) {
      const std::optional<Wait>& at = completed_[static_cast<std::size_t>(need)];
      if (!at) continue;
      waits.push_back(*at);
      has_producer = has_producer || at->lane == kComputeLane;
    }
    const bool border = op.kind == OperationKind::kCollective ? !has_producer : first_compute_;
    if (border) {
      waits.insert(waits.end(), joins_.begin(), joins_.end());
      waits.push_back({kComputeLane, entry_count_});
    }
    return waits;
  }

  [[nodiscard]] Duration FinishOf(const Wait& wait) const {
    const std::vector<Duration>& lane = finish_[wait.lane];
    if (wait.count <= 0 || lane.empty()) return Duration(0);
    return lane[std::min(static_cast<std::size_t>(wait.count), lane.size()) - 1];
  }

  std::int32_t Emit(const Instruction& instruction, const std::vector<Wait>& waits,
                    Duration duration) {
    std::vector<Duration>& lane = finish_[instruction.lane];
    Duration start = lane.empty() ? Duration(0) : lane.back();
    for (const Wait& wait : waits) start = std::max(start, FinishOf(wait));
    lane.push_back(start + duration);
    return own_counts_[instruction.lane] = writer_.Emit(instruction, waits);
  }

  Instruction Named(const Operation& op, std::int32_t layer, InstructionKind kind, LaneIndex lane) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.lane = lane;
    instruction.operation = NameOf(program_, op.name, op.kind, op.pass, false);
    instruction.layer = static_cast<std::int16_t>(layer);
    return instruction;
  }

  std::int32_t EmitNamed(const Operation& op, std::int32_t layer, std::uint32_t identity,
                         const Kernel& kernel, const std::vector<Wait>& waits) {
    Instruction instruction = Named(op, layer, InstructionKind::kCompute, kComputeLane);
    instruction.cost = static_cast<std::uint32_t>(program_.kernels.size());
    program_.kernels.push_back(kernel);
    program_.kernels.back().identity = identity;
    program_.kernels.back().second_of_pair = second_of_pair_;
    return Emit(instruction, waits, kernel.duration);
  }

  // Emits `kernel`, the operation's or a part of it, after `waits`. Returns where it completes.
  Wait EmitKernel(const Operation& op, const Kernel& kernel, const std::vector<Wait>& waits) {
    const std::int32_t count =
        EmitNamed(op, body_.pieces[piece_].layer, IdentityOf(op, next_), kernel, waits);
    first_compute_ = false;
    return {kComputeLane, count};
  }

  std::optional<Wait> EmitTransfer(const Operation& op, double fraction,
                                   const TensorOverlapEntry* overlap,
                                   const std::vector<Wait>& waits) {
    const int lane = FindLane(program_, LaneOf(op.collective.axis), op.collective.axis);
    if (lane < 0) return std::nullopt;
    network::TransferShape shape;
    shape.collective = op.collective;
    shape.fraction = fraction;
    shape.time_scale = time_scale_;
    if (overlap != nullptr && overlap->method != TensorOverlapMethod::kNone) {
      shape.userbuffers = true;
      shape.multiprocessors = overlap->multiprocessors;
    }
    Instruction instruction = Named(op, body_.pieces[piece_].layer, InstructionKind::kTransfer,
                                    static_cast<LaneIndex>(lane));
    instruction.cost = shapes_.IndexOf(shape);
    const Duration time = context_.transfer_time ? context_.transfer_time(shape) : Duration(0);
    return Wait{static_cast<LaneIndex>(lane), Emit(instruction, waits, time)};
  }

  // A collective on its own, or a ring all-gather with the GEMM that follows it.
  void EmitCollective(const Operation& op) {
    const TensorOverlapEntry* overlap = FindOverlap(*context_.tensor_overlap, op);
    const std::vector<Wait> waits = WaitsOf(op);
    completed_[next_] = EmitTransfer(op, 1.0, overlap, waits);
    if (!completed_[next_]) {
      // A group of one: whoever needs this needs what it needed.
      if (!op.needs.empty())
        completed_[next_] = completed_[static_cast<std::size_t>(op.needs.back())];
      return;
    }
    if (overlap != nullptr && overlap->method != TensorOverlapMethod::kBulk &&
        overlap->method != TensorOverlapMethod::kNone) {
      ring_ = static_cast<std::int32_t>(next_);
      ring_parts_ =
          overlap->method == TensorOverlapMethod::kRing ? context_.tensor_degree : overlap->splits;
      ring_producers_ = waits;
    }
  }

  [[nodiscard]] Kernel KernelOf(const Operation& op) const {
    const compute::KernelCost cost = context_.kernels->Cost(op);
    Kernel kernel{quadrille::Scale(cost.duration, time_scale_), cost.memory_bound, false,
                  cost.memory_traffic, op.flops};
    if (!op.of_expert_rows) return kernel;
    kernel.of_expert_rows = kernel.duration;
    if (op.kind == model::OperationKind::kMemoryBound) {
      Operation empty = op;
      empty.memory.bytes = Bytes(0);
      kernel.of_expert_rows -=
          quadrille::Scale(context_.kernels->Cost(empty).duration, time_scale_);
    }
    return kernel;
  }

  // `part` of a kernel; the rest is what remains, so that the parts add up to the picosecond.
  static std::pair<Kernel, Kernel> Split(const Kernel& whole, double part) {
    Kernel first = whole;
    first.duration = quadrille::Scale(whole.duration, part);
    first.memory_traffic = quadrille::Scale(whole.memory_traffic, part);
    first.flops = whole.flops * part;
    first.of_expert_rows = quadrille::Scale(whole.of_expert_rows, part);
    Kernel rest = whole;
    rest.duration = whole.duration - first.duration;
    rest.memory_traffic = whole.memory_traffic - first.memory_traffic;
    rest.flops = whole.flops - first.flops;
    rest.of_expert_rows = whole.of_expert_rows - first.of_expert_rows;
    return {first, rest};
  }

  void EmitCompute(const Operation& op) {
    const Kernel kernel = KernelOf(op);
    std::vector<Wait> waits = WaitsOf(op);
    if (ring_ >= 0 && op.kind == OperationKind::kGemm && Needs(op, ring_)) {
      const Wait gathered = *completed_[static_cast<std::size_t>(ring_)];
      const double n = ring_parts_;
      const auto [most, last] = Split(kernel, (n - 1.0) / n);
      EmitKernel(op, most, ring_producers_);
      waits.push_back(gathered);
      completed_[next_] = EmitKernel(op, last, waits);
      ring_ = -1;
      return;
    }
    const std::optional<std::size_t> scatter = FollowingReduceScatter(op);
    if (!scatter) {
      completed_[next_] = EmitKernel(op, kernel, waits);
      return;
    }
    const Operation& transfer = Operations()[*scatter];
    const TensorOverlapEntry* overlap = FindOverlap(*context_.tensor_overlap, transfer);
    const double n =
        overlap->method == TensorOverlapMethod::kRing ? context_.tensor_degree : overlap->splits;
    const auto [head, tail] = Split(kernel, 1.0 / n);
    const Wait first = EmitKernel(op, head, waits);
    EmitTransfer(transfer, (n - 1.0) / n, overlap, {first});
    const Wait second = EmitKernel(op, tail, {});
    completed_[next_] = second;
    completed_[*scatter] = EmitTransfer(transfer, 1.0 / n, overlap, {second});
    next_ = *scatter;  // both are emitted
  }

  // The reduce-scatter (or all-reduce) right behind this GEMM, when the table pipelines the two.
  [[nodiscard]] std::optional<std::size_t> FollowingReduceScatter(const Operation& op) const {
    if (op.kind != OperationKind::kGemm || op.site == model::OverlapSite::kNone)
      return std::nullopt;
    std::size_t following = next_ + 1;
    const std::vector<Operation>& operations = Operations();
    while (following < operations.size() && !Selects(operations[following].pass)) {
      ++following;
    }
    if (following >= operations.size()) return std::nullopt;
    const Operation& transfer = operations[following];
    if (transfer.kind != OperationKind::kCollective || transfer.site != op.site ||
        !Needs(transfer, static_cast<std::int32_t>(next_)) ||
        FindLane(program_, LaneOf(transfer.collective.axis), transfer.collective.axis) < 0) {
      return std::nullopt;
    }
    const TensorOverlapEntry* overlap = FindOverlap(*context_.tensor_overlap, transfer);
    if (overlap == nullptr || overlap->method == TensorOverlapMethod::kNone ||
        overlap->method == TensorOverlapMethod::kBulk) {
      return std::nullopt;
    }
    return following;
  }

  const TemplateContext& context_;
  const ActionBody& body_;
  const double time_scale_;
  const bool second_of_pair_;
  ShapeTable& shapes_;
  RankProgram& program_;
  TemplateWriter& writer_;
  std::vector<std::vector<Duration>>& finish_;
  // Counts after this stream's own last instruction on each lane: a fused partner's transfers are
  // not its border.
  std::vector<std::int32_t> own_counts_;
  std::size_t piece_ = 0;
  std::size_t next_ = 0;
  bool first_compute_ = true;
  std::int32_t entry_count_ = 0;
  std::vector<Wait> joins_;
  std::vector<std::optional<Wait>> completed_;
  std::vector<std::int32_t> piece_ends_;
  std::size_t gathered_ = 0;                // pieces whose gathers are posted
  std::vector<std::vector<Wait>> gathers_;  // by piece; none where parameters are resident
  // A ring all-gather whose GEMM is still to come: its index, its number of chunks, and what its
  // input waits for.
  std::int32_t ring_ = -1;
  std::int32_t ring_parts_ = 1;
  std::vector<Wait> ring_producers_;
  struct Deferred {
    const Operation* operation = nullptr;
    std::int32_t layer = -1;
    std::uint32_t identity = 0;
    std::vector<Wait> waits;
  };
  bool defers_ = false;
  std::vector<Deferred> deferred_;  // oldest first
};

// Which stream of a fused pair goes on: the one whose next operation has had its inputs for longer;
// on a tie the one that gets a transfer under way sooner, then the second, the backward.
bool TakeSecond(const ActionStream& first, const ActionStream& second) {
  if (first.done() || second.done()) return first.done();
  const Duration first_ready = first.NextReady();
  const Duration second_ready = second.NextReady();
  if (first_ready != second_ready) return second_ready < first_ready;
  return second.ComputeBeforeTransfer() <= first.ComputeBeforeTransfer();
}

// Merges the two streams. Weight gradients that were put off run where the compute lane would
// otherwise wait for the next operation's inputs, and at the end.
void Merge(ActionStream& first, ActionStream& second, const std::vector<Duration>& compute_finish) {
  while (!first.done() || !second.done()) {
    ActionStream& next = TakeSecond(first, second) ? second : first;
    const bool idle = next.NextReady() > compute_finish.back();
    ActionStream* filler = first.has_deferred()    ? &first
                           : second.has_deferred() ? &second
                                                   : nullptr;
    if (idle && filler != nullptr) {
      filler->EmitDeferred();
    } else {
      next.EmitNext();
    }
  }
  while (first.has_deferred()) first.EmitDeferred();
  while (second.has_deferred()) second.EmitDeferred();
}

}  // namespace

BuiltTemplate BuildActionTemplate(const TemplateContext& context, std::string name,
                                  const ActionBody& first, const ActionBody* second,
                                  ShapeTable& shapes, RankProgram& program) {
  TemplateWriter writer(program, context.host_launch);
  std::vector<std::vector<Duration>> finish(program.lanes.size());
  Instruction begin;
  begin.kind = InstructionKind::kBegin;
  writer.Emit(begin, {});
  finish[kComputeLane].push_back(Duration(0));
  const double scale = second != nullptr && context.serial_pairs ? context.pair_scale : 1.0;
  ActionStream leading(context, first, shapes, program, writer, finish, scale, false);
  if (second != nullptr) {
    ActionStream other(context, *second, shapes, program, writer, finish, scale, true);
    const auto reduces = [](const ActionBody& body) {
      return std::any_of(body.pieces.begin(), body.pieces.end(), [](const PieceBody& piece) {
        return piece.reduce.value() > 0 || piece.expert_reduce.value() > 0;
      });
    };
    if (context.defer_weight_gradient && !context.serial_pairs && !reduces(first) &&
        !reduces(*second)) {
      leading.Defer();
      other.Defer();
    }
    while (context.serial_pairs && !leading.done()) leading.EmitNext();
    Merge(leading, other, finish[kComputeLane]);
  } else {
    while (!leading.done()) leading.EmitNext();
  }
  Instruction end;
  end.kind = InstructionKind::kEnd;
  std::vector<Wait> trailing;
  for (std::size_t lane = 1; lane < program.lanes.size(); ++lane) {
    const auto index = static_cast<LaneIndex>(lane);
    const LaneKind kind = program.lanes[lane].kind;
    if (kind == LaneKind::kParameterGather || kind == LaneKind::kGradientReduce) continue;
    if (writer.Count(index) > 0) trailing.push_back({index, writer.Count(index)});
  }
  writer.Emit(end, trailing);
  BuiltTemplate built;
  built.piece_ends = leading.piece_ends();
  built.launch_total = writer.launch_total();
  built.index = writer.Close(std::move(name));
  return built;
}

}  // namespace quadrille::program
