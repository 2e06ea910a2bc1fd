#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/measured_kernel.h"

namespace quadrille::tools {

Result<std::vector<IsolatedRow>> ValidateKernels(const CsvTable& table,
                                                 const scenario::LoadOptions& load) {
  HardwareLibrary library(load);
  const Result<std::vector<MeasuredKernel>> kernels = ReadKernelTable(table, library);
  if (!kernels) return tl::unexpected(kernels.error());
  std::vector<IsolatedRow> rows;
  for (const MeasuredKernel& kernel : *kernels) {
    IsolatedRow row;
    row.line = kernel.line;
    row.what = kernel.what;
    row.group = kernel.group;
    row.status = kernel.status;
    row.reason = kernel.reason;
    row.measured_s = kernel.measured_s;
    if (kernel.hardware != nullptr) row.generation = kernel.hardware->gpu.architecture;
    if (kernel.status == RowStatus::kOk) {
      row.predicted_s = PredictedSeconds(kernel, kernel.hardware->efficiency);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace quadrille::tools
