// What a sweep needs before its first lane: who moves together, where ends are kept, which lanes
// meet.
#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/runtime/sweep.h"

namespace quadrille::runtime {
namespace {

using program::LaneIndex;

// Sets of lanes that grow together (union-find with path halving).
class LaneSets {
 public:
  explicit LaneSets(std::size_t lanes) : parent_(lanes) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  std::uint32_t Find(std::uint32_t lane) {
    while (parent_[lane] != lane) lane = parent_[lane] = parent_[parent_[lane]];
    return lane;
  }
  void Unite(std::uint32_t a, std::uint32_t b) { parent_[Find(b)] = Find(a); }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

Sweep::Sweep(const program::Program& program, const Machine& machine, const RunOptions& options,
             const std::vector<Duration>& begins, Columns columns)
    : program_(program), machine_(machine), options_(options) {
  PrepareColumns(begins, columns);
  PrepareLanes();
  PrepareMeetings();
}

void Sweep::PrepareColumns(const std::vector<Duration>& begins, Columns columns) {
  const std::size_t ranks = program_.ranks.size();
  std::vector<std::uint32_t> order(ranks);
  std::iota(order.begin(), order.end(), 0u);
  if (columns == Columns::kPerProgram) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return program_.ranks[a].program < program_.ranks[b].program;
    });
  }
  std::vector<std::uint32_t> entities(ranks + 1, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto lanes = program_.programs[program_.ranks[r].program].lanes.size();
    entities[r + 1] = entities[r] + static_cast<std::uint32_t>(lanes);
  }
  for (std::uint32_t r : order) {
    const program::RankProgram* body = &program_.programs[program_.ranks[r].program];
    if (columns == Columns::kPerRank || columns_.empty() || columns_.back().program != body) {
      Column column;
      column.program = body;
      column.first_slot = static_cast<std::uint32_t>(slots_.size());
      launches_bind_ = launches_bind_ || LaunchesBind(*body);
      columns_.push_back(std::move(column));
    }
    const RankCondition condition =
        ConditionOf(program_.ranks[r].rank, options_.perturbations, options_.seed);
    const std::int64_t begin = begins.empty() ? 0 : begins[r].count();
    slots_.push_back({r, entities[r], begin, begin, condition,
                      LaunchDelays(*body, condition, program_.ranks[r].rank)});
    launches_bind_ = launches_bind_ || !slots_.back().launch_delays.empty();
    ++columns_.back().width;
    columns_.back().nominal = columns_.back().nominal && condition.nominal();
  }
  result_.ranks.resize(ranks);
  if (options_.keep_times) result_.times = program::OperationTimes(program_);
  for (std::size_t r = 0; r < ranks; ++r) {
    result_.ranks[r].spans.resize(program_.programs[program_.ranks[r].program].segments.size());
  }
}

void Sweep::PrepareLanes() {
  for (std::uint32_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    column.first_lane = static_cast<std::uint32_t>(lanes_.size());
    for (std::size_t i = 0; i < column.program->lanes.size(); ++i) {
      Lane lane;
      lane.column = c;
      lane.index = static_cast<program::LaneIndex>(i);
      lane.run = column.program->lane_runs[i].data();
      lane.run_end = lane.run + column.program->lane_runs[i].size();
      lane.groups = static_cast<std::uint32_t>(group_of_slot_.size());
      lanes_.push_back(lane);
      if (i == program::kComputeLane) continue;
      for (std::uint32_t s = 0; s < column.width; ++s) {
        const Slot& slot = slots_[column.first_slot + s];
        group_of_slot_.push_back(
            static_cast<std::uint32_t>(program_.ranks[slot.rank].group_of_lane[i]));
      }
    }
    for (const program::Template& body : column.program->templates) {
      column.memos.push_back({Eligible(column, body), {}});
    }
    PrepareRows(column);
  }
}

// A rank on its own keeps every end, in one chunk per lane; of many ranks only what is still to be
// read is kept.
void Sweep::PrepareRows(Column& column) {
  const bool alone = column.width == 1;
  chunk_numbers_ = std::max<std::size_t>(chunk_numbers_, column.width);
  column.chunk_shift =
      alone
          ? kOneChunk
          : static_cast<std::int32_t>(std::bit_width(std::max(1u, kChunkNumbers / column.width))) -
                1;
  for (std::size_t i = 0; i < column.program->lanes.size(); ++i) {
    Lane& lane = LaneAt(column, static_cast<program::LaneIndex>(i));
    lane.first_chunk = static_cast<std::uint32_t>(chunks_.size());
    const std::int32_t rows = column.program->lane_totals[i];
    if (rows == 0) continue;
    if (alone) {
      storage_.push_back(
          std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(rows)));
      chunks_.push_back({storage_.back().get(), std::numeric_limits<std::int32_t>::max()});
      continue;
    }
    chunks_.resize(chunks_.size() + static_cast<std::size_t>((rows - 1) >> column.chunk_shift) + 1);
    // Each row is read by its successor, the last one by the result.
    for (std::int32_t row = 0; row < rows; ++row) ++ChunkOf(lane, row).reads;
  }
  if (!alone) CountWaits(column);
}

// Every wait of the program reads a row once.
void Sweep::CountWaits(const Column& column) {
  const program::RankProgram& body = *column.program;
  const auto read = [&](LaneIndex on, std::int32_t count) {
    if (count > 0) ++ChunkOf(LaneAt(column, on), count - 1).reads;
  };
  for (const std::vector<program::LaneRun>& runs : body.lane_runs) {
    for (const program::LaneRun& run : runs) {
      const program::Segment& segment = body.segments[run.segment];
      const program::Template& code = body.templates[segment.body];
      const std::int32_t* base = body.BaseCounts(run.segment);
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const program::Instruction& instruction = code.instructions[i];
        const program::Wait* wait = code.waits.data() + instruction.wait_begin;
        for (std::uint8_t k = 0; k < instruction.wait_count; ++k, ++wait) {
          read(wait->lane, base[wait->lane] + wait->count);
        }
        if (instruction.kind != program::InstructionKind::kBegin) continue;
        for (std::uint32_t k = 0; k < segment.entry_count; ++k) {
          const program::Wait& entry = body.entry_waits[segment.entry_begin + k];
          read(entry.lane, entry.count);
        }
      }
    }
  }
}

void Sweep::PrepareMeetings() {
  conditions_.resize(program_.groups.size());
  latest_.assign(program_.groups.size(), kNobodyYet);
  LaneSets sets(lanes_.size());
  std::vector<std::uint32_t> any_lane(program_.groups.size());
  std::vector<bool> seen(program_.groups.size(), false);
  const auto each_post = [&](auto visit) {
    for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].index == program::kComputeLane) continue;
      const Column& column = columns_[lanes_[l].column];
      for (std::uint32_t s = 0; s < column.width; ++s) {
        visit(l, group_of_slot_[lanes_[l].groups + s], slots_[column.first_slot + s]);
      }
    }
  };
  each_post([&](std::uint32_t lane, std::uint32_t group, const Slot& slot) {
    conditions_[group].Join(slot.condition, program_.groups[group].axis == model::Axis::kExpert);
    if (seen[group]) sets.Unite(any_lane[group], lane);
    any_lane[group] = lane;
    seen[group] = true;
  });
  std::vector<std::uint32_t> meeting_of(lanes_.size(), ~0u);
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    if (lanes_[l].index == program::kComputeLane) continue;
    std::uint32_t& meeting = meeting_of[sets.Find(l)];
    if (meeting == ~0u) {
      meeting = static_cast<std::uint32_t>(meetings_.size());
      meetings_.emplace_back();
    }
    lanes_[l].meeting = meeting;
    meetings_[meeting].lanes.push_back(l);
  }
  for (std::uint32_t g = 0; g < program_.groups.size(); ++g) {
    if (seen[g]) meetings_[lanes_[any_lane[g]].meeting].groups.push_back(g);
  }
}

}  // namespace quadrille::runtime
