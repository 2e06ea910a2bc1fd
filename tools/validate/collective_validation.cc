// A measured collective is priced alone, as nccl-tests runs it, with the constants of its GPU
// generation and the NICs that the row names.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>

#include "sim/network/transfer.h"
#include "tools/validate/gpu_names.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"

namespace quadrille::tools {
namespace {

bool Contains(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

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

std::optional<model::CollectiveKind> KindOf(const std::string& name) {
  const auto starts = [&](std::string_view head) { return name.rfind(head, 0) == 0; };
  if (starts("all_reduce")) return model::CollectiveKind::kAllReduce;
  if (starts("all_gather")) return model::CollectiveKind::kAllGather;
  if (starts("reduce_scatter")) return model::CollectiveKind::kReduceScatter;
  if (starts("alltoall")) return model::CollectiveKind::kAllToAll;
  if (starts("sendrecv")) return model::CollectiveKind::kSendReceive;
  return std::nullopt;
}

// NICs of a node as "8x400G IB" or "4x HDR200 IB" names them; none when it says neither.
struct StatedNics {
  double count = 0.0;
  double bandwidth = 0.0;  // of one, bytes/s
};

StatedNics NicsOf(const std::string& text) {
  const std::size_t times = text.find('x');
  if (times == std::string::npos || times == 0) return {};
  const auto digits = [&](std::size_t at) {
    double value = 0.0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
      value = value * 10.0 + (text[at] - '0');
    }
    return value;
  };
  // The rate is the first number of at least 100 behind the count.
  double rate = 0.0;
  for (std::size_t i = times + 1; i < text.size(); ++i) {
    const bool starts = std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
                        std::isdigit(static_cast<unsigned char>(text[i - 1])) == 0;
    if (starts && rate == 0.0 && digits(i) >= 100.0) rate = digits(i);
  }
  return {digits(0), rate * 1e9 / 8.0};
}

// An all-reduce within a node that is held to the ring: a reduce-scatter, then an all-gather.
double RingAllReduceSeconds(network::TransferShape shape, const network::GroupPlacement& placement,
                            const network::CollectiveConstants& constants,
                            const network::PortCapacities& ports) {
  double seconds = 0.0;
  for (const auto kind :
       {model::CollectiveKind::kReduceScatter, model::CollectiveKind::kAllGather}) {
    shape.collective.kind = kind;
    seconds += ToSeconds(
        network::CostOf(shape, placement, constants, ports, network::Fidelity::kAlphaBeta).alone);
  }
  return seconds;
}

// A measured collective, apart from where it ran.
struct Measured {
  model::CollectiveKind kind = model::CollectiveKind::kAllReduce;
  double bytes = 0.0;
  int gpus = 1;
  int nodes = 1;
  StatedNics nics;    // of a node; none: as the cluster says
  bool ring = false;  // held to the ring algorithm
};

double SecondsOn(const scenario::Scenario& hardware, const Measured& measured) {
  const topology::ClusterSpec& cluster = hardware.cluster;
  const int per_node = (measured.gpus + measured.nodes - 1) / measured.nodes;
  double nic = cluster.nic.bandwidth.value() * cluster.nic.per_node / cluster.gpus_per_node;
  if (measured.nics.count > 0.0 && measured.nics.bandwidth > 0.0) {
    // A single GPU of a node drives one of its NICs, or the only one, by itself.
    const double sharers =
        std::max<double>(per_node, std::min<double>(cluster.gpus_per_node, measured.nics.count));
    nic = measured.nics.count * measured.nics.bandwidth / sharers;
  }
  const network::PortCapacities ports{.nvlink = cluster.nvlink.bandwidth,
                                      .nic = BytesPerSecond(nic)};
  const network::GroupPlacement placement{.ranks = measured.gpus,
                                          .nodes = measured.nodes,
                                          .ranks_per_node = per_node,
                                          .crosses_spine = measured.nodes > 32};
  network::TransferShape shape;
  shape.collective.kind = measured.kind;
  shape.collective.bytes = Bytes(std::llround(measured.bytes));
  if (measured.nodes == 1 && measured.ring) {
    return RingAllReduceSeconds(shape, placement, hardware.collectives, ports);
  }
  return ToSeconds(
      network::CostOf(shape, placement, hardware.collectives, ports, network::Fidelity::kAlphaBeta)
          .alone);
}

const SystemRule* RuleFor(const std::string& system, const std::string& collective) {
  // A site's own constants are those of NCCL's defaults; a tuned run is as its class.
  const bool tuned = Contains(collective, "[tuned");
  const auto* found =
      std::find_if(std::begin(kSystems), std::end(kSystems), [&](const SystemRule& rule) {
        return ContainsInAnyCase(system, rule.words) && (!tuned || rule.of_class.empty());
      });
  return found == std::end(kSystems) ? nullptr : found;
}

void Predict(const CsvTable& table, std::size_t i, CellReader& cells, HardwareLibrary& library,
             IsolatedRow* row) {
  const std::string& system = table.At(i, "system");
  const std::string& collective = table.At(i, "collective");
  const std::string& nic = table.At(i, "nic");
  Measured measured;
  measured.gpus = cells.Whole(i, "gpus", 1, 1);
  measured.nodes = cells.Whole(i, "nodes", 1, 1);
  measured.bytes = row->bytes = cells.Number(i, "bytes", 0.0, 0.0);
  measured.ring = Contains(collective, "[ring]");
  // A tray's NICs are counted per tray, which is no node of a rack.
  if (!Contains(nic, "tray")) measured.nics = NicsOf(nic);
  row->what = fmt::format("{} of {:.0f} bytes on {} GPUs", collective, row->bytes, measured.gpus);
  row->group = fmt::format("{}, {}", system, row->bytes >= 1e6 ? "1 MB and more" : "below 1 MB");
  const auto skip = [&](std::string reason) { row->reason = std::move(reason); };
  if (const auto blank = table.FirstBlank(i, {"gpus", "nodes", "bytes"}); !blank.empty()) {
    return skip(fmt::format("{} is not stated", blank));
  }
  const auto kind = KindOf(collective);
  if (!kind) return skip(fmt::format("'{}' is no collective of the network model", collective));
  measured.kind = *kind;
  const SystemRule* rule = RuleFor(system, collective);
  if (rule == nullptr) {
    return skip(
        fmt::format("system '{}' names no GPU that has constants{}", system, KnownGpus(system)));
  }
  const auto* hardware = library.Find(std::string(rule->cluster), "");
  if (hardware == nullptr) return skip(fmt::format("cluster {} is missing", rule->cluster));
  row->generation = hardware->gpu.architecture;
  row->predicted_s = SecondsOn(*hardware, measured);
  if (!rule->of_class.empty()) {
    const auto* of_class = library.Find(std::string(rule->of_class), "");
    if (of_class != nullptr) row->of_class_s = SecondsOn(*of_class, measured);
  }
  if (row->measured_s <= 0.0) return skip("no time was measured");
  row->status = RowStatus::kOk;
}

}  // namespace

Result<std::vector<IsolatedRow>> ValidateCollectives(const CsvTable& table,
                                                     const scenario::LoadOptions& load) {
  Diagnostics problems;
  for (std::string_view name : {"system", "gpus", "nodes", "collective", "bytes", "time_us"}) {
    if (table.ColumnOf(name) != CsvTable::kAbsent) continue;
    problems.push_back({{table.file(), 1, 0}, fmt::format("there is no column '{}'", name)});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  HardwareLibrary library(load);
  CellReader cells(table, &problems);
  std::vector<IsolatedRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    IsolatedRow row;
    row.line = table.PositionOf(i).line;
    row.measured_s = cells.Number(i, "time_us", 0.0, 0.0) * 1e-6;
    Predict(table, i, cells, library, &row);
    rows.push_back(std::move(row));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rows;
}

}  // namespace quadrille::tools
