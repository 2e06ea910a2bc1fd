#include "tools/validate/measured_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/validate/gpu_names.h"

namespace quadrille::tools {
namespace {

constexpr std::string_view kRequired[] = {"id",     "seq_len", "gpu",   "gpus", "layers",
                                          "hidden", "heads",   "vocab", "mbs",  "gbs"};
// Not required of a table that names models.
constexpr std::string_view kDimensions[] = {"layers", "hidden", "heads", "vocab"};

struct TextColumn {
  std::string_view name;
  std::string MeasuredStep::*field;
};
constexpr TextColumn kTexts[] = {
    {"id", &MeasuredStep::id},
    {"tier", &MeasuredStep::tier},
    {"task", &MeasuredStep::task},
    {"source_id", &MeasuredStep::source_id},
    {"date_or_release", &MeasuredStep::release},
    {"split_group", &MeasuredStep::split_group},
    {"notes", &MeasuredStep::notes},
    {"consistency", &MeasuredStep::consistency},
    {"dup_of", &MeasuredStep::dup_of},
    {"model", &MeasuredStep::model},
    {"family", &MeasuredStep::family},
    {"arch", &MeasuredStep::arch},
    {"attn_variant", &MeasuredStep::attn_variant},
    {"gpu", &MeasuredStep::gpu},
    {"interconnect", &MeasuredStep::interconnect},
    {"cluster", &MeasuredStep::cluster},
    {"framework", &MeasuredStep::framework},
    {"stack", &MeasuredStep::stack},
    {"precision", &MeasuredStep::precision},
    {"recompute", &MeasuredStep::recompute},
    {"seq_parallel", &MeasuredStep::seq_parallel},
    {"dist_opt", &MeasuredStep::dist_opt},
    {"schedule", &MeasuredStep::schedule},
    {"overlap", &MeasuredStep::overlap},
    {"mem_kind", &MeasuredStep::memory_kind},
    {"peer", &MeasuredStep::peer},
};

struct WholeColumn {
  std::string_view name;
  int MeasuredStep::*field;
  int blank;
  int least;
};
constexpr WholeColumn kWholes[] = {
    {"layers", &MeasuredStep::layers, 0, 1},
    {"dense_layers", &MeasuredStep::dense_layers, 0, 0},
    {"hidden", &MeasuredStep::hidden, 0, 1},
    {"heads", &MeasuredStep::heads, 0, 1},
    {"kv_heads", &MeasuredStep::kv_heads, 0, 1},
    {"head_dim", &MeasuredStep::head_dim, 0, 1},
    {"ffn_hidden", &MeasuredStep::ffn_hidden, 0, 1},
    {"vocab", &MeasuredStep::vocab, 0, 1},
    {"seq_len", &MeasuredStep::seq_len, 0, 1},
    {"experts", &MeasuredStep::experts, 0, 0},
    {"topk", &MeasuredStep::topk, 0, 0},
    {"shared_ffn", &MeasuredStep::shared_ffn, 0, 0},
    {"expert_ffn", &MeasuredStep::expert_ffn, 0, 0},
    {"mla_q_lora", &MeasuredStep::mla_q_lora, 0, 0},
    {"mla_kv_lora", &MeasuredStep::mla_kv_lora, 0, 0},
    {"mla_qk_nope", &MeasuredStep::mla_qk_nope, 0, 0},
    {"mla_qk_rope", &MeasuredStep::mla_qk_rope, 0, 0},
    {"mla_v", &MeasuredStep::mla_v, 0, 0},
    {"mtp_layers", &MeasuredStep::mtp_layers, 0, 0},
    {"gpus", &MeasuredStep::gpus, 0, 1},
    {"tp", &MeasuredStep::tp, 1, 1},
    {"pp", &MeasuredStep::pp, 1, 1},
    {"vp", &MeasuredStep::vp, 0, 1},
    {"cp", &MeasuredStep::cp, 1, 1},
    {"ep", &MeasuredStep::ep, 1, 1},
    {"etp", &MeasuredStep::etp, 0, 1},
    {"mbs", &MeasuredStep::mbs, 0, 1},
    {"gbs", &MeasuredStep::gbs, 0, 1},
    {"fsdp_shard", &MeasuredStep::fsdp_shard, 0, 1},
};

struct NumberColumn {
  std::string_view name;
  double MeasuredStep::*field;
};
constexpr NumberColumn kNumbers[] = {
    {"mem_gb", &MeasuredStep::memory_gb},    {"t_f_ms", &MeasuredStep::t_f_ms},
    {"t_b_ms", &MeasuredStep::t_b_ms},       {"t_w_ms", &MeasuredStep::t_w_ms},
    {"t_comm_ms", &MeasuredStep::t_comm_ms}, {"peer_predicted_s", &MeasuredStep::peer_predicted_s},
};

// The ZeRO stage at the head of a cell: "3", or prose that starts otherwise (-1).
int ZeroStageOf(const std::string& text) {
  const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '3';
  return digit && (text.size() == 1 || text[1] == '.' || text[1] == '?') ? text.front() - '0' : -1;
}

// A number, but none of 0 to 3.
bool IsWrongZeroStage(const std::string& text) {
  const bool number = !text.empty() && text.find_first_not_of("+-.0123456789") == std::string::npos;
  return number && ZeroStageOf(text) < 0;
}

MeasuredStep ReadRow(const CsvTable& table, std::size_t row, CellReader& cells) {
  MeasuredStep step;
  step.position = table.PositionOf(row);
  for (const TextColumn& column : kTexts) step.*column.field = table.At(row, column.name);
  for (const WholeColumn& column : kWholes) {
    step.*column.field = cells.Whole(row, column.name, column.blank, column.least);
  }
  for (const std::string_view column : {"tp", "pp", "cp", "ep"}) {
    if (table.At(row, column).empty()) step.blank_degrees.emplace_back(column);
  }
  for (const NumberColumn& column : kNumbers) {
    step.*column.field = cells.Number(row, column.name, 0.0, 0.0);
  }
  step.gated_mlp = cells.Whole(row, "gated_mlp", 0, 0) != 0;
  step.tied_embed = cells.Whole(row, "tied_embed", 0, 0) != 0;
  step.zero_stage = ZeroStageOf(table.At(row, "zero_stage"));
  const double calculated = cells.Number(row, "iter_time_calc_s", 0.0, 0.0);
  step.time_s = cells.Number(row, "iter_time_s", calculated, 0.0);
  if (step.source_id.empty()) step.source_id = "own";
  std::string unmarked = step.gpu;
  while (!unmarked.empty() && (unmarked.back() == '?' || unmarked.back() == ' ')) {
    unmarked.pop_back();
  }
  const GpuName* gpu = FindGpu(unmarked);
  if (gpu != nullptr && gpu->measured != unmarked) step.gpu = gpu->measured;
  return step;
}

}  // namespace

Result<std::vector<MeasuredStep>> ReadMeasuredSteps(const CsvTable& table) {
  Diagnostics problems;
  for (std::string_view name : kRequired) {
    if (table.ColumnOf(name) != CsvTable::kAbsent) continue;
    const bool dimension =
        std::find(std::begin(kDimensions), std::end(kDimensions), name) != std::end(kDimensions);
    if (dimension && table.ColumnOf("model") != CsvTable::kAbsent) continue;
    problems.push_back({{table.file(), 1, 0}, fmt::format("there is no column '{}'", name)});
  }
  if (table.ColumnOf("iter_time_s") == CsvTable::kAbsent &&
      table.ColumnOf("iter_time_calc_s") == CsvTable::kAbsent) {
    problems.push_back(
        {{table.file(), 1, 0}, "there is no column 'iter_time_s' or 'iter_time_calc_s'"});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  CellReader cells(table, &problems);
  std::vector<MeasuredStep> steps;
  std::set<std::string> ids;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    steps.push_back(ReadRow(table, row, cells));
    if (const std::string& zero = table.At(row, "zero_stage"); IsWrongZeroStage(zero)) {
      problems.push_back({table.PositionOf(row, table.ColumnOf("zero_stage")),
                          fmt::format("zero_stage '{}' is none of 0, 1, 2 and 3", zero)});
    }
    const std::string& id = steps.back().id;
    if (id.empty()) {
      problems.push_back({table.PositionOf(row), "id is blank"});
    } else if (!ids.insert(id).second) {
      problems.push_back({table.PositionOf(row), fmt::format("id '{}' appears twice", id)});
    }
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return steps;
}

}  // namespace quadrille::tools
