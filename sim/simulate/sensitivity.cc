// Idea. Every question is the same step with one change, simulated from the start, so that whatever
// hides the change or is hidden by it is seen: a kernel that gets faster only exposes the transfer
// beside it. Changes of hardware are made to the scenario before it is compiled; what is "free" is
// made so in the compiled program.
//
// A resource that is a factor f faster divides its part T of a step by f, so between 10 % slower
// and 10 % faster the step changes by T (1/0.9 - 1/1.1). The share of the step that is bound to a
// resource is that T over the step. The shares of all resources sum to about 1 where the step
// depends on no fixed time. No resource is what a site's hosts add to every collective
// (host_latency): it may be negative, and it belongs to the latency of NVLink as much as to that of
// the network.
#include "sim/simulate/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/parallel_for.h"
#include "sim/metrics/communication_family.h"
#include "sim/network/scale_laws.h"
#include "sim/simulate/describe_run.h"

namespace quadrille::simulate {
namespace {

using metrics::Family;
using scenario::Scenario;

constexpr double kSlower = 1.0 - report::kSensitivityStep;
constexpr double kFaster = 1.0 + report::kSensitivityStep;

// ---- resources ----

// Makes `time` what it is with its resource `factor` faster.
void Hasten(Duration& time, double factor) { time = Scale(time, 1.0 / factor); }

void HastenLatency(network::Law& law, double factor) {
  Hasten(law.alpha, factor);
  Hasten(law.gamma_per_sqrt_megabyte, factor);
}

void ScaleGemms(Scenario& s, double factor) {
  for (FlopsPerSecond* peak :
       {&s.gpu.peak_fp32, &s.gpu.peak_16bit, &s.gpu.peak_fp8, &s.gpu.peak_fp4}) {
    *peak = *peak * factor;
  }
}

void ScaleAttention(Scenario& s, double factor) {
  for (compute::AttentionConstants& row : s.efficiency.attention) {
    row.asymptote = row.asymptote * factor;
  }
}

void ScaleMemory(Scenario& s, double factor) {
  s.gpu.memory_bandwidth = s.gpu.memory_bandwidth * factor;
}

void ScaleKernelStart(Scenario& s, double factor) {
  for (compute::GemmConstants* row : {&s.efficiency.gemm_16bit, &s.efficiency.gemm_fp8,
                                      &s.efficiency.gemm_fp8_block, &s.efficiency.gemm_fp4}) {
    Hasten(row->launch, factor);
    Hasten(row->roofline.launch, factor);
  }
  for (compute::AttentionConstants& row : s.efficiency.attention) Hasten(row.launch, factor);
  Hasten(s.efficiency.memory_bound.launch, factor);
}

void ScaleNvlink(Scenario& s, double factor) {
  s.cluster.nvlink.bandwidth = s.cluster.nvlink.bandwidth * factor;
  if (s.cluster.nvlink.fabric == topology::NvlinkFabric::kNone) {
    s.cluster.pcie.bandwidth = s.cluster.pcie.bandwidth * factor;
  }
  network::ScaleNvlinkLaws(factor, &s.collectives);
}

void ScaleNvlinkLatency(Scenario& s, double factor) {
  network::CollectiveConstants& c = s.collectives;
  for (network::Law* law : {&c.nvlink_all_reduce, &c.nvlink_all_gather, &c.nvlink_reduce_scatter,
                            &c.nvlink_all_to_all, &c.nvlink_send_receive, &c.userbuffers}) {
    HastenLatency(*law, factor);
  }
  Hasten(c.ring_intra_step, factor);
}

void ScaleNics(Scenario& s, double factor) {
  s.cluster.nic.bandwidth = s.cluster.nic.bandwidth * factor;
  network::ScaleNetworkLaws(factor, &s.collectives);
}

void ScaleNetworkLatency(Scenario& s, double factor) {
  network::CollectiveConstants& c = s.collectives;
  for (Duration* latency :
       {&c.ring_base, &c.ring_inter_step, &c.ring_gamma_per_sqrt_megabyte, &c.tree_inter_step,
        &c.all_to_all_peer, &c.network_latency, &c.network_gamma_per_sqrt_megabyte,
        &c.network_minimum, &c.tree_gamma_per_level, &c.point_to_point_spine_hop}) {
    Hasten(*latency, factor);
  }
  HastenLatency(c.network_send_receive, factor);
}

void ScaleHost(Scenario& s, double factor) {
  Hasten(s.host.launch, factor);
  Hasten(s.host.fixed_step, factor);
}

// ---- changes of the compiled step ----

void ScaleFabric(CompiledStep& step, runtime::FabricTier tier, double factor) {
  for (runtime::FabricEdge& edge : step.machine.fabric) {
    if (edge.tier == tier) edge.capacity = edge.capacity * factor;
  }
}

// Communication kernels that are `factor` better hold so many fewer SMs, in whole ones, and move so
// many fewer bytes of HBM.
void ScaleFootprint(CompiledStep& step, double factor) {
  for (network::TransferCost& cost : step.machine.costs) {
    cost.multiprocessors = static_cast<std::int32_t>(std::lround(cost.multiprocessors / factor));
    cost.memory_traffic = cost.memory_traffic * (1.0 / factor);
  }
}

// Transfers of a family take no time and hold nothing.
void FreeFamily(CompiledStep& step, Family family) {
  program::Program& program = step.program;
  const std::size_t placements = program.placements.size();
  std::vector<network::TransferCost> costs;
  for (std::size_t shape = 0; shape < program.shapes.size(); ++shape) {
    const auto row = step.machine.costs.begin() + static_cast<std::ptrdiff_t>(shape * placements);
    costs.insert(costs.end(), row, row + static_cast<std::ptrdiff_t>(placements));
    costs.emplace_back();
  }
  step.machine.costs = std::move(costs);
  program.placements.emplace_back();
  for (program::Group& group : program.groups) {
    const program::GroupMember& member = program.members[group.member_begin];
    const program::RankProgram& rank = program.programs[program.ranks[member.rank].program];
    if (metrics::FamilyOf(rank.lanes[member.lane].kind) != family) continue;
    group.placement = static_cast<std::int32_t>(placements);
  }
}

// Kernels for which `wanted(name)` take no time.
template <typename Wanted>
void FreeKernels(CompiledStep& step, Wanted wanted) {
  for (program::RankProgram& rank : step.program.programs) {
    for (const program::Template& body : rank.templates) {
      for (const program::Instruction& instruction : body.instructions) {
        if (instruction.kind != program::InstructionKind::kCompute) continue;
        if (wanted(rank.operations[instruction.operation])) {
          rank.kernels[instruction.cost].duration = Duration(0);
          rank.kernels[instruction.cost].of_expert_rows = Duration(0);
        }
      }
    }
  }
}

// ---- questions ----

// One run: the scenario, changed before it is compiled, after, or both.
struct Question {
  std::function<void(Scenario&)> scenario;
  std::function<void(CompiledStep&)> compiled;
};

struct Resource {
  std::string name;
  std::string what;
  std::function<void(Scenario&, double)> scenario;
  std::function<void(CompiledStep&, double)> compiled;
};

struct FreeKind {
  std::string name;
  std::string what;
  Question question;
};

std::vector<Resource> ResourcesOf(const Scenario& s) {
  std::vector<Resource> resources = {
      {"GEMM rate", "tensor-core peak", ScaleGemms, {}},
      {"attention rate", "asymptote of the attention kernels", ScaleAttention, {}},
      {"HBM bandwidth", "of each GPU", ScaleMemory, {}},
      {"kernel start", "fixed time of each kernel on the GPU", ScaleKernelStart, {}},
      {"NVLink bandwidth", "ports and the bus bandwidths measured over them", ScaleNvlink, {}},
      {"NVLink latency", "start, steps and ramp of transfers in a domain", ScaleNvlinkLatency, {}},
      {"NIC bandwidth", "NICs and the point-to-point rate measured over them", ScaleNics, {}},
      {"network latency",
       "start, hops and ramp of transfers between domains",
       ScaleNetworkLatency,
       {}},
      {"communication's SMs",
       "SMs and HBM bandwidth that transfers take from kernels",
       {},
       ScaleFootprint}};
  if (s.network.fidelity == network::Fidelity::kFlow) {
    const auto add = [&](const char* name, const char* what, runtime::FabricTier tier) {
      resources.push_back({name, what, {}, [tier](CompiledStep& step, double factor) {
                             ScaleFabric(step, tier, factor);
                           }});
    };
    const auto shape = topology::DeriveShape(s.cluster);
    add("leaf-spine links", "all links from leaves to spines", runtime::FabricTier::kLeafSpine);
    if (!shape || shape->cores() > 0 || s.cluster.fabric.kind == topology::FabricKind::kEdgeList) {
      add("spine-core links", "all links from spines to cores", runtime::FabricTier::kSpineCore);
    }
  }
  if (s.host.launch.count() > 0 || s.host.fixed_step.count() > 0) {
    resources.push_back({"host", "launches and the fixed work of a step", ScaleHost, {}});
  }
  return resources;
}

std::vector<FreeKind> FreeKindsOf(const Scenario& s) {
  std::vector<FreeKind> kinds;
  const auto add = [&](std::string name, std::string what, std::function<void(Scenario&)> before,
                       std::function<void(CompiledStep&)> after) {
    kinds.push_back({std::move(name), std::move(what), {std::move(before), std::move(after)}});
  };
  const std::pair<Family, const char*> families[] = {{Family::kTensor, "TP communication"},
                                                     {Family::kContext, "CP communication"},
                                                     {Family::kExpert, "EP communication"},
                                                     {Family::kPipeline, "PP communication"},
                                                     {Family::kData, "DP communication"}};
  const bool present[] = {s.parallel.tensor > 1, s.parallel.context > 1,
                          s.model.experts.enabled() && s.parallel.expert > 1,
                          s.parallel.pipeline > 1, s.parallel.data * s.parallel.context > 1};
  for (const auto& [family, name] : families) {
    if (!present[static_cast<std::size_t>(family)]) continue;
    add(name, "transfers take no time and hold no SMs", {},
        [family = family](CompiledStep& step) { FreeFamily(step, family); });
  }
  add("all communication", "likewise, all of them", {}, [](CompiledStep& step) {
    for (std::size_t f = 0; f < metrics::kFamilies; ++f) FreeFamily(step, static_cast<Family>(f));
  });
  add("interference", "kernels keep all SMs and all HBM bandwidth", {},
      [](CompiledStep& step) { step.machine.network.interference = false; });
  if (s.network.fidelity == network::Fidelity::kEndpoint ||
      s.network.fidelity == network::Fidelity::kFlow) {
    add("sharing of links", "each transfer runs as if alone", {},
        [](CompiledStep& step) { step.machine.network.fidelity = network::Fidelity::kAlphaBeta; });
  }
  const auto of_kind = [&](const char* name, model::OperationKind kind) {
    add(name, "kernels take no time", {}, [kind](CompiledStep& step) {
      FreeKernels(step, [kind](const program::OperationName& operation) {
        return !operation.optimizer && operation.kind == kind;
      });
    });
  };
  of_kind("attention", model::OperationKind::kAttention);
  of_kind("memory-bound kernels", model::OperationKind::kMemoryBound);
  add("optimizer", "its kernels take no time", {}, [](CompiledStep& step) {
    FreeKernels(step, [](const program::OperationName& operation) { return operation.optimizer; });
  });
  if (s.host.launch.count() > 0) {
    add("host launches", "every kernel is launched in time",
        [](Scenario& scenario) { scenario.host.launch = Duration(0); }, {});
  }
  if (!s.perturbations.empty()) {
    add("perturbations", "every GPU and link is nominal",
        [](Scenario& scenario) { scenario.perturbations.clear(); }, {});
  }
  return kinds;
}

// The step time, and in `warnings`, if asked for, what is to be said of the run.
Result<Duration> Answer(Scenario scenario, const SimulateOptions& options, const Question& question,
                        Diagnostics* warnings) {
  if (question.scenario) question.scenario(scenario);
  Result<CompiledStep> compiled = CompileStep(scenario, options.unfold);
  if (!compiled) return tl::unexpected<Diagnostics>(compiled.error());
  if (question.compiled) question.compiled(*compiled);
  const Result<Simulation> simulation = Run(scenario, std::move(*compiled), options);
  if (!simulation) return tl::unexpected<Diagnostics>(simulation.error());
  if (warnings != nullptr) *warnings = simulation->compiled.warnings;
  return simulation->report.step_time;
}

Question Changed(const Resource& resource, double factor) {
  Question question;
  if (resource.scenario) {
    question.scenario = [&resource, factor](Scenario& s) { resource.scenario(s, factor); };
  }
  if (resource.compiled) {
    question.compiled = [&resource, factor](CompiledStep& s) { resource.compiled(s, factor); };
  }
  return question;
}

}  // namespace

Result<report::SensitivityReport> AnalyseSensitivity(const Scenario& scenario,
                                                     const SimulateOptions& options, int threads,
                                                     const std::function<void(Ratio)>& progress) {
  const std::vector<Resource> resources = ResourcesOf(scenario);
  const std::vector<FreeKind> kinds = FreeKindsOf(scenario);
  std::vector<Question> questions = {{}};
  for (const Resource& resource : resources) {
    questions.push_back(Changed(resource, kSlower));
    questions.push_back(Changed(resource, kFaster));
  }
  for (const FreeKind& kind : kinds) questions.push_back(kind.question);

  report::SensitivityReport report;
  std::vector<std::optional<Result<Duration>>> answers(questions.size());
  ParallelFor(
      questions.size(), threads,
      [&](std::size_t i) {
        answers[i] = Answer(scenario, options, questions[i], i == 0 ? &report.warnings : nullptr);
      },
      progress);
  for (const std::optional<Result<Duration>>& answer : answers) {
    if (!*answer) return tl::unexpected<Diagnostics>(answer->error());
  }
  report.step_time = **answers[0];
  std::size_t next = 1;
  for (const Resource& resource : resources) {
    report::ResourceSensitivity row;
    row.name = resource.name;
    row.what = resource.what;
    row.slower = **answers[next++];
    row.faster = **answers[next++];
    row.share = Ratio(ToSeconds(row.slower - row.faster) / (1.0 / kSlower - 1.0 / kFaster) /
                      ToSeconds(report.step_time));
    report.resources.push_back(std::move(row));
  }
  for (const FreeKind& kind : kinds) {
    report.free.push_back({kind.name, kind.what, **answers[next++]});
  }
  std::stable_sort(report.resources.begin(), report.resources.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  std::stable_sort(report.free.begin(), report.free.end(),
                   [](const auto& a, const auto& b) { return a.step_time < b.step_time; });
  return report;
}

}  // namespace quadrille::simulate
