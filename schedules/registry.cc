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
    ScheduleEntry{"eager-1f1b", "1F1B with twice the warm-up, which hides latency",
                  "arXiv 2211.05322", GenerateEagerOneForwardOneBackward, 1, false},
    ScheduleEntry{"interleaved", "1F1B over v chunks per rank in groups of N microbatches",
                  "arXiv 2104.04473; NVIDIA/Megatron-LM; PyTorch Interleaved1F1B",
                  GenerateInterleaved, 2, false},
    ScheduleEntry{"combined",
                  "interleaved with fused forward-backward pairs (EP all-to-all overlap)",
                  "NVIDIA/Megatron-LM combined_1f1b.py", GenerateCombined, 2, false},
    ScheduleEntry{"breadth-first", "looped: chunk by chunk, all microbatches; backward descending",
                  "arXiv 2211.05953; PyTorch ScheduleLoopedBFS", GenerateBreadthFirst, 2, false},
    ScheduleEntry{"breadth-first-fifo", "breadth-first with the backward in ascending order",
                  "arXiv 2211.05953", GenerateBreadthFirstFifo, 2, false},
    ScheduleEntry{"depth-first", "all forwards, then all backwards, in interleaved groups",
                  "arXiv 2211.05953, section 3", GenerateDepthFirst, 2, false},
    ScheduleEntry{
        "zb-h1",
        "1F1B with split backward; W fills the drain, P activations on every rank until it runs",
        "arXiv 2401.10241", GenerateZeroBubbleH1, 1, false},
    ScheduleEntry{"zb-h2", "split backward and a doubled warm-up: no idle inside a rank's span",
                  "arXiv 2401.10241", GenerateZeroBubbleH2, 1, false},
    ScheduleEntry{"zb-auto", "split backward, list-scheduled from costs under a memory cap",
                  "arXiv 2401.10241, section 3; sail-sg/zero-bubble-pipeline-parallelism zb.py",
                  GenerateZeroBubbleAutomatic, 1, true},
    ScheduleEntry{"interleaved-zb", "interleaved with split backward",
                  "PyTorch ScheduleInterleavedZeroBubble", GenerateInterleavedZeroBubble, 2, false},
    ScheduleEntry{"group-interleaved", "interleaved with split backward in groups below P",
                  "arXiv 2503.01328; sail-sg/zero-bubble-pipeline-parallelism",
                  GenerateGroupInterleaved, 2, false},
    ScheduleEntry{"zbv", "split backward on a V placement, by rule",
                  "arXiv 2401.10241, section 6; PyTorch ScheduleZBVZeroBubble", GenerateZbv, 2,
                  false, Placement::kV},
    ScheduleEntry{"zbv-greedy", "split backward on a V placement, list-scheduled from costs",
                  "arXiv 2401.10241, section 6; sail-sg/zero-bubble-pipeline-parallelism zbv.py",
                  GenerateZbvGreedy, 2, true, Placement::kV},
    ScheduleEntry{"v-half", "V placement at half of 1F1B's activation memory",
                  "arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism zbv_greedy.py",
                  GenerateVHalf, 2, false, Placement::kV},
    ScheduleEntry{"v-min", "V placement at a third of 1F1B's activation memory",
                  "arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism zbv_greedy.py",
                  GenerateVMin, 2, false, Placement::kV},
    ScheduleEntry{"1f1b-v", "V placement with whole backwards, two thirds of 1F1B's memory",
                  "arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism v1f1b.py",
                  GenerateOneForwardOneBackwardV, 2, false, Placement::kV},
    ScheduleEntry{"v-auto",
                  "V placement: the building block of least idle time within a memory cap",
                  "arXiv 2405.15362; sail-sg/zero-bubble-pipeline-parallelism v_auto_schedule.py",
                  GenerateVAutomatic, 2, true, Placement::kV},
    ScheduleEntry{"dualpipe", "two replicas fed from both ends, fused pairs",
                  "arXiv 2412.19437; deepseek-ai/DualPipe", GenerateDualPipe, 1, false,
                  Placement::kBidirectional},
    ScheduleEntry{"dualpipev", "DualPipe cut in half: one replica in a V, fused pairs",
                  "deepseek-ai/DualPipe; PyTorch ScheduleDualPipeV", GenerateDualPipeV, 2, false,
                  Placement::kV},
    ScheduleEntry{"chimera", "two replicas fed from both ends, merged by slot",
                  "arXiv 2107.06925; Shigangli/Chimera", GenerateChimera, 1, false,
                  Placement::kBidirectional},
    ScheduleEntry{"hanayo", "one wave: Chimera cut in half, one replica in a V", "arXiv 2308.15762",
                  GenerateHanayo, 2, false, Placement::kV},
    ScheduleEntry{"seq1f1b", "1F1B over slices of the sequence", "arXiv 2406.03488; thunlp/Seq1F1B",
                  GenerateSeq1F1B, 1, false},
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
