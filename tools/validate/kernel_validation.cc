#include <variant>

#include "sim/compute/gemm_residuals.h"
#include "tools/validate/hardware_library.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/measured_kernel.h"

namespace quadrille::tools {
namespace {

// What the tables of its GPU make of a GEMM's predicted time, as in a step. A shape that the GPU's
// own table holds is predicted as one that no table holds.
void Correct(const GemmQuestion& gemm, const scenario::Scenario& hardware, IsolatedRow* row) {
  if (hardware.compute_fidelity < compute::Fidelity::kTable) return;
  const compute::GemmResiduals& residuals = *hardware.efficiency.gemm_residuals;
  row->left_out = residuals.Holds(gemm.shape, gemm.section);
  row->predicted_s *=
      residuals.Factor(gemm.shape, gemm.section,
                       row->left_out ? compute::LeaveOut::kEverybody : compute::LeaveOut::kNothing);
}

}  // namespace

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
      if (const auto* gemm = std::get_if<GemmQuestion>(&kernel.question)) {
        Correct(*gemm, *kernel.hardware, &row);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace quadrille::tools
