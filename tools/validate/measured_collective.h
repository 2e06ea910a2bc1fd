// A collective as it was measured: a row of a table, or of what nccl-tests printed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/network/collective_constants.h"
#include "tools/validate/csv_table.h"

namespace quadrille::tools {

struct MeasuredCollective {
  int line = 0;
  std::string system;      // as the table calls it, or the GPU's name in the output of nccl-tests
  std::string cluster;     // whose constants price it; blank: as `system` says
  std::string collective;  // as written: "all_reduce[ring]"
  std::optional<model::CollectiveKind> kind;  // none: no collective of the network model
  // Held to one algorithm by what stands in brackets: "[ring]", "[tree]", "[nvlstree]".
  network::AllReduceAlgorithm algorithm = network::AllReduceAlgorithm::kFastest;
  bool tuned = false;  // "[tuned ...]": not by NCCL's defaults
  int gpus = 1;
  int nodes = 1;  // NVLink domains
  // NICs of a node and the rate of each; none: as the cluster says.
  double nics = 0.0;
  BytesPerSecond nic_bandwidth;
  Bytes bytes;  // S, as nccl-tests counts it
  double measured_s = 0.0;
  std::string missing;  // a column that the row leaves blank, without which it cannot be priced
};

// The collective that a name begins with, in nccl-tests' spelling: "all_reduce_perf".
[[nodiscard]] std::optional<model::CollectiveKind> CollectiveNamed(std::string_view name);

// Columns system, gpus, nodes, collective, bytes, time_us, and where they are wanted nic and
// cluster. Errors: no such column; malformed cells.
[[nodiscard]] Result<std::vector<MeasuredCollective>> ReadCollectiveTable(const CsvTable& table);

// What a file holds: such a table, or the output of one run of nccl-tests. `cluster`, unless empty,
// is of the rows that name none.
[[nodiscard]] Result<std::vector<MeasuredCollective>> ReadCollectives(std::string_view text,
                                                                      const std::string& file,
                                                                      const std::string& cluster);

}  // namespace quadrille::tools
