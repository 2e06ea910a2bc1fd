#include "schedules/registry.h"

#include <fmt/format.h>

#include <array>

#include "schedules/generators.h"
#include "sim/base/nearest.h"

namespace quadrille::schedules {
namespace {

constexpr std::array kBuiltIn = {
    ScheduleEntry{"gpipe", "all forwards, then all backwards in the same order",
                  "arXiv 1811.06965; PyTorch ScheduleGPipe", GenerateGpipe, 1, false},
    ScheduleEntry{"gpipe-lifo", "all forwards, then all backwards, last microbatch first",
                  "arXiv 1811.06965, figure 2", GenerateGpipeLifo, 1, false},
    ScheduleEntry{"1f1b", "one forward, one backward after a warm-up of P - 1 - r",
                  "arXiv 2104.04473; NVIDIA/Megatron-LM", GenerateOneForwardOneBackward, 1, false},
    ScheduleEntry{"interleaved", "1F1B over v chunks per rank in groups of N microbatches",
                  "arXiv 2104.04473; NVIDIA/Megatron-LM; PyTorch Interleaved1F1B",
                  GenerateInterleaved, 2, false},
};

}  // namespace

std::span<const ScheduleEntry> BuiltInSchedules() { return kBuiltIn; }

const ScheduleEntry* FindSchedule(std::string_view name) {
  for (const ScheduleEntry& entry : kBuiltIn) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<PipelineSchedule> BuildSchedule(std::string_view name, const ScheduleRequest& request) {
  if (const ScheduleEntry* entry = FindSchedule(name)) return entry->generate(request);
  std::array<std::string_view, kBuiltIn.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kBuiltIn[i].name;
  const std::string_view nearest = Nearest(name, names);
  if (nearest.empty()) return Error(fmt::format("there is no schedule named '{}'", name));
  return Error(fmt::format("there is no schedule named '{}'; did you mean '{}'?", name, nearest));
}

}  // namespace quadrille::schedules
