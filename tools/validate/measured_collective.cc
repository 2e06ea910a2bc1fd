#include "tools/validate/measured_collective.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "tools/validate/nccl_tests_output.h"

namespace quadrille::tools {
namespace {

bool Contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

// NICs of a node as "8x400G IB" or "4x HDR200 IB" names them; none when it says neither.
void ReadNics(const std::string& text, MeasuredCollective* row) {
  // A tray's NICs are counted per tray, which is no node of a rack.
  if (Contains(text, "tray")) return;
  const std::size_t times = text.find('x');
  if (times == std::string::npos || times == 0) return;
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
  row->nics = digits(0);
  row->nic_bandwidth = BytesPerSecond(rate * 1e9 / 8.0);
}

}  // namespace

std::optional<model::CollectiveKind> CollectiveNamed(std::string_view name) {
  if (name.starts_with("all_reduce")) return model::CollectiveKind::kAllReduce;
  if (name.starts_with("all_gather")) return model::CollectiveKind::kAllGather;
  if (name.starts_with("reduce_scatter")) return model::CollectiveKind::kReduceScatter;
  if (name.starts_with("alltoall")) return model::CollectiveKind::kAllToAll;
  if (name.starts_with("sendrecv")) return model::CollectiveKind::kSendReceive;
  return std::nullopt;
}

Result<std::vector<MeasuredCollective>> ReadCollectiveTable(const CsvTable& table) {
  Diagnostics problems;
  for (std::string_view name : {"system", "gpus", "nodes", "collective", "bytes", "time_us"}) {
    if (table.ColumnOf(name) != CsvTable::kAbsent) continue;
    problems.push_back({{table.file(), 1, 0}, fmt::format("there is no column '{}'", name)});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  CellReader cells(table, &problems);
  std::vector<MeasuredCollective> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    MeasuredCollective row;
    row.line = table.PositionOf(i).line;
    row.system = table.At(i, "system");
    row.cluster = table.At(i, "cluster");
    row.collective = table.At(i, "collective");
    row.kind = CollectiveNamed(row.collective);
    if (Contains(row.collective, "[ring]")) row.algorithm = network::AllReduceAlgorithm::kRing;
    if (Contains(row.collective, "tree]")) row.algorithm = network::AllReduceAlgorithm::kTree;
    row.tuned = Contains(row.collective, "[tuned");
    row.gpus = cells.Whole(i, "gpus", 1, 1);
    row.nodes = cells.Whole(i, "nodes", 1, 1);
    ReadNics(table.At(i, "nic"), &row);
    row.bytes = Bytes(std::llround(cells.Number(i, "bytes", 0.0, 0.0)));
    row.measured_s = cells.Number(i, "time_us", 0.0, 0.0) * 1e-6;
    row.missing = table.FirstBlank(i, {"gpus", "nodes", "bytes"});
    rows.push_back(std::move(row));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return rows;
}

Result<std::vector<MeasuredCollective>> ReadCollectives(std::string_view text,
                                                        const std::string& file,
                                                        const std::string& cluster) {
  Result<std::vector<MeasuredCollective>> rows;
  if (IsNcclTestsOutput(text)) {
    rows = ReadNcclTestsOutput(text, file);
  } else {
    const Result<CsvTable> table = CsvTable::Parse(text, file);
    if (!table) return tl::unexpected(table.error());
    rows = ReadCollectiveTable(*table);
  }
  if (!rows) return rows;
  for (MeasuredCollective& row : *rows) {
    if (row.cluster.empty()) row.cluster = cluster;
  }
  return rows;
}

}  // namespace quadrille::tools
