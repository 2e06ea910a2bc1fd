#include "tools/validate/fitted_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/report/json_stream.h"
#include "sim/scenario/software_stack.h"

namespace quadrille::tools {
namespace {

// A derate below 1 is one of a GPU that is faster than the tables that stand in for its kernels.
constexpr ConstantKindRow kKinds[] = {
    {ConstantKind::kDerate16Bit, "sustained_derate 16-bit", 0.8, 2.0, 0.05, 0.02},
    {ConstantKind::kDerateFp8, "sustained_derate fp8", 0.8, 2.0, 0.05, 0.02},
    {ConstantKind::kDerateFp4, "sustained_derate fp4", 0.8, 2.0, 0.05, 0.02},
    {ConstantKind::kSpeedSpread, "speed_spread", 0.0, 0.06, 0.01, 0.012},
    {ConstantKind::kAlibiAttention, "attention_factors triton_alibi", 1.0, 4.0, 0.1, 0.05},
    {ConstantKind::kEagerFactor, "eager_factor", 1.0, 1.6, 0.05, 0.025},
    {ConstantKind::kFixedStep, "fixed_step", 0.0, 1.0, 0.02, 0.045},
    {ConstantKind::kOwnerBroadcast, "owner_broadcast", 0.0, 0.01, 0.0005, 0.0003},
    {ConstantKind::kNicEfficiency, "ring_nic_efficiency", 0.2, 1.0, 0.05, 0.04},
};

constexpr auto kAlibi = model::AttentionBackend::kTritonAlibi;

compute::SystematicFactors* FactorsOf(ConstantKind kind, scenario::Scenario* scenario) {
  switch (kind) {
    case ConstantKind::kDerateFp8: return &scenario->efficiency.factors_fp8;
    case ConstantKind::kDerateFp4: return &scenario->efficiency.factors_fp4;
    default: return &scenario->efficiency.factors_16bit;
  }
}

double InitialOf(ConstantKind kind, scenario::Scenario* scenario) {
  switch (kind) {
    case ConstantKind::kFixedStep: return ToSeconds(scenario->host.fixed_step);
    case ConstantKind::kOwnerBroadcast: return ToSeconds(scenario->host.owner_broadcast);
    case ConstantKind::kNicEfficiency: return scenario->collectives.ring_nic_efficiency;
    case ConstantKind::kSpeedSpread: return scenario->efficiency.speed_spread;
    case ConstantKind::kEagerFactor: return scenario->kernel_time_factor;
    case ConstantKind::kAlibiAttention:
      for (const compute::AttentionFactor& entry : scenario->efficiency.attention_factors) {
        if (entry.backend == kAlibi) return entry.factor;
      }
      return 1.0;
    default: return FactorsOf(kind, scenario)->sustained_derate / scenario->kernel_time_factor;
  }
}

// What the stack's file says of the constant: whether it was taken over from another stack. Its
// word stands in the reason for the key that the stack has set.
compute::ConstantSource OriginOfStacks(ConstantKind kind, const StepOutcome& row) {
  const std::string_view key = kind == ConstantKind::kEagerFactor ? "kernels.time_factor"
                               : kind == ConstantKind::kFixedStep ? "host.fixed_step"
                                                                  : "host.owner_broadcast";
  constexpr std::string_view kAssumed = "; assumed: ";
  for (const scenario::Assumption& assumption : row.assumptions) {
    const std::size_t at = assumption.reason.find(kAssumed);
    if (assumption.key != key || at == std::string::npos) continue;
    return {std::string(key), assumption.reason.substr(at + kAssumed.size()),
            compute::ConstantSource::Kind::kAssumed};
  }
  return {};
}

// What the constant's file says of it; blank where it says nothing.
compute::ConstantSource OriginOf(ConstantKind kind, const StepOutcome& row) {
  if (kind == ConstantKind::kNicEfficiency) return {};
  if (!IsOfGpu(kind)) return OriginOfStacks(kind, row);
  const auto name = [&]() -> std::string_view {
    switch (kind) {
      case ConstantKind::kDerate16Bit: return "factors_16bit.sustained_derate";
      case ConstantKind::kDerateFp8: return "factors_fp8.sustained_derate";
      case ConstantKind::kDerateFp4: return "factors_fp4.sustained_derate";
      case ConstantKind::kSpeedSpread: return "speed_spread";
      case ConstantKind::kAlibiAttention: return "attention_factors.triton_alibi";
      default: return "";
    }
  }();
  for (const compute::ConstantSource& source : row.scenario->efficiency.sources) {
    if (source.constant == name) return source;
  }
  return {};
}

}  // namespace

const ConstantKindRow& RowOf(ConstantKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const ConstantKindRow& row) { return row.kind == kind; });
}

bool IsTime(ConstantKind kind) {
  return kind == ConstantKind::kFixedStep || kind == ConstantKind::kOwnerBroadcast;
}

bool IsOfGpu(ConstantKind kind) { return OwnerKindOf(kind) == "gpu"; }

std::string_view OwnerKindOf(ConstantKind kind) {
  if (kind == ConstantKind::kNicEfficiency) return "cluster";
  return kind == ConstantKind::kEagerFactor || IsTime(kind) ? "stack" : "gpu";
}

bool FitsNics(const scenario::Scenario& scenario) {
  const auto& sources = scenario.collectives.sources;
  return std::any_of(sources.begin(), sources.end(), [](const auto& source) {
    return source.constant == RowOf(ConstantKind::kNicEfficiency).key && source.kind == "fitted" &&
           source.source.rfind("quadrille calibrate", 0) == 0;
  });
}

FittedConstant ConstantOf(ConstantKind kind, const StepOutcome& row) {
  FittedConstant constant;
  constant.kind = kind;
  constant.owner = IsOfGpu(kind)                          ? row.scenario->gpu.name
                   : kind == ConstantKind::kNicEfficiency ? row.scenario->cluster.name
                                                          : row.stack;
  scenario::Scenario copy = *row.scenario;
  constant.initial = constant.value = InitialOf(kind, &copy);
  constant.origin = OriginOf(kind, row);
  constant.lower = RowOf(kind).lower;
  constant.upper = RowOf(kind).upper;
  return constant;
}

// Attention and the LM head are 16-bit
// under every recipe, so that constant touches all rows of a GPU.
bool Touches(const FittedConstant& constant, const StepOutcome& row) {
  if (constant.kind == ConstantKind::kOwnerBroadcast) {
    return row.stack == constant.owner && row.scenario->host.owner_broadcast.count() > 0;
  }
  if (constant.kind == ConstantKind::kFixedStep) {
    // The resolver gives replayed graphs none, whatever the stack.
    return row.stack == constant.owner && !row.scenario->host.cuda_graphs;
  }
  if (constant.kind == ConstantKind::kNicEfficiency) {
    return row.scenario->cluster.name == constant.owner && FitsNics(*row.scenario);
  }
  if (!IsOfGpu(constant.kind)) return row.stack == constant.owner;
  if (row.scenario->gpu.name != constant.owner) return false;
  if (constant.kind == ConstantKind::kAlibiAttention) {
    return row.scenario->execution.attention == kAlibi;
  }
  const DataType type = GemmDataType(row.scenario->execution.recipe);
  if (constant.kind == ConstantKind::kDerateFp8) return type == DataType::kFp8;
  if (constant.kind == ConstantKind::kDerateFp4) return type == DataType::kFp4;
  return true;
}

void Change(const FittedConstant& constant, double from, double to, scenario::Scenario* scenario) {
  if (constant.kind == ConstantKind::kFixedStep) {
    scenario->host.fixed_step = FromSeconds(to);
  } else if (constant.kind == ConstantKind::kOwnerBroadcast) {
    scenario->host.owner_broadcast = FromSeconds(to);
  } else if (constant.kind == ConstantKind::kNicEfficiency) {
    scenario->collectives.ring_nic_efficiency = to;
  } else if (constant.kind == ConstantKind::kSpeedSpread) {
    scenario->efficiency.speed_spread = to;
  } else if (constant.kind == ConstantKind::kEagerFactor) {
    scenario::SlowKernels(to / from, scenario);
  } else if (constant.kind == ConstantKind::kAlibiAttention) {
    for (compute::AttentionConstants& entry : scenario->efficiency.attention) {
      if (entry.backend != kAlibi) continue;
      entry.asymptote = FlopsPerSecond(entry.asymptote.value() * from / to);
    }
  } else {
    FactorsOf(constant.kind, scenario)->sustained_derate *= to / from;
  }
}

double FittedConstant::neutral() const {
  if (kind == ConstantKind::kNicEfficiency)
    return network::CollectiveConstants().ring_nic_efficiency;
  return IsTime(kind) || kind == ConstantKind::kSpeedSpread ? 0.0 : 1.0;
}

std::string FittedConstant::Name() const {
  return fmt::format("{} {} {}", OwnerKindOf(kind), owner, RowOf(kind).key);
}

std::vector<ConstantKind> AllConstantKinds() {
  std::vector<ConstantKind> kinds;
  for (const ConstantKindRow& row : kKinds) kinds.push_back(row.kind);
  return kinds;
}

std::string OverlaySections(const std::vector<FittedConstant>& constants,
                            const std::string& source) {
  std::map<std::string, std::map<std::string, std::string>> sections;  // by kind of owner
  for (const FittedConstant& c : constants) {
    if (c.held && c.value == c.initial) continue;  // not fitted, and as it is without the overlay
    // What JSON escapes, a double-quoted scalar of YAML escapes alike.
    const std::string text =
        fmt::format("{{value: {:.4f}{}, kind: fitted, source: \"{}: {} rows\"}}", c.value,
                    IsTime(c.kind) ? " s" : "", report::JsonEscaped(source), c.rows);
    std::string& lines = sections[fmt::format("{}s", OwnerKindOf(c.kind))][c.owner];
    const char* derates = c.kind == ConstantKind::kDerateFp8   ? "factors_fp8"
                          : c.kind == ConstantKind::kDerateFp4 ? "factors_fp4"
                                                               : "factors_16bit";
    if (c.kind == ConstantKind::kNicEfficiency) {
      lines += fmt::format("    collectives: {{{}: {}}}\n", RowOf(c.kind).key, text);
    } else if (!IsOfGpu(c.kind)) {
      lines += fmt::format("    {}: {}\n", RowOf(c.kind).key, text);
    } else {
      if (lines.empty()) lines = "    efficiency:\n";
      lines += c.kind == ConstantKind::kSpeedSpread
                   ? fmt::format("      {}: {}\n", RowOf(c.kind).key, text)
               : c.kind == ConstantKind::kAlibiAttention
                   ? fmt::format("      attention_factors: {{triton_alibi: {}}}\n", text)
                   : fmt::format("      {}: {{sustained_derate: {}}}\n", derates, text);
    }
  }
  std::string text;
  for (const auto& [section, owners] : sections) {
    text += section + ":\n";
    for (const auto& [owner, lines] : owners) text += fmt::format("  {}:\n{}", owner, lines);
  }
  return text;
}

}  // namespace quadrille::tools
