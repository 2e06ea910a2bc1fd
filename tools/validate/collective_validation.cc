// A measured collective is priced alone, as nccl-tests runs it, with the constants of its GPU
// generation and the NICs that the row names.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>

#include "sim/network/transfer.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"

namespace quadrille::tools {
namespace {

bool Contains(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

// The first words found in the name of a system choose its constants.
struct SystemRule {
  std::string_view words;
  std::string_view cluster;
};
constexpr SystemRule kSystems[] = {
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

// Bandwidth of all NICs of a node from "8x400G IB" or "4x HDR200 IB"; 0 when it says neither.
double NicBytesPerSecond(const std::string& text) {
  const std::size_t times = text.find('x');
  if (times == std::string::npos || times == 0) return 0.0;
  const auto digits = [&](std::size_t at) {
    double value = 0.0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
      value = value * 10.0 + (text[at] - '0');
    }
    return value;
  };
  const double count = digits(0);
  // The rate is the last number of at least 100 behind the count.
  double rate = 0.0;
  for (std::size_t i = times + 1; i < text.size(); ++i) {
    const bool starts = std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
                        std::isdigit(static_cast<unsigned char>(text[i - 1])) == 0;
    if (starts && rate == 0.0 && digits(i) >= 100.0) rate = digits(i);
  }
  return count * rate * 1e9 / 8.0;
}

void Predict(const CsvTable& table, std::size_t i, CellReader& cells, HardwareLibrary& library,
             IsolatedRow* row) {
  const std::string& system = table.At(i, "system");
  const std::string& collective = table.At(i, "collective");
  const int gpus = cells.Whole(i, "gpus", 1, 1);
  const int nodes = cells.Whole(i, "nodes", 1, 1);
  const double bytes = cells.Number(i, "bytes", 0.0, 0.0);
  row->what = fmt::format("{} of {:.0f} bytes on {} GPUs", collective, bytes, gpus);
  row->group = fmt::format("{}, {}", system, bytes >= 1e6 ? "1 MB and more" : "below 1 MB");
  const auto skip = [&](std::string reason) { row->reason = std::move(reason); };
  const auto kind = KindOf(collective);
  if (!kind) return skip(fmt::format("'{}' is no collective of the network model", collective));
  const SystemRule* found = nullptr;
  for (const SystemRule& rule : kSystems) {
    if (found == nullptr && Contains(system, rule.words)) found = &rule;
  }
  if (found == nullptr) return skip(fmt::format("no constants for system '{}'", system));
  const auto* hardware = library.Find(std::string(found->cluster), "");
  if (hardware == nullptr) return skip(fmt::format("cluster {} is missing", found->cluster));
  const int per_node = (gpus + nodes - 1) / nodes;
  const topology::ClusterSpec& cluster = hardware->cluster;
  double node_nics = cluster.nic.bandwidth.value() * cluster.nic.per_node;
  double nic = node_nics / cluster.gpus_per_node;
  const double stated = NicBytesPerSecond(table.At(i, "nic"));
  const bool tray = Contains(table.At(i, "nic"), "tray");
  if (stated > 0.0 && !tray) nic = stated / cluster.gpus_per_node;
  const network::PortCapacities ports{.nvlink = cluster.nvlink.bandwidth,
                                      .nic = BytesPerSecond(nic)};
  const network::GroupPlacement placement{
      .ranks = gpus, .nodes = nodes, .ranks_per_node = per_node, .crosses_spine = nodes > 32};
  network::TransferShape shape;
  shape.collective.kind = *kind;
  shape.collective.bytes = Bytes(std::llround(bytes));
  const network::TransferCost cost = network::CostOf(shape, placement, hardware->collectives, ports,
                                                     network::Fidelity::kAlphaBeta);
  row->predicted_s = ToSeconds(cost.alone);
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
