#include "tools/validate/peer_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace quadrille::tools {
namespace {

constexpr std::string_view kColumns[] = {"system", "op", "shape_or_bytes", "dtype",
                                         "efficiency_or_time"};
constexpr std::string_view kStepOperation = "train_iteration.time_ms";

// calculon-ai/calculon caa4b11, run on the configurations of Table 5 of arXiv 2205.05198. DP 1.
struct CalculonRun {
  std::string_view model;
  bool selective;
  double seconds;
};
constexpr CalculonRun kCalculon[] = {
    {"Megatron-22B", false, 1.396},  {"Megatron-22B", true, 1.137},
    {"Megatron-175B", false, 18.03}, {"Megatron-175B", true, 13.64},
    {"Megatron-530B", false, 49.89}, {"Megatron-530B", true, 34.47},
    {"Megatron-1T", false, 90.08},   {"Megatron-1T", true, 66.04},
};

// "a=1;b=2" by name.
std::map<std::string, std::string> FieldsOf(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::size_t equals = text.find('=', at);
    if (equals < end)
      fields[text.substr(at, equals - at)] = text.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return fields;
}

MeasuredStep ReadStep(const CsvTable& table, std::size_t row, Diagnostics* problems) {
  MeasuredStep step;
  step.position = table.PositionOf(row);
  const auto fields = FieldsOf(table.At(row, "shape_or_bytes"));
  const auto whole = [&](const char* name) {
    const auto found = fields.find(name);
    const int value = found == fields.end() ? 0 : std::atoi(found->second.c_str());
    if (value > 0) return value;
    problems->push_back({table.PositionOf(row, table.ColumnOf("shape_or_bytes")),
                         fmt::format("'{}' is not a positive number, or missing", name)});
    return 1;
  };
  step.id = fmt::format("VTRAIN-{}", step.position.line);
  step.tier = "A";
  step.task = "pretrain";
  step.source_id = "VTRAIN";
  step.release = "2023";  // arXiv 2312.12391
  const auto parameters = fields.find("params_B");
  step.model = fmt::format("GPT-{}B", parameters == fields.end() ? "?" : parameters->second);
  step.family = "megatron-gpt";
  step.arch = "dense";
  step.layers = whole("L");
  step.hidden = whole("h");
  step.heads = step.kv_heads = whole("a");
  step.ffn_hidden = 4 * step.hidden;
  step.vocab = 51200;
  step.seq_len = whole("s");
  step.tied_embed = true;
  step.gpu = "A100-80GB";
  step.interconnect = "8-GPU NVSwitch node; 4x HDR InfiniBand, 800 Gb/s";
  step.gpus = whole("gpus");
  step.framework = table.At(row, "system").find("Megatron-DeepSpeed") == std::string::npos
                       ? "Megatron-LM"
                       : "Megatron-DeepSpeed";
  step.precision = "FP16";
  step.tp = whole("tp");
  step.pp = whole("pp");
  step.vp = 1;
  step.mbs = whole("mbs");
  step.gbs = whole("gbs");
  step.recompute = "full";
  step.schedule = "1F1B";
  step.time_s = std::atof(table.At(row, "efficiency_or_time").c_str()) * 1e-3;
  return step;
}

}  // namespace

bool IsPeerTable(const CsvTable& table) {
  return std::all_of(std::begin(kColumns), std::end(kColumns), [&](std::string_view name) {
    return table.ColumnOf(name) != CsvTable::kAbsent;
  });
}

Result<std::vector<MeasuredStep>> ReadPeerSteps(const CsvTable& table) {
  Diagnostics problems;
  std::vector<MeasuredStep> steps;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.At(row, "op") != kStepOperation) continue;
    steps.push_back(ReadStep(table, row, &problems));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return steps;
}

Result<std::vector<MeasuredStep>> ReadStepTable(const CsvTable& table) {
  return IsPeerTable(table) ? ReadPeerSteps(table) : ReadMeasuredSteps(table);
}

PeerPrediction PeerPredictionOf(const MeasuredStep& step) {
  if (step.peer_predicted_s > 0.0) return {step.peer, step.peer_predicted_s};
  constexpr std::string_view kQuote = "SimuMax own prediction ";
  const std::size_t at = step.notes.find(kQuote);
  if (at != std::string::npos) {
    const double milliseconds = std::atof(step.notes.c_str() + at + kQuote.size());
    if (milliseconds > 0.0) return {"SimuMax", milliseconds * 1e-3};
  }
  if (step.source_id != "KORT" || step.gpus != step.tp * step.pp) return {};
  for (const CalculonRun& run : kCalculon) {
    if (run.model != step.model || run.selective != (step.recompute.rfind("selective", 0) == 0)) {
      continue;
    }
    return {"Calculon", run.seconds};
  }
  return {};
}

}  // namespace quadrille::tools
