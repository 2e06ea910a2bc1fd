#include "sim/report/operation_recorder.h"

#include <algorithm>

namespace quadrille::report {

using program::LaneIndex;
using program::LaneKind;
using program::OpRecord;

bool IsScheduleLane(LaneKind kind) {
  switch (kind) {
    case LaneKind::kCompute:
    case LaneKind::kTensor:
    case LaneKind::kContext:
    case LaneKind::kExpert: return false;
    default: return true;
  }
}

OperationRecorder::OperationRecorder(const program::Program& program, std::size_t limit)
    : limit_(limit) {
  for (const program::SimulatedRank& rank : program.ranks) {
    const std::vector<program::Lane>& lanes = program.programs[rank.program].lanes;
    lanes_.emplace_back(lanes.size());
    std::vector<bool>& detailed = detailed_.emplace_back();
    for (const program::Lane& lane : lanes) detailed.push_back(!IsScheduleLane(lane.kind));
  }
}

void OperationRecorder::Consume(std::span<const OpRecord> records) {
  for (const OpRecord& record : records) {
    if (detailed_[record.rank][record.lane]) {
      if (kept_ >= limit_) {
        ++dropped_;
        continue;
      }
      ++kept_;
    }
    lanes_[record.rank][record.lane].push_back(record);
  }
}

const OpRecord* OperationRecorder::Find(std::uint32_t rank, LaneIndex lane,
                                        std::uint32_t position) const {
  const std::vector<OpRecord>& records = lanes_[rank][lane];
  const auto found = std::lower_bound(
      records.begin(), records.end(), position,
      [](const OpRecord& record, std::uint32_t wanted) { return record.position < wanted; });
  return found != records.end() && found->position == position ? &*found : nullptr;
}

std::vector<std::uint32_t> OperationRecorder::Ranks() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < lanes_.size(); ++rank) {
    const bool any = std::any_of(lanes_[rank].begin(), lanes_[rank].end(),
                                 [](const std::vector<OpRecord>& lane) { return !lane.empty(); });
    if (any) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace quadrille::report
