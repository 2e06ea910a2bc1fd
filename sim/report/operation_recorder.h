// Keeps the records of a run for outputs that need them when it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.h"
#include "sim/program/run_result.h"

namespace quadrille::report {

class OperationRecorder : public program::RecordSink {
 public:
  // Beyond `limit` records only those of lanes that few operations run on are kept: of
  // point-to-point, data-parallel and gradient-norm lanes..
  explicit OperationRecorder(const program::Program& program, std::size_t limit = kDefaultLimit);

  void Consume(std::span<const program::OpRecord> records) override;

  // In the order of the lane. Empty for a rank that was not recorded.
  [[nodiscard]] const std::vector<program::OpRecord>& Lane(std::uint32_t rank,
                                                           program::LaneIndex lane) const {
    return lanes_[rank][lane];
  }
  // The record of the operation at `position` of the lane; nullptr when there is none.
  [[nodiscard]] const program::OpRecord* Find(std::uint32_t rank, program::LaneIndex lane,
                                              std::uint32_t position) const;
  // Simulated ranks of which anything was recorded, ascending.
  [[nodiscard]] std::vector<std::uint32_t> Ranks() const;
  [[nodiscard]] bool complete() const { return dropped_ == 0; }

 private:
  static constexpr std::size_t kDefaultLimit = 4'000'000;  // of 64 bytes each

  std::vector<std::vector<std::vector<program::OpRecord>>> lanes_;  // by rank and lane
  std::vector<std::vector<bool>> detailed_;                         // by rank and lane
  std::size_t limit_;
  std::size_t kept_ = 0;
  std::size_t dropped_ = 0;
};

// Lanes whose operations are a matter of the schedule and not of a layer.
[[nodiscard]] bool IsScheduleLane(program::LaneKind kind);

}  // namespace quadrille::report
