// What the tests of this module share: requests in one line, a digest of text, and the lines of a
// table under data/.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline_schedule.h"
#include "schedules/registry.h"

namespace quadrille::schedules {

// Costs in slots, one slot being one second.
inline TaskCosts Costs(double forward, double backward_input, double backward_weight,
                       double latency = 0) {
  TaskCosts costs;
  costs.forward = FromSeconds(forward);
  costs.backward = FromSeconds(backward_input + backward_weight);
  costs.backward_input = FromSeconds(backward_input);
  costs.backward_weight = FromSeconds(backward_weight);
  costs.latency = FromSeconds(latency);
  return costs;
}

inline ScheduleRequest Request(std::int32_t pipeline, std::int32_t microbatches,
                               std::int32_t virtual_stages = 0, std::int32_t group = 0,
                               std::int32_t slices = 0) {
  ScheduleRequest request;
  request.pipeline = pipeline;
  request.microbatches = microbatches;
  request.virtual_stages = virtual_stages;
  request.group = group;
  request.slices = slices;
  return request;
}

// The order, failing the test with the refusal when there is none.
inline PipelineSchedule Build(std::string_view name, const ScheduleRequest& request) {
  auto schedule = BuildSchedule(name, request);
  if (!schedule) {
    ADD_FAILURE() << ToString(schedule.error());
    return {};
  }
  return *std::move(schedule);
}

inline std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

inline std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The lines of a table that are not comments, each split at commas.
inline std::vector<std::vector<std::string>> ReadTable(const std::string& name) {
  std::ifstream file(std::string(QUADRILLE_SOURCE_DIR "/test/schedules/data/") + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty() && line[0] != '#') rows.push_back(Split(line, ','));
  }
  return rows;
}

inline std::string JoinPeaks(const std::vector<std::int32_t>& peaks) {
  std::string text;
  for (const std::int32_t peak : peaks) {
    if (!text.empty()) text += '|';
    text += std::to_string(peak);
  }
  return text;
}

}  // namespace quadrille::schedules
