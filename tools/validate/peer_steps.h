// What other simulators published on the rows that are validated, and the tables of theirs that
// hold measured steps.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/validate/csv_table.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {

// True for a table with the columns system, op, shape_or_bytes, dtype, efficiency_or_time, in which
// rows with the operation train_iteration.time_ms are measured steps of vTrain
// (VIA-Research/vTrain:data/ground_truth_multi.csv).
[[nodiscard]] bool IsPeerTable(const CsvTable& table);

// Those rows as measured steps with ids "VTRAIN-<line>"; the others are left out. A row states its
// sizes as "params_B=3.6;gpus=64;gbs=512;...". What it leaves open is what arXiv 2312.12391,
// section 5, says of the machine and of the runs: Megatron-DeepSpeed, FP16, full recomputation, the
// GPT-3 vocabulary, DGX A100 nodes with four HDR adapters (recalled). Errors: a size is missing or
// no number.
[[nodiscard]] Result<std::vector<MeasuredStep>> ReadPeerSteps(const CsvTable& table);

// The measured steps of a table of either form.
[[nodiscard]] Result<std::vector<MeasuredStep>> ReadStepTable(const CsvTable& table);

// A prediction of a row by another simulator, 0 s when there is none.
struct PeerPrediction {
  std::string name;
  double seconds = 0.0;
};

// From the row's columns `peer` and `peer_predicted_s`; else what its notes quote ("SimuMax own
// prediction 255.71 ms"); else Calculon's figure for a run of Korthikanti 2022.
[[nodiscard]] PeerPrediction PeerPredictionOf(const MeasuredStep& step);

}  // namespace quadrille::tools
