#include "sim/metrics/critical_path_report.h"

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/check.h"
#include "sim/metrics/communication_family.h"

namespace quadrille::metrics {
namespace {

using program::PathKind;
using program::PathStep;

// In the order in which a report lists them.
enum Cause : std::uint8_t {
  kGemm,
  kGroupedGemm,
  kAttention,
  kMemoryBound,
  kOptimizer,
  kSlowedKernels,
  kFirstFamily,  // three per family
  kHost = kFirstFamily + 3 * kFamilies,
  kWaiting,
  kCauses,
};

std::string NameOf(std::size_t cause) {
  switch (cause) {
    case kGemm: return "gemm";
    case kGroupedGemm: return "grouped gemm";
    case kAttention: return "attention";
    case kMemoryBound: return "memory-bound";
    case kOptimizer: return "optimizer";
    case kSlowedKernels: return "kernels slowed";
    case kHost: return "host launch";
    case kWaiting: return "waiting";
    default: break;
  }
  static constexpr std::array<const char*, 3> kParts = {"latency", "transfer", "sharing"};
  const std::size_t part = cause - kFirstFamily;
  return std::string(kFamilyNames[part / 3]) + " " + kParts[part % 3];
}

std::size_t KernelCause(const program::RankProgram& rank, const PathStep& step) {
  const program::OperationName& name = rank.operations[step.operation];
  if (name.optimizer) return kOptimizer;
  switch (name.kind) {
    case model::OperationKind::kGemm: return kGemm;
    case model::OperationKind::kGroupedGemm: return kGroupedGemm;
    case model::OperationKind::kAttention: return kAttention;
    default: return kMemoryBound;
  }
}

}  // namespace

CriticalPathReport SummarisePath(const program::Program& program,
                                 const program::CriticalPath& path) {
  CriticalPathReport report;
  report.followed = true;
  report.stages.resize(program.programs.size(), Duration(0));
  report.steps = static_cast<std::int64_t>(path.size());
  std::array<PathCause, kCauses> causes;
  std::map<std::string, PathOperation> operations;
  const auto add = [&](std::size_t cause, Duration time) {
    if (time.count() == 0) return;
    causes[cause].time += time;
    ++causes[cause].operations;
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    const PathStep& step = path[i];
    if (i > 0) {
      QUADRILLE_CHECK(step.start == path[i - 1].end, "step {} of the path leaves a gap", i);
      report.crossings += step.rank != path[i - 1].rank ? 1 : 0;
    }
    const std::uint32_t stage = program.ranks[step.rank].program;
    const program::RankProgram& rank = program.programs[stage];
    const Duration time = step.end - step.start;
    report.length += time;
    report.stages[stage] += time;
    switch (step.kind) {
      case PathKind::kKernel:
        add(KernelCause(rank, step), step.alone);
        add(kSlowedKernels, time - step.alone);
        break;
      case PathKind::kTransfer: {
        const std::size_t family =
            kFirstFamily + 3 * static_cast<std::size_t>(FamilyOf(rank.lanes[step.lane].kind));
        add(family, step.latency);
        add(family + 1, step.alone - step.latency);
        add(family + 2, time - step.alone);
        break;
      }
      case PathKind::kHost: add(kHost, time); continue;
      case PathKind::kWaiting: add(kWaiting, time); continue;
    }
    PathOperation& operation = operations[rank.operations[step.operation].name];
    operation.time += time;
    ++operation.operations;
  }
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    if (causes[cause].time.count() == 0) continue;
    causes[cause].cause = NameOf(cause);
    report.causes.push_back(std::move(causes[cause]));
  }
  for (auto& [name, operation] : operations) {
    operation.name = name;
    report.operations.push_back(std::move(operation));
  }
  std::stable_sort(report.operations.begin(), report.operations.end(),
                   [](const PathOperation& a, const PathOperation& b) { return a.time > b.time; });
  return report;
}

}  // namespace quadrille::metrics
