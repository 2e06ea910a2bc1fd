#include "schedules/refusals.h"

#include <fmt/format.h>

#include <algorithm>

namespace quadrille::schedules {
namespace {

void RefuseUnused(const ScheduleRequest& request, const Options& options, Refusals& refusals) {
  if (!options.group && request.group != 0) refusals.Add("has no microbatch group");
  if (!options.slices && request.slices > 1) refusals.Add("does not slice the sequence");
  if (!options.waves && request.waves != 0) refusals.Add("has no waves");
  if (!options.memory_limit && request.memory_limit != 0) refusals.Add("takes no memory limit");
}

}  // namespace

Refusals::Refusals(std::string_view name, const ScheduleRequest& request, const Options& options)
    : name_(name) {
  if (request.pipeline < 1) {
    Add(fmt::format("pipeline ranks must be at least 1, not {}", request.pipeline));
  }
  if (request.microbatches < 1) {
    Add(fmt::format("microbatches must be at least 1, not {}", request.microbatches));
  }
  if (request.virtual_stages < 0) {
    Add(fmt::format("virtual stages must be at least 1, not {}", request.virtual_stages));
  }
  if (options.fixed_virtual_stages > 0 && request.virtual_stages > 0 &&
      request.virtual_stages != options.fixed_virtual_stages) {
    Add(fmt::format("has {} virtual stage{} per rank, not {}", options.fixed_virtual_stages,
                    options.fixed_virtual_stages == 1 ? "" : "s", request.virtual_stages));
  }
  if (request.slices < 0) Add(fmt::format("slices must be at least 1, not {}", request.slices));
  if (request.group < kAutomaticGroup) {
    Add(fmt::format("the microbatch group must be at least 1, not {}", request.group));
  }
  RefuseUnused(request, options, *this);
  // Three actions (F, I, W) per (rank, microbatch, chunk, slice) at most. In floating point, so
  // that it cannot overflow.
  const double actions = 3.0 * request.pipeline * request.microbatches *
                         std::max(request.virtual_stages, 1) * std::max(request.slices, 1);
  if (actions > static_cast<double>(kMaxActions)) {
    Add(fmt::format("the order would hold up to {:.0f} actions, more than the limit of {}", actions,
                    kMaxActions));
  }
}

void Refusals::Add(const std::string& message) {
  diagnostics_.push_back(Diagnostic{{}, fmt::format("{}: {}", name_, message)});
}

std::int32_t ResolveGroup(const ScheduleRequest& request, Refusals& refusals) {
  const std::int32_t p = request.pipeline;
  const std::int32_t m = request.microbatches;
  if (p < 1 || m < 1 || request.group < kAutomaticGroup) return 0;  // already refused
  if (request.group == kAutomaticGroup) {
    const std::int32_t rounds = std::max(1, m / p);
    if (m % rounds == 0) return m / rounds;
    refusals.Add(fmt::format(
        "with an automatic group the number of microbatches must be a multiple of the number of "
        "rounds, M div P = {}; {} is not",
        rounds, m));
    return 0;
  }
  const std::int32_t group = request.group == 0 ? p : request.group;
  if (group < p || group > m) {
    refusals.Add(fmt::format(
        "the number of contiguous microbatches of a virtual stage (the group, {}) must be in "
        "[pipeline ranks = {}, microbatches = {}]",
        group, p, m));
    return 0;
  }
  const std::int32_t last = m % group;
  if (last > 0 && last < p) {
    refusals.Add(fmt::format(
        "the remainder of {} microbatches divided by the group of {} must be 0 or at least the "
        "number of pipeline ranks, {}, but it is {}: the short last group would stall the pipeline",
        m, group, p, last));
    return 0;
  }
  return group;
}

}  // namespace quadrille::schedules
