#include "sample_run.h"

#include <algorithm>

namespace quadrille::report {
namespace {

using program::Instruction;
using program::InstructionKind;
using program::LaneKind;
using program::OpRecord;
using program::RankProgram;
using program::RankState;
using program::Segment;
using program::SegmentRole;
using schedules::Action;
using schedules::ActionKind;

// Segments of both stages: four actions, optimizer, flat lanes.
constexpr std::uint32_t kOptimizerSegment = 4;
constexpr std::uint32_t kFlatSegment = 5;
constexpr std::uint32_t kFlatTemplate = 2;
constexpr std::int32_t kComputePerSegment = 3;  // begin, kernel, end

struct Span {
  double begin;
  double end;
};
// The optimizer begins where the later stage is done.
constexpr Span kSpans[2][5] = {{{0, 10}, {10, 20}, {42, 62}, {72, 92}, {92, 95}},
                               {{11, 21}, {21, 41}, {41, 51}, {51, 71}, {92, 95}}};

Segment ActionSegment(ActionKind kind, std::int32_t microbatch) {
  Segment segment;
  segment.body = kind == ActionKind::kForward ? 0 : 1;
  segment.slot.first = {.kind = kind, .microbatch = MicrobatchId(microbatch), .chunk = ChunkId(0)};
  return segment;
}

RankProgram MakeRank(bool first) {
  using enum ActionKind;
  RankProgram rank;
  rank.lanes = {{LaneKind::kCompute, model::Axis::kTensor, -1, "compute"},
                {LaneKind::kTensor, model::Axis::kTensor, -1, "tensor parallel"}};
  const LaneKind send = first ? LaneKind::kSendForward : LaneKind::kSendBackward;
  const LaneKind receive = first ? LaneKind::kReceiveBackward : LaneKind::kReceiveForward;
  rank.lanes.push_back(
      {send, model::Axis::kPipeline, first ? 1 : 0, first ? "send activations" : "send gradients"});
  rank.lanes.push_back({receive, model::Axis::kPipeline, first ? 1 : 0,
                        first ? "receive gradients" : "receive activations"});
  rank.operations = {
      {"fc1", model::OperationKind::kGemm, model::Pass::kForward, false},
      {"fc1", model::OperationKind::kGemm, model::Pass::kInputGradient, false},
      {"all-gather fc1", model::OperationKind::kCollective, model::Pass::kForward, false},
      {"reduce-scatter fc1", model::OperationKind::kCollective, model::Pass::kInputGradient, false},
      {"adam", model::OperationKind::kMemoryBound, model::Pass::kForward, true},
      {first ? "send activations" : "send gradients", model::OperationKind::kCollective,
       model::Pass::kForward, false},
      {first ? "receive gradients" : "receive activations", model::OperationKind::kCollective,
       model::Pass::kForward, false}};
  rank.templates.resize(3);
  if (first) {
    rank.segments = {ActionSegment(kForward, 0), ActionSegment(kForward, 1),
                     ActionSegment(kBackward, 0), ActionSegment(kBackward, 1)};
  } else {
    rank.segments = {ActionSegment(kForward, 0), ActionSegment(kBackward, 0),
                     ActionSegment(kForward, 1), ActionSegment(kBackward, 1)};
  }
  Segment optimizer;
  optimizer.role = SegmentRole::kOptimizer;
  Segment flat;
  flat.role = SegmentRole::kFlat;
  flat.body = kFlatTemplate;
  rank.segments.push_back(optimizer);
  rank.segments.push_back(flat);
  // Sends: what the stage sends leaves at the end of the action that makes it.
  program::Template& body = rank.templates[kFlatTemplate];
  for (std::uint32_t k = 0; k < 2; ++k) {
    const std::int32_t slot =
        first ? static_cast<std::int32_t>(k) : static_cast<std::int32_t>(2 * k + 1);
    Instruction instruction;
    instruction.kind = InstructionKind::kTransfer;
    instruction.lane = 2;
    instruction.wait_begin = k;
    instruction.wait_count = 1;
    body.instructions.push_back(instruction);
    body.waits.push_back({program::kComputeLane, (slot + 1) * kComputePerSegment});
  }
  for (int k = 0; k < 2; ++k) {
    Instruction instruction;
    instruction.kind = InstructionKind::kTransfer;
    instruction.lane = 3;
    body.instructions.push_back(instruction);
  }
  rank.lane_runs = {{}, {}, {{kFlatSegment, 0, 2}}, {{kFlatSegment, 2, 4}}};
  rank.lane_totals = {5 * kComputePerSegment, 4, 2, 2};
  for (std::int32_t s = 0; s < 6; ++s) {
    const std::int32_t compute = s < 5 ? s * kComputePerSegment : 0;
    rank.base_counts.insert(rank.base_counts.end(), {compute, s < 5 ? std::min(s, 4) : 0, 0, 0});
  }
  // Receives: the first forward of the second stage and the first backward of the first wait for
  // message 1.
  const std::uint32_t waiting[2] = {first ? 2u : 0u, first ? 3u : 2u};
  for (std::int32_t k = 0; k < 2; ++k) {
    Segment& segment = rank.segments[waiting[k]];
    segment.entry_begin = static_cast<std::uint32_t>(rank.entry_waits.size());
    segment.entry_count = 1;
    rank.entry_waits.push_back({3, k + 1});
  }
  return rank;
}

OpRecord Record(std::uint32_t rank, program::LaneIndex lane, std::uint16_t operation,
                std::uint32_t segment, double begin, double end) {
  OpRecord record;
  record.rank = rank;
  record.lane = lane;
  record.operation = operation;
  record.segment = segment;
  record.posted = At(begin);
  record.start = At(begin);
  record.end = At(end);
  return record;
}

void RecordActions(std::uint32_t rank, std::vector<OpRecord>& records) {
  const RankProgram program = MakeRank(rank == 0);
  for (std::uint32_t s = 0; s < kOptimizerSegment; ++s) {
    const Span span = kSpans[rank][s];
    const bool forward = program.segments[s].slot.first.kind == ActionKind::kForward;
    OpRecord gemm = Record(rank, 0, forward ? 0 : 1, s, span.begin, span.end - 2);
    gemm.layer = static_cast<std::int16_t>(rank);
    gemm.position = s * 3 + 1;
    OpRecord gather = Record(rank, 1, forward ? 2 : 3, s, span.end - 2, span.end);
    gather.layer = gemm.layer;
    gather.bytes = Bytes(1'000'000);
    gather.position = s;
    records.push_back(gemm);
    records.push_back(gather);
  }
  const Span span = kSpans[rank][kOptimizerSegment];
  records.push_back(Record(rank, 0, 4, kOptimizerSegment, span.begin, span.end));
}

}  // namespace

TimePoint At(double microseconds) { return TimePoint(FromSeconds(microseconds * 1e-6)); }

program::Program SampleProgram() {
  program::Program program;
  program.programs = {MakeRank(true), MakeRank(false)};
  program.world_size = 16;
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    program::SimulatedRank rank;
    rank.rank = RankId(8 * stage);
    rank.multiplicity = 8;
    rank.program = static_cast<std::uint32_t>(stage);
    // Activations travel in group 2, gradients in group 3.
    rank.group_of_lane = {-1, stage, stage == 0 ? 2 : 3, stage == 0 ? 3 : 2};
    program.ranks.push_back(rank);
  }
  return program;
}

program::RunResult SampleResult() {
  program::RunResult result;
  result.end = At(95);
  for (const auto& spans : kSpans) {
    program::RankResult rank;
    for (const Span& span : spans) rank.spans.push_back({At(span.begin), At(span.end)});
    rank.spans.push_back({});
    rank.end = At(95);
    result.ranks.push_back(rank);
  }
  return result;
}

std::vector<OpRecord> SampleRecords() {
  std::vector<OpRecord> records;
  RecordActions(0, records);
  RecordActions(1, records);
  const double activations[2] = {10, 20};
  const double gradients[2] = {41, 71};
  for (std::uint32_t k = 0; k < 2; ++k) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      OpRecord forward = Record(rank, rank == 0 ? 2 : 3, rank == 0 ? 5 : 6, kFlatSegment,
                                activations[k], activations[k] + 1);
      OpRecord backward = Record(rank, rank == 0 ? 3 : 2, rank == 0 ? 6 : 5, kFlatSegment,
                                 gradients[k], gradients[k] + 1);
      forward.position = k;
      backward.position = k;
      forward.bytes = Bytes(2'000'000);
      backward.bytes = Bytes(2'000'000);
      // The receiver was ready from the start.
      if (rank == 1) forward.posted = At(0);
      records.push_back(forward);
      records.push_back(backward);
    }
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const OpRecord& a, const OpRecord& b) { return a.end < b.end; });
  return records;
}

metrics::StepReport SampleReport() {
  metrics::StepReport report;
  report.step_time = Duration(95'000'000);
  report.tokens_per_second_per_gpu = 1234.5;
  report.model_flops_per_gpu_causal = FlopsPerSecond(400.1e12);
  report.model_flops_per_gpu_full = FlopsPerSecond(440.2e12);
  report.peak_flops = FlopsPerSecond(989e12);
  report.mfu_causal = Ratio(0.4046);
  report.mfu_full = Ratio(0.4451);
  report.hfu = Ratio(0.4123);
  report.bubble = {Ratio(0.34782608695652173), Ratio(0.5333333333333333), Ratio(0.3478)};
  report.communication = {{"tp", Duration(8'000'000), Duration(0), Duration(8'000'000),
                           Duration(8'000'000), Bytes(4'000'000), BytesPerSecond(500e9)},
                          {"cp", {}, {}, {}, {}, {}, {}},
                          {"ep", {}, {}, {}, {}, {}, {}},
                          {"pp", Duration(4'000'000), Duration(3'000'000), Duration(1'000'000),
                           Duration(2'000'000), Bytes(4'000'000), BytesPerSecond(1e12)},
                          {"dp", {}, {}, {}, {}, {}, {}}};
  const auto states = [](std::int64_t compute, std::int64_t exposed, std::int64_t optimizer,
                         std::int64_t warmup, std::int64_t cooldown) {
    std::array<Duration, program::kRankStates> all{};
    all[static_cast<std::size_t>(RankState::kCompute)] = Duration(compute * 1'000'000);
    all[static_cast<std::size_t>(RankState::kExposedTensor)] = Duration(exposed * 1'000'000);
    all[static_cast<std::size_t>(RankState::kOptimizer)] = Duration(optimizer * 1'000'000);
    all[static_cast<std::size_t>(RankState::kBubbleWarmup)] = Duration(warmup * 1'000'000);
    all[static_cast<std::size_t>(RankState::kBubbleCooldown)] = Duration(cooldown * 1'000'000);
    return all;
  };
  report.states = states(52, 8, 3, 16, 16);
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    metrics::StageReport entry;
    entry.pipeline_rank = stage;
    entry.layers = stage == 0 ? "1 decoder layer, embedding" : "1 decoder layer, loss";
    entry.states = stage == 0 ? states(52, 8, 3, 22, 10) : states(52, 8, 3, 11, 21);
    entry.bubble = Ratio(0.3478);
    entry.peak_memory = Bytes(stage == 0 ? 68'021'000'000 : 51'000'000'000);
    entry.peak_at = At(stage == 0 ? 10 : 41);
    entry.components = {{"activations", Bytes(40'000'000'000)},
                        {"weights", Bytes(11'000'000'000)},
                        {"workspace", Bytes(0)}};
    if (stage == 0)
      entry.components.insert(entry.components.begin() + 1,
                              {"optimizer states", Bytes(17'021'000'000)});
    entry.peak_activations = 2 - stage;
    entry.parameters = ParameterCount(3'170'000'000);
    report.stages.push_back(entry);
    report.memory_curves.push_back(
        {stage, {At(0), At(10), At(20)}, {Bytes(1000), Bytes(3000), Bytes(3000)}});
  }
  report.waterfall = {{"achieved (MFU, causal)", Ratio(0.4046)},
                      {"kernel inefficiency", Ratio(0.1428)},
                      {"exposed tensor parallel", Ratio(0.0842)},
                      {"pipeline bubble", Ratio(0.3368)},
                      {"optimizer", Ratio(0.0316)}};
  report.critical_path.followed = true;
  report.critical_path.length = Duration(95'000'000);
  report.critical_path.causes = {{"gemm", Duration(57'000'000), 12},
                                 {"pp sharing", Duration(38'000'000), 3}};
  report.critical_path.stages = {Duration(19'000'000), Duration(76'000'000)};
  report.critical_path.operations = {{"fc1", Duration(57'000'000), 12}};
  report.critical_path.steps = 15;
  report.critical_path.crossings = 2;
  report.peak_memory = Bytes(68'021'000'000);
  report.memory_capacity = Bytes(80'000'000'000);
  report.world_size = 16;
  report.simulated_ranks = 2;
  report.operations = 1'234'567;
  report.microbatches = 2;
  report.fingerprint = 0x00c0ffee12345678u;
  return report;
}

RunDescription SampleDescription() {
  RunDescription run;
  run.name = "two-stages";
  run.hash = 0x0123456789abcdefu;
  run.seed = 7;
  run.model.name = "tiny";
  run.model.layers = 2;
  run.model.hidden = 16384;
  run.gpu.name = "h100-sxm";
  run.cluster.name = "dgx-h100-superpod";
  run.cluster.nodes = 2;
  run.cluster.gpus_per_node = 8;
  run.parallel.tensor = 8;
  run.parallel.sequence_parallel = true;
  run.parallel.pipeline = 2;
  run.execution.sequence_length = 8192;
  run.global_batch = 2;
  run.microbatches = 2;
  run.schedule = "1f1b";
  run.compute_constants = {
      {"gemm_16bit", "fitted to a table", compute::ConstantSource::Kind::kFitted},
      {"attention tail", "a guess", compute::ConstantSource::Kind::kAssumed},
      {"peak", "data sheet", compute::ConstantSource::Kind::kPublished}};
  run.collective_constants_name = "hopper";
  run.collective_constants = {{"nvlink_all_reduce", "nccl-tests", "measured"},
                              {"tree_inter_step", "by analogy", "assumed"}};
  run.chosen = {{"kernels.attention", "cudnn", "the default on Hopper"}};
  return run;
}

}  // namespace quadrille::report
