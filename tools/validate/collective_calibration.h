// Fits constants of the collective cost law to collectives measured alone: those of one cluster to
// its own measurements, or those of a table of constants to all systems that it prices.
//
// Few rows determine few constants. Unless told which, a fit frees one after the other: of all that
// the rows depend on the one that predicts left-out sizes best (or, where none does, the pair), as
// long as that lowers their loss by a twentieth and the rows are more than twice as many as the
// constants. What is minimised is a robust mean of |log(predicted / measured)|, in which a system
// weighs as the square root of its rows.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario_loader.h"
#include "tools/validate/collective_constant_table.h"
#include "tools/validate/measured_collective.h"

namespace quadrille::tools {

// Whose constants are fitted.
struct CollectiveOwner {
  std::string name;
  bool is_table = false;  // of scenarios/clusters/collectives; else of scenarios/clusters
};

struct CollectiveCalibrationOptions {
  std::vector<std::string> constants;  // keys or laws to free, in this order; empty: chosen
  Bytes smallest{1'000'000};           // of the rows that are fitted to
  int folds = 0;                       // of the sizes; 0: each size is left out by itself
  int threads = 0;
};

struct FreedConstant {
  const CollectiveConstant* constant = nullptr;
  double before = 0.0;
  double value = 0.0;
  double smallest = 0.0;  // over the folds
  double largest = 0.0;
  std::size_t rows = 0;  // that depend on it
};

struct KeptConstant {
  std::string key;
  std::string reason;
};

// Errors are predicted / measured - 1, of the rows in their order.
struct CollectiveFit {
  CollectiveOwner owner;
  std::string table;  // of constants that the owner's rest upon
  std::vector<const MeasuredCollective*> rows;
  std::vector<FreedConstant> freed;
  std::vector<KeptConstant> kept;          // that rows depend on, and why they were not freed
  network::CollectiveConstants constants;  // the owner's, as fitted
  std::vector<double> errors_before;
  std::vector<double> errors_after;
  // By constants fitted without the row's size, or without its system. Empty where all are of one.
  std::vector<double> errors_without_size;
  std::vector<double> errors_without_system;
};

// Clusters that price one of `rows`, in the order of their names: the owners unless told others.
[[nodiscard]] std::vector<CollectiveOwner> OwnersOf(const std::vector<MeasuredCollective>& rows);

// Fits to those of `rows` that `owner` prices: of a cluster, its own; of a table, all whose cluster
// rests upon the table and that no constant of that cluster's own changes. Nothing is freed where
// too few rows are left. Errors: no cluster or table of that name, or one that does not load.
[[nodiscard]] Result<CollectiveFit> FitCollectives(const std::vector<MeasuredCollective>& rows,
                                                   const CollectiveOwner& owner,
                                                   const CollectiveCalibrationOptions& options,
                                                   const scenario::LoadOptions& load);

// The freed constants as an overlay that a run can include, each with its kind and source.
[[nodiscard]] std::string CollectiveOverlayText(const std::vector<CollectiveFit>& fits,
                                                const std::string& source);

}  // namespace quadrille::tools
