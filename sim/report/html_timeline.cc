// Idea. Per recorded rank, its actions in order with the time of each, and for the gap before each
// what bound it: of the action's entry waits the one that was fulfilled last. Where that is a
// transfer, the gap is exposed communication from the transfer's start on and bubble before; the
// bubble's phase follows from what the rank has done by then, as in the executor's accounts.
//
// Kernels are too many for a page, so three windows of the step are kept, with every lane complete
// in each. A kernel's binding wait is found in the program: its instruction's waits, resolved to
// records.
//
// Invariants: (1) actions of a row are ascending and disjoint; (2) indices between arrays
// (`a_source`, `k_waited`, `k_action`) are into the arrays of the same run, or -1.
#include "sim/report/html_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/report/choice_text.h"
#include "sim/report/html_blob.h"
#include "sim/report/trace_labels.h"

namespace quadrille::report {
namespace {

using Json = nlohmann::ordered_json;
using program::kComputeLane;
using program::LaneIndex;
using program::OpRecord;
using program::RankProgram;
using program::RankState;
using program::Segment;
using program::SegmentRole;
using schedules::Action;
using schedules::ActionKind;

// As in tools/report_page/data.js.
constexpr std::uint8_t kOptimizerAction = 4;
constexpr std::uint8_t kPrologueAction = 5;
constexpr std::uint8_t kNormAction = 6;
constexpr std::uint8_t kNoAction = 255;
constexpr std::int32_t kNone = -1;

double Picoseconds(TimePoint time) { return static_cast<double>(time.time_since_epoch().count()); }

struct Window {
  TimePoint begin;
  TimePoint end;
};

struct ActionArrays {
  std::vector<std::uint32_t> row_begin;
  std::vector<double> start, end;
  std::vector<double> exposed;  // of the gap before, its last part: a transfer was running
  std::vector<std::uint8_t> kind, chunk, kind2, chunk2;
  std::vector<std::uint16_t> microbatch, microbatch2;
  std::vector<std::uint8_t> phase, exposed_state;  // RankState of the gap's two parts
  std::vector<std::int32_t> source;                // the action whose message came last
};

struct KernelArrays {
  std::vector<std::uint32_t> lane_begin;  // by row and lane
  std::vector<double> start, end, posted, bytes;
  std::vector<std::uint16_t> name;
  std::vector<std::int16_t> layer;
  std::vector<std::int32_t> action, waited;
};

class TimelineEncoder {
 public:
  TimelineEncoder(const program::Program& program, const program::RunResult& result,
                  const metrics::StepReport& report, const OperationRecorder& recorder,
                  const HtmlTimelineOptions& options)
      : program_(program),
        result_(result),
        report_(report),
        recorder_(recorder),
        options_(options) {}

  std::string Encode() {
    ChooseRows();
    IndexMessages();
    IndexActions();
    for (std::size_t row = 0; row < rows_.size(); ++row) AddActions(row);
    ChooseWindows();
    for (std::size_t row = 0; row < rows_.size(); ++row) AddKernels(row);
    actions_.row_begin.push_back(static_cast<std::uint32_t>(actions_.start.size()));
    kernels_.lane_begin.push_back(static_cast<std::uint32_t>(kernels_.start.size()));
    ResolveKernelWaits();
    AddMemory();
    return Finish();
  }

 private:
  // (program or rank, segment or lane, position)
  using MessageKey = std::tuple<std::uint32_t, LaneIndex, std::uint32_t>;
  using KernelKey = std::tuple<std::uint32_t, LaneIndex, std::uint32_t>;

  const RankProgram& ProgramOf(std::uint32_t rank) const {
    return program_.programs[program_.ranks[rank].program];
  }
  void ChooseRows();
  void IndexMessages();
  void IndexActions();
  void AddActions(std::size_t row);
  [[nodiscard]] TimePoint RunStart(std::uint32_t rank, const OpRecord& last) const;
  void AddGap(std::uint32_t rank, std::uint32_t segment, TimePoint idle_since, RankState phase);
  void ChooseWindows();
  void AddKernels(std::size_t row);
  void AddKernel(std::uint32_t rank, const OpRecord& record, bool with_flow);
  void ResolveKernelWaits();
  [[nodiscard]] std::int32_t WaitedFor(std::uint32_t rank, const OpRecord& record) const;
  [[nodiscard]] std::int32_t ActionOf(std::uint32_t rank, const OpRecord& record) const;
  [[nodiscard]] std::int32_t ActionAt(std::uint32_t stage, std::uint32_t segment) const;
  std::uint16_t NameOf(const program::OperationName& operation);
  void AddMemory();
  [[nodiscard]] std::string Finish() const;

  const program::Program& program_;
  const program::RunResult& result_;
  const metrics::StepReport& report_;
  const OperationRecorder& recorder_;
  const HtmlTimelineOptions& options_;

  std::vector<std::uint32_t> rows_;  // simulated ranks
  std::size_t rows_left_out_ = 0;
  std::map<MessageKey, MessageEnds> received_;           // by destination program, lane, position
  std::map<MessageKey, MessageEnds> sent_;               // by source program, lane, position
  std::vector<std::vector<std::int32_t>> action_index_;  // by row and segment
  std::vector<std::int32_t> row_of_stage_;
  std::vector<std::int32_t> row_of_rank_;
  ActionArrays actions_;
  std::vector<Window> windows_;
  KernelArrays kernels_;
  std::vector<std::pair<std::uint32_t, const OpRecord*>> kernel_records_;
  std::map<KernelKey, std::int32_t> kernel_index_;
  std::map<std::pair<std::string, int>, std::uint16_t> name_index_;
  Json names_ = Json::array();
  Json lanes_ = Json::array();
  Json memory_ = Json::array();
  std::vector<double> memory_times_, memory_levels_;
};

void TimelineEncoder::ChooseRows() {
  const std::vector<std::uint32_t> recorded = recorder_.Ranks();
  std::size_t actions = 0;
  for (std::uint32_t rank : recorded) actions += ProgramOf(rank).segments.size();
  const std::size_t step = std::max<std::size_t>(
      1, (actions + options_.actions - 1) / std::max<std::size_t>(options_.actions, 1));
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (i % step == 0 || i + 1 == recorded.size()) {
      rows_.push_back(recorded[i]);
    } else {
      ++rows_left_out_;
    }
  }
  row_of_stage_.assign(program_.programs.size(), kNone);
  row_of_rank_.assign(program_.ranks.size(), kNone);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    row_of_rank_[rows_[row]] = static_cast<std::int32_t>(row);
    std::int32_t& of_stage = row_of_stage_[program_.ranks[rows_[row]].program];
    if (of_stage == kNone) of_stage = static_cast<std::int32_t>(row);
  }
}

void TimelineEncoder::IndexMessages() {
  for (const MessageEnds& message : FindMessages(program_)) {
    received_.emplace(MessageKey{message.destination, message.receive_lane, message.position},
                      message);
    sent_.emplace(MessageKey{message.source, message.send_lane, message.position}, message);
  }
}

void TimelineEncoder::IndexActions() {
  std::int32_t next = 0;
  for (std::uint32_t rank : rows_) {
    std::vector<std::int32_t>& of_segment = action_index_.emplace_back();
    for (const Segment& segment : ProgramOf(rank).segments) {
      of_segment.push_back(segment.role == SegmentRole::kFlat ? kNone : next++);
    }
  }
}

// Of a stage's first row.
std::int32_t TimelineEncoder::ActionAt(std::uint32_t stage, std::uint32_t segment) const {
  const std::int32_t row = row_of_stage_[stage];
  return row == kNone ? kNone : action_index_[static_cast<std::size_t>(row)][segment];
}

void TimelineEncoder::AddActions(std::size_t row) {
  const std::uint32_t rank = rows_[row];
  const RankProgram& rank_program = ProgramOf(rank);
  actions_.row_begin.push_back(static_cast<std::uint32_t>(actions_.start.size()));
  std::int32_t forwards_left = 0;
  std::int32_t actions_left = 0;
  const auto is_forward = [](const Action& a) { return a.kind == ActionKind::kForward; };
  for (const Segment& segment : rank_program.segments) {
    if (segment.role != SegmentRole::kAction) continue;
    ++actions_left;
    forwards_left += is_forward(segment.slot.first) ? 1 : 0;
    forwards_left += segment.slot.second && is_forward(*segment.slot.second) ? 1 : 0;
  }
  bool backward_begun = false;
  TimePoint idle_since{};
  for (std::uint32_t s = 0; s < rank_program.segments.size(); ++s) {
    const Segment& segment = rank_program.segments[s];
    const program::ActionSpan& span = result_.ranks[rank].spans[s];
    if (action_index_[row][s] == kNone) continue;
    const RankState phase = actions_left == 0    ? RankState::kBubbleBarrier
                            : !backward_begun    ? RankState::kBubbleWarmup
                            : forwards_left == 0 ? RankState::kBubbleCooldown
                                                 : RankState::kBubbleSteady;
    AddGap(rank, s, idle_since, phase);
    actions_.start.push_back(Picoseconds(span.begin));
    actions_.end.push_back(Picoseconds(span.end));
    idle_since = span.end;
    const bool action = segment.role == SegmentRole::kAction;
    const Action& first = segment.slot.first;
    const Action& second = segment.slot.second.value_or(first);
    const bool fused = action && segment.slot.second.has_value();
    actions_.kind.push_back(action ? static_cast<std::uint8_t>(first.kind)
                            : segment.role == SegmentRole::kPrologue     ? kPrologueAction
                            : segment.role == SegmentRole::kGradientNorm ? kNormAction
                                                                         : kOptimizerAction);
    actions_.microbatch.push_back(static_cast<std::uint16_t>(first.microbatch.value()));
    actions_.chunk.push_back(static_cast<std::uint8_t>(first.chunk.value()));
    actions_.kind2.push_back(fused ? static_cast<std::uint8_t>(second.kind) : kNoAction);
    actions_.microbatch2.push_back(static_cast<std::uint16_t>(second.microbatch.value()));
    actions_.chunk2.push_back(static_cast<std::uint8_t>(second.chunk.value()));
    if (!action) continue;
    --actions_left;
    for (const Action* part : {&first, fused ? &second : nullptr}) {
      if (part == nullptr) continue;
      if (is_forward(*part)) {
        --forwards_left;
      } else {
        backward_begun = true;
      }
    }
  }
}

// Where the unbroken run of transfers on one lane starts that `last` ends: one after the other they
// kept the rank, as in the executor's accounts.
TimePoint TimelineEncoder::RunStart(std::uint32_t rank, const OpRecord& last) const {
  TimePoint start = last.start;
  for (std::uint32_t position = last.position; position > 0; --position) {
    const OpRecord* before = recorder_.Find(rank, last.lane, position - 1);
    if (before == nullptr || before->end != start) break;
    start = before->start;
  }
  return start;
}

// What the gap [idle_since, the segment's begin] before a segment consists of.
void TimelineEncoder::AddGap(std::uint32_t rank, std::uint32_t index, TimePoint idle_since,
                             RankState phase) {
  const RankProgram& rank_program = ProgramOf(rank);
  const Segment& segment = rank_program.segments[index];
  const TimePoint begin = result_.ranks[rank].spans[index].begin;
  double exposed = 0.0;
  auto state = RankState::kExposedPipeline;
  std::int32_t source = kNone;
  if (begin > idle_since) {
    const OpRecord* binding = nullptr;
    for (std::uint32_t w = 0; w < segment.entry_count; ++w) {
      const program::Wait& wait = rank_program.entry_waits[segment.entry_begin + w];
      if (wait.lane == kComputeLane || wait.count < 1) continue;
      const OpRecord* record =
          recorder_.Find(rank, wait.lane, static_cast<std::uint32_t>(wait.count - 1));
      if (record != nullptr && (binding == nullptr || record->end > binding->end)) binding = record;
    }
    if (binding != nullptr && binding->end > idle_since) {
      const TimePoint running = std::max(idle_since, std::min(RunStart(rank, *binding), begin));
      exposed = Picoseconds(begin) - Picoseconds(running);
      const std::string_view kind = CategoryOf(rank_program.lanes[binding->lane].kind);
      state = kind == "dp"   ? RankState::kExposedData
              : kind == "tp" ? RankState::kExposedTensor
              : kind == "cp" ? RankState::kExposedContext
              : kind == "ep" ? RankState::kExposedExpert
                             : RankState::kExposedPipeline;
      const auto message =
          received_.find({program_.ranks[rank].program, binding->lane, binding->position});
      if (message != received_.end()) {
        source = ActionAt(message->second.source, message->second.source_segment);
      }
    }
  }
  actions_.exposed.push_back(exposed);
  actions_.phase.push_back(static_cast<std::uint8_t>(phase));
  actions_.exposed_state.push_back(static_cast<std::uint8_t>(state));
  actions_.source.push_back(source);
}

void TimelineEncoder::ChooseWindows() {
  std::size_t detailed = 0;
  TimePoint last{};
  for (std::uint32_t rank : rows_) {
    const auto lanes = static_cast<LaneIndex>(ProgramOf(rank).lanes.size());
    for (LaneIndex lane = 0; lane < lanes; ++lane) {
      const std::vector<OpRecord>& records = recorder_.Lane(rank, lane);
      detailed += records.size();
      if (!IsScheduleLane(ProgramOf(rank).lanes[lane].kind) && !records.empty()) {
        last = std::max(last, records.back().end);
      }
    }
  }
  const TimePoint whole = result_.end;
  const TimePoint end = recorder_.complete() ? whole : last;
  if (detailed <= options_.kernels || detailed == 0) {
    windows_ = {{TimePoint{}, end}};
    return;
  }
  const double share = static_cast<double>(options_.kernels) / static_cast<double>(detailed) / 3.0;
  const Duration width = Scale(end.time_since_epoch(), share);
  const TimePoint middle = TimePoint(end.time_since_epoch() / 2);
  windows_ = {{TimePoint{}, TimePoint(width)},
              {middle - width / 2, middle + width / 2},
              {end - width, end}};
}

std::uint16_t TimelineEncoder::NameOf(const program::OperationName& operation) {
  static constexpr const char* kKinds[] = {"gemm", "gemm", "attention", "memory", "collective"};
  const auto kind = static_cast<std::size_t>(operation.kind);
  const std::string pass(operation.optimizer ? "optimizer" : report::NameOf(operation.pass));
  const std::pair<std::string, int> key{operation.name + '\n' + pass, static_cast<int>(kind)};
  const auto [it, added] = name_index_.emplace(key, static_cast<std::uint16_t>(name_index_.size()));
  if (added) names_.push_back({operation.name, kKinds[kind], pass});
  return it->second;
}

void TimelineEncoder::AddKernels(std::size_t row) {
  const std::uint32_t rank = rows_[row];
  const RankProgram& rank_program = ProgramOf(rank);
  Json lanes = Json::array();
  for (std::size_t lane = 0; lane < rank_program.lanes.size(); ++lane) {
    const program::Lane& named = rank_program.lanes[lane];
    lanes.push_back({named.name, CategoryOf(named.kind)});
    kernels_.lane_begin.push_back(static_cast<std::uint32_t>(kernels_.start.size()));
    const bool always = CategoryOf(named.kind) == "dp";
    for (const OpRecord& record : recorder_.Lane(rank, static_cast<LaneIndex>(lane))) {
      const bool inside =
          always || std::any_of(windows_.begin(), windows_.end(), [&](const Window& window) {
            return record.start < window.end && record.end > window.begin;
          });
      if (!inside) continue;
      kernel_index_.emplace(KernelKey{rank, record.lane, record.position},
                            static_cast<std::int32_t>(kernels_.start.size()));
      kernel_records_.emplace_back(rank, &record);
      kernels_.start.push_back(Picoseconds(record.start));
      kernels_.end.push_back(Picoseconds(record.end));
      kernels_.posted.push_back(Picoseconds(record.posted));
      kernels_.bytes.push_back(static_cast<double>(record.bytes.value()));
      kernels_.name.push_back(NameOf(rank_program.operations[record.operation]));
      kernels_.layer.push_back(record.layer);
      kernels_.action.push_back(ActionOf(rank, record));
    }
  }
  lanes_.push_back(std::move(lanes));
}

// The action that an operation belongs to, sends for or receives for.
std::int32_t TimelineEncoder::ActionOf(std::uint32_t rank, const OpRecord& record) const {
  const auto row = static_cast<std::size_t>(row_of_rank_[rank]);
  const MessageKey key{program_.ranks[rank].program, record.lane, record.position};
  if (const auto sent = sent_.find(key); sent != sent_.end()) {
    return action_index_[row][sent->second.source_segment];
  }
  if (const auto received = received_.find(key); received != received_.end()) {
    return action_index_[row][received->second.destination_segment];
  }
  return action_index_[row][record.segment];
}

void TimelineEncoder::ResolveKernelWaits() {
  for (const auto& [rank, record] : kernel_records_) {
    kernels_.waited.push_back(WaitedFor(rank, *record));
  }
}

// The kernel whose end let this one become ready, when that is on another lane of the same rank and
// later than the end of the one before it on its own lane.
std::int32_t TimelineEncoder::WaitedFor(std::uint32_t rank, const OpRecord& record) const {
  const RankProgram& rank_program = ProgramOf(rank);
  const Segment& segment = rank_program.segments[record.segment];
  const program::Template& body = rank_program.templates[segment.body];
  if (record.lane + 1U >= body.lane_begin.size()) return kNone;
  const std::int32_t* base = rank_program.BaseCounts(record.segment);
  const std::int64_t offset =
      std::int64_t{record.position} - base[record.lane] + body.lane_begin[record.lane];
  if (offset < body.lane_begin[record.lane] || offset >= body.lane_begin[record.lane + 1U]) {
    return kNone;
  }
  const program::Instruction& instruction = body.instructions[static_cast<std::size_t>(offset)];
  const OpRecord* before =
      record.position == 0 ? nullptr : recorder_.Find(rank, record.lane, record.position - 1);
  TimePoint latest = before == nullptr ? TimePoint{} : before->end;
  std::int32_t waited = kNone;
  for (std::uint32_t w = 0; w < instruction.wait_count; ++w) {
    const program::Wait& wait = body.waits[instruction.wait_begin + w];
    const std::int32_t count = base[wait.lane] + wait.count;
    if (wait.lane == record.lane || count < 1) continue;
    const auto found = kernel_index_.find({rank, wait.lane, static_cast<std::uint32_t>(count - 1)});
    if (found == kernel_index_.end()) continue;
    const OpRecord& other = *kernel_records_[static_cast<std::size_t>(found->second)].second;
    if (other.end <= latest) continue;
    latest = other.end;
    waited = found->second;
  }
  return waited;
}

// Of each bucket of time the highest and the lowest level, in the order in which they occur.
void TimelineEncoder::AddMemory() {
  for (const metrics::MemoryCurve& curve : report_.memory_curves) {
    const std::size_t begin = memory_times_.size();
    const std::size_t count = curve.times.size();
    const std::size_t buckets = std::max<std::size_t>(1, options_.memory_points);
    for (std::size_t b = 0; b < buckets; ++b) {
      const std::size_t from = b * count / buckets;
      const std::size_t to = (b + 1) * count / buckets;
      if (from == to) continue;
      const auto first = curve.levels.begin() + static_cast<std::ptrdiff_t>(from);
      const auto [low, high] =
          std::minmax_element(first, curve.levels.begin() + static_cast<std::ptrdiff_t>(to));
      const auto add = [&](std::vector<Bytes>::const_iterator level) {
        const auto at = static_cast<std::size_t>(level - curve.levels.begin());
        memory_times_.push_back(Picoseconds(curve.times[at]));
        memory_levels_.push_back(static_cast<double>(level->value()));
      };
      add(std::min(low, high));
      if (low != high) add(std::max(low, high));
    }
    memory_.push_back({curve.pipeline_rank, begin, memory_times_.size()});
  }
}

std::string TimelineEncoder::Finish() const {
  Json rows = Json::array();
  for (std::uint32_t rank : rows_) {
    const program::SimulatedRank& simulated = program_.ranks[rank];
    rows.push_back({{"stage", simulated.program},
                    {"rank", simulated.rank.value()},
                    {"multiplicity", simulated.multiplicity}});
  }
  Json windows = Json::array();
  for (const Window& window : windows_) {
    windows.push_back(
        {window.begin.time_since_epoch().count(), window.end.time_since_epoch().count()});
  }
  const Json head = {{"end", result_.end.time_since_epoch().count()},
                     {"rows", rows},
                     {"rows_left_out", rows_left_out_},
                     {"lanes", lanes_},
                     {"names", names_},
                     {"windows", windows},
                     {"kernels_complete", recorder_.complete()},
                     {"memory", memory_}};
  TypedArrays arrays;
  arrays.Add("a_row", actions_.row_begin);
  arrays.Add("a_start", actions_.start);
  arrays.Add("a_end", actions_.end);
  arrays.Add("a_exposed", actions_.exposed);
  arrays.Add("a_kind", actions_.kind);
  arrays.Add("a_chunk", actions_.chunk);
  arrays.Add("a_kind2", actions_.kind2);
  arrays.Add("a_chunk2", actions_.chunk2);
  arrays.Add("a_microbatch", actions_.microbatch);
  arrays.Add("a_microbatch2", actions_.microbatch2);
  arrays.Add("a_phase", actions_.phase);
  arrays.Add("a_exposed_state", actions_.exposed_state);
  arrays.Add("a_source", actions_.source);
  arrays.Add("k_lane", kernels_.lane_begin);
  arrays.Add("k_start", kernels_.start);
  arrays.Add("k_end", kernels_.end);
  arrays.Add("k_posted", kernels_.posted);
  arrays.Add("k_bytes", kernels_.bytes);
  arrays.Add("k_name", kernels_.name);
  arrays.Add("k_layer", kernels_.layer);
  arrays.Add("k_action", kernels_.action);
  arrays.Add("k_waited", kernels_.waited);
  arrays.Add("m_time", memory_times_);
  arrays.Add("m_level", memory_levels_);
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  return text + "," + arrays.JsonMembers() + "}";
}

}  // namespace

std::string EncodeHtmlTimeline(const program::Program& program, const program::RunResult& result,
                               const metrics::StepReport& report, const OperationRecorder& recorder,
                               const HtmlTimelineOptions& options) {
  return TimelineEncoder(program, result, report, recorder, options).Encode();
}

}  // namespace quadrille::report
