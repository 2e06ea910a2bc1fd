// The generators behind the registry's rows. What each builds and refuses stands at the head of its
// .cc.
#pragma once

#include "schedules/pipeline_schedule.h"
#include "sim/base/result.h"

namespace quadrille::schedules {

// gpipe.cc
[[nodiscard]] Result<PipelineSchedule> GenerateGpipe(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateGpipeLifo(const ScheduleRequest& request);
// one_forward_one_backward.cc
[[nodiscard]] Result<PipelineSchedule> GenerateOneForwardOneBackward(
    const ScheduleRequest& request);
// eager_one_forward_one_backward.cc
[[nodiscard]] Result<PipelineSchedule> GenerateEagerOneForwardOneBackward(
    const ScheduleRequest& request);
// interleaved.cc
[[nodiscard]] Result<PipelineSchedule> GenerateInterleaved(const ScheduleRequest& request);
// combined.cc
[[nodiscard]] Result<PipelineSchedule> GenerateCombined(const ScheduleRequest& request);
// breadth_first.cc
[[nodiscard]] Result<PipelineSchedule> GenerateBreadthFirst(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateBreadthFirstFifo(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateDepthFirst(const ScheduleRequest& request);
// zero_bubble_fixed.cc
[[nodiscard]] Result<PipelineSchedule> GenerateZeroBubbleH1(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateZeroBubbleH2(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateInterleavedZeroBubble(
    const ScheduleRequest& request);
// zbv.cc
[[nodiscard]] Result<PipelineSchedule> GenerateZbv(const ScheduleRequest& request);
// dualpipe.cc
[[nodiscard]] Result<PipelineSchedule> GenerateDualPipe(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateDualPipeV(const ScheduleRequest& request);
// chimera.cc
[[nodiscard]] Result<PipelineSchedule> GenerateChimera(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateHanayo(const ScheduleRequest& request);
// seq1f1b.cc
[[nodiscard]] Result<PipelineSchedule> GenerateSeq1F1B(const ScheduleRequest& request);
// zero_bubble_automatic.cc
[[nodiscard]] Result<PipelineSchedule> GenerateZeroBubbleAutomatic(const ScheduleRequest& request);
// v_greedy.cc
[[nodiscard]] Result<PipelineSchedule> GenerateZbvGreedy(const ScheduleRequest& request);
// group_interleaved.cc
[[nodiscard]] Result<PipelineSchedule> GenerateGroupInterleaved(const ScheduleRequest& request);
// v_schedules_memory.cc
[[nodiscard]] Result<PipelineSchedule> GenerateVHalf(const ScheduleRequest& request);
[[nodiscard]] Result<PipelineSchedule> GenerateVMin(const ScheduleRequest& request);
// v_schedules_whole_backward.cc
[[nodiscard]] Result<PipelineSchedule> GenerateOneForwardOneBackwardV(
    const ScheduleRequest& request);
// v_schedules_auto.cc
[[nodiscard]] Result<PipelineSchedule> GenerateVAutomatic(const ScheduleRequest& request);

}  // namespace quadrille::schedules
