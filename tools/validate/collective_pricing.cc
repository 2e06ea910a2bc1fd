#include "tools/validate/collective_pricing.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "sim/network/transfer.h"

namespace quadrille::tools {
namespace {

bool ContainsInAnyCase(const std::string& text, std::string_view words) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), words.begin(), words.end(), same) != text.end();
}

// The first words found in the name of a system, in any case, choose its constants.
// A site whose hosts or transport differ from the pooled constants of its GPU has its own cluster.
struct SystemRule {
  std::string_view words;
  std::string_view cluster;
  // For a site with its own: another site of the same transport, else the cluster of its GPU class.
  std::string_view of_class = {};
};
constexpr SystemRule kSystems[] = {
    {"A100-SXM4-8GPU", "vtrain-a100", "dgx-a100-superpod"},
    {"ABCI", "abci-a100", "dgx-a100-superpod"},
    {"AWS p4de", "aws-p4de-a100", "dgx-a100-superpod"},
    {"AWS p5 (EKS NCCL 2.18", "aws-p5-h100-nccl-2-18", "aws-p5-h100"},
    {"AWS p5 ", "aws-p5-h100", "dgx-h100-superpod"},
    {"AWS p5.48", "aws-p5-h100", "dgx-h100-superpod"},
    {"AWS p5en", "aws-p5en-h200", "dgx-h200-superpod"},
    {"AWS p6-b200", "aws-p6-b200", "dgx-b200-superpod"},
    {"A3-High (GKE)", "gcp-a3-high-h100", "gcp-a3-high-h100-half"},
    {"A3-High", "gcp-a3-high-h100-half", "gcp-a3-high-h100"},
    {"A3-Mega (slurm", "gcp-a3-mega-h100-slurm", "gcp-a3-mega-h100"},
    {"A3-Mega (GKE)", "gcp-a3-mega-h100", "gcp-a3-mega-h100"},  // fitted to the other site
    {"A3-Mega", "gcp-a3-mega-h100", "dgx-h100-superpod"},
    {"A3U/A4", "gcp-a3-ultra-h200", "dgx-h200-superpod"},
    {"GB200 OCI", "oci-gb200", "gb200-nvl72"},
    {"B200 Vultr", "vultr-b200", "dgx-b200-superpod"},
    {"H100 1 GPU/node, 4 NICs", "roce-h100", "dgx-h100-superpod"},
    {"H100 16-GPU note", "h100-rings", "dgx-h100-superpod"},
    {"DGX-2", "dgx2-v100"},
    {"V100", "dgx1-v100"},
    {"A100", "dgx-a100-superpod"},
    {"H800", "h800-deepseek"},
    {"GB200", "gb200-nvl72"},
    {"GB300", "gb300-nvl72"},
    {"B200/H200", "dgx-b200-superpod"},
    {"B200", "dgx-b200-superpod"},
    {"B300", "dgx-b300-superpod"},
    {"H200", "dgx-h200-superpod"},
    {"H100", "dgx-h100-superpod"},
    {"A3U", "dgx-h200-superpod"},
};

}  // namespace

CollectiveCluster ClusterOf(const MeasuredCollective& row) {
  if (!row.cluster.empty()) return {row.cluster, ""};
  const auto* found =
      std::find_if(std::begin(kSystems), std::end(kSystems), [&](const SystemRule& rule) {
        return ContainsInAnyCase(row.system, rule.words) && (!row.tuned || rule.of_class.empty());
      });
  if (found == std::end(kSystems)) return {};
  return {std::string(found->cluster), std::string(found->of_class)};
}

double CollectiveSeconds(const MeasuredCollective& row, const topology::ClusterSpec& cluster,
                         const network::CollectiveConstants& constants) {
  const int per_node = (row.gpus + row.nodes - 1) / row.nodes;
  double nic = cluster.nic.bandwidth.value() * cluster.nic.per_node / cluster.gpus_per_node;
  if (row.nics > 0.0 && row.nic_bandwidth.value() > 0.0) {
    // A single GPU of a node drives one of its NICs, or the only one, by itself.
    const double sharers =
        std::max<double>(per_node, std::min<double>(cluster.gpus_per_node, row.nics));
    nic = row.nics * row.nic_bandwidth.value() / sharers;
  }
  const network::PortCapacities ports{.nvlink = cluster.nvlink.bandwidth,
                                      .nic = BytesPerSecond(nic)};
  const network::GroupPlacement placement{.ranks = row.gpus,
                                          .nodes = row.nodes,
                                          .ranks_per_node = per_node,
                                          .crosses_spine = row.nodes > 32};
  network::TransferShape shape;
  shape.collective.kind = *row.kind;
  shape.collective.bytes = row.bytes;
  const auto price = [&](const network::CollectiveConstants& c) {
    return ToSeconds(
        network::CostOf(shape, placement, c, ports, network::Fidelity::kAlphaBeta).alone);
  };
  if (row.algorithm == network::AllReduceAlgorithm::kFastest) return price(constants);
  network::CollectiveConstants held = constants;
  held.all_reduce_algorithm = row.algorithm;
  return price(held);
}

}  // namespace quadrille::tools
