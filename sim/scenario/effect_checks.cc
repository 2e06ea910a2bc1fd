#include "sim/scenario/effect_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schedules/registry.h"
#include "sim/scenario/names.h"

namespace quadrille::scenario {
namespace {

// Measured laws of shipped clusters lie at 0.67 to 0.92 of their port; a port this much faster than
// its law was changed without it.
constexpr double kPortOverLaw = 2.0;

void NoEffect(Findings* findings, const std::string& key, std::string_view value,
              const std::string& reason) {
  findings->WarnAt(key, fmt::format("'{}' has no effect: {}", value, reason));
  findings->Assume(key, std::string(value), "no effect: " + reason);
}

void CheckNorms(Findings* findings, const Scenario& s) {
  const auto check = [&](const char* key, bool value, bool works, const char* reason) {
    if (!works && findings->Has(key)) NoEffect(findings, key, value ? "true" : "false", reason);
  };
  check("model.norm_bias", s.model.norm_bias,
        s.model.normalization == model::Normalization::kLayerNorm,
        "RMSNorm has no bias, LayerNorm has one that can be left out");
  check("model.qk_norm_weights", s.model.qk_norm_weights, s.model.qk_norm,
        "the model has no qk_norm");
}

void CheckRecompute(Findings* findings, const Scenario& s) {
  const model::ExecutionConfig& execution = s.execution;
  if (execution.recomputation != model::Recomputation::kSelective) return;
  const model::RecomputeModules& modules = execution.recompute_modules;
  const auto check = [&](bool asked, bool held, const char* module, const std::string& reason) {
    if (asked && !held) NoEffect(findings, "training.recompute", module, reason);
  };
  if (modules.core_attention && execution.attention != model::AttentionBackend::kUnfused) {
    findings->WarnAt("training.recompute",
                     fmt::format("'core_attn' runs attention's forward twice and frees next to "
                                 "nothing: attention {} stores no scores",
                                 NameOf(execution.attention, kAttentionBackends)));
  }
  check(modules.experts, s.model.experts.enabled(), "moe", "the model has no experts");
  check(modules.expert_activation, s.model.experts.enabled(), "moe_act",
        "the model has no experts");
  check(modules.latent_up_projection, s.model.latent.enabled(), "mla_up_proj",
        "the model has no latent attention");
}

// Whether some rank of the run's schedule merges a forward and a backward into one slot; a schedule
// that is built from costs does not.
bool MergesPairs(const Scenario& s) {
  const auto merges = [](const schedules::PipelineSchedule& schedule) {
    return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const auto& slots) {
      return std::any_of(slots.begin(), slots.end(),
                         [](const schedules::Slot& slot) { return slot.second.has_value(); });
    });
  };
  if (s.schedule.order) return merges(*s.schedule.order);
  const schedules::ScheduleEntry* entry = schedules::FindSchedule(s.schedule.name);
  if (entry == nullptr || entry->needs_costs) return false;
  const auto built = schedules::BuildSchedule(s.schedule.name, s.schedule.request);
  return built && merges(*built);
}

void CheckOverlaps(Findings* findings, const Scenario& s) {
  if (s.overlap.expert_all_to_all && s.model.experts.enabled() && !MergesPairs(s)) {
    NoEffect(findings, "overlap.expert_all_to_all", "true",
             fmt::format("schedule {} never runs a forward beside a backward, which would hide the "
                         "exchange; combined, dualpipe and dualpipev do",
                         s.schedule.name));
  }
  if (!s.overlap.expert_all_to_all && s.model.experts.enabled() &&
      findings->Has("overlap.expert_all_to_all") && MergesPairs(s)) {
    NoEffect(findings, "overlap.expert_all_to_all", "false",
             fmt::format("schedule {} runs a forward beside a backward, which hides the exchange",
                         s.schedule.name));
  }
  if (s.execution.shared_expert_overlap && s.model.experts.enabled() &&
      s.model.experts.shared_ffn_hidden == 0 && findings->Has("overlap.shared_experts")) {
    NoEffect(findings, "overlap.shared_experts", "true", "the model has no shared experts");
  }
}

// What concerns all-reduces and whole activations, which sequence parallelism does without.
void CheckTensor(Findings* findings, const Scenario& s) {
  const bool whole = s.parallel.tensor > 1 && !s.parallel.sequence_parallel;
  const char* reason =
      "without tensor parallelism, and with sequence parallelism, no GPU holds "
      "what another holds too";
  if (s.execution.scatter_gather && !whole) {
    NoEffect(findings, "parallel.scatter_gather", "true", reason);
  } else if (s.execution.scatter_gather && s.parallel.pipeline == 1) {
    NoEffect(findings, "parallel.scatter_gather", "true", "there is no pipeline");
  }
  if (!s.execution.tensor_gradient_overlap && !whole) {
    NoEffect(findings, "overlap.tensor_gradient", "false", reason);
  }
}

void CheckGradients(Findings* findings, const Scenario& s) {
  if (s.execution.gradient_placeholders && !s.execution.fusions.gradient_accumulation) {
    NoEffect(findings, "kernels.gradient_placeholders", "true",
             "weight gradients are tensors of their own where their GEMM does not add them up");
  }
}

void CheckSharding(Findings* findings, const Scenario& s) {
  const auto given = [&](const char* key) { return findings->Has(key); };
  const bool full = s.parallel.sharding == parallel::DataSharding::kFull;
  const std::pair<const char*, std::string> unsharding[] = {
      {"overlap.fsdp_prefetch", fmt::format("{}", s.overlap.fsdp_prefetch)},
      {"overlap.fsdp_reshard_after_forward",
       fmt::format("{}", s.overlap.fsdp_reshard_after_forward)},
      {"overlap.fsdp_launch", std::string(NameOf(s.overlap.fsdp_launch, kShardLaunches))},
      {"overlap.fsdp_active_chunks", fmt::format("{}", s.overlap.fsdp_active_chunks)}};
  for (const auto& [key, value] : unsharding) {
    if (!full && given(key)) {
      NoEffect(findings, key, value, "parallel.zero is not 3: no parameters are unsharded");
    }
  }
  const bool fabric = s.network.fidelity == network::Fidelity::kFlow ||
                      s.network.fidelity == network::Fidelity::kChunk;
  if (given("placement.order") && !fabric) {
    NoEffect(findings, "placement.order", NameOf(s.placement.order, kNodeOrders),
             "which nodes share a switch matters to network.fidelity flow and chunk alone");
  }
}

// Constants of a measured machine that a key of the cluster cannot move.
void CheckLaws(Findings* findings, const Scenario& s) {
  const double law = s.collectives.nvlink_all_gather.bandwidth.value();
  const double port = s.cluster.nvlink.bandwidth.value();
  if (s.cluster.nvlink.fabric == topology::NvlinkFabric::kNone || law <= 0.0) return;
  if (port <= kPortOverLaw * law) return;
  NoEffect(findings, "cluster.nvlink.bandwidth", fmt::format("{:g} GB/s", port * 1e-9),
           fmt::format("collectives in a node keep to the measured laws of '{}', at most {:g} GB/s "
                       "for an all-gather; give cluster.collectives of that machine",
                       s.collectives.name, law * 1e-9));
}

void CheckPcie(Findings* findings, const Scenario& s) {
  const topology::ClusterSpec& cluster = s.cluster;
  if (cluster.pcie.bandwidth.value() <= 0.0 || cluster.nic.per_node == 0 ||
      cluster.pcie.bandwidth >= cluster.nic.bandwidth) {
    return;
  }
  findings->Assume("cluster.nic.bandwidth",
                   fmt::format("{:g} GB/s", cluster.pcie.bandwidth.value() * 1e-9),
                   fmt::format("the NIC's {:g} GB/s do not fit through its PCIe link",
                               cluster.nic.bandwidth.value() * 1e-9));
}

}  // namespace

void WarnOfNoEffect(Findings* findings, const Scenario& scenario) {
  CheckNorms(findings, scenario);
  CheckRecompute(findings, scenario);
  CheckTensor(findings, scenario);
  CheckGradients(findings, scenario);
  CheckOverlaps(findings, scenario);
  CheckSharding(findings, scenario);
  CheckLaws(findings, scenario);
  CheckPcie(findings, scenario);
}

}  // namespace quadrille::scenario
