// A measured collective is priced alone, as nccl-tests runs it, with the constants of its site or
// GPU generation and the NICs that the row names.
#include <fmt/format.h>

#include "tools/validate/collective_pricing.h"
#include "tools/validate/gpu_names.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"

namespace quadrille::tools {
namespace {

void Predict(const MeasuredCollective& measured, HardwareLibrary& library, IsolatedRow* row) {
  row->line = measured.line;
  row->measured_s = measured.measured_s;
  row->bytes = static_cast<double>(measured.bytes.value());
  row->what =
      fmt::format("{} of {:.0f} bytes on {} GPUs", measured.collective, row->bytes, measured.gpus);
  row->group =
      fmt::format("{}, {}", measured.system, row->bytes >= 1e6 ? "1 MB and more" : "below 1 MB");
  const auto skip = [&](std::string reason) { row->reason = std::move(reason); };
  if (!measured.missing.empty()) return skip(fmt::format("{} is not stated", measured.missing));
  if (!measured.kind) {
    return skip(fmt::format("'{}' is no collective of the network model", measured.collective));
  }
  const CollectiveCluster cluster = ClusterOf(measured);
  if (cluster.name.empty()) {
    return skip(fmt::format("system '{}' names no GPU that has constants{}", measured.system,
                            KnownGpus(measured.system)));
  }
  const auto* hardware = library.Find(cluster.name, "");
  if (hardware == nullptr) return skip(fmt::format("cluster {} is missing", cluster.name));
  row->generation = hardware->gpu.architecture;
  row->predicted_s = CollectiveSeconds(measured, hardware->cluster, hardware->collectives);
  if (!cluster.of_class.empty()) {
    const auto* of_class = library.Find(cluster.of_class, "");
    if (of_class != nullptr) {
      row->of_class_s = CollectiveSeconds(measured, of_class->cluster, of_class->collectives);
    }
  }
  if (row->measured_s <= 0.0) return skip("no time was measured");
  row->status = RowStatus::kOk;
}

}  // namespace

std::vector<IsolatedRow> ValidateCollectives(const std::vector<MeasuredCollective>& measured,
                                             const scenario::LoadOptions& load) {
  HardwareLibrary library(load);
  std::vector<IsolatedRow> rows(measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) Predict(measured[i], library, &rows[i]);
  return rows;
}

}  // namespace quadrille::tools
