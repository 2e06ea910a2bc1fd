// A published or own measurement of a training step: one row of a CSV file, typed but not yet
// interpreted.
//
// Columns are those of the header below by name; all but the required ones may be absent or blank.
// A trailing '?' marks a value that its collector inferred; it is read like any other, and the mark
// is kept where it matters (`schedule`, `recompute`).
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/validate/csv_table.h"

namespace quadrille::tools {

// 0, or an empty text, is a blank cell.
struct MeasuredStep {
  SourcePosition position;
  std::string id;         // required, unique
  std::string tier;       // A to D: how completely the row describes its run; blank counts as A
  std::string task;       // "pretrain" or blank; others are not training steps
  std::string source_id;  // who measured; blank: "own"
  std::string release;    // date_or_release
  std::string split_group;
  std::string notes;
  std::string consistency;  // "INCONSISTENT..." rows contradict themselves
  std::string dup_of;       // the row that this one repeats

  std::string model;
  std::string shipped_model;  // the description that stands for dimensions (shipped_model.h)
  std::string model_hint;     // why none does, of a row that states no dimensions
  std::string family;
  std::string arch;  // dense, moe, ...
  std::string attn_variant;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn_hidden = 0, vocab = 0;
  int dense_layers = 0, experts = 0, topk = 0, shared_ffn = 0, expert_ffn = 0;
  int mla_q_lora = 0, mla_kv_lora = 0, mla_qk_nope = 0, mla_qk_rope = 0, mla_v = 0;
  int mtp_layers = 0;
  bool gated_mlp = false;
  bool tied_embed = false;
  int seq_len = 0;  // required

  std::string gpu;  // required; a spelling that gpu_names.h knows becomes its name there
  std::string interconnect;
  std::string cluster;  // name of a cluster description; blank: inferred from the two above
  int gpus = 0;         // required

  std::string framework;
  std::string stack;  // name of a software stack; blank: inferred from framework and release, the
                      // default of step_resolver.h where there is no framework either
  std::string precision;
  int tp = 1, pp = 1, vp = 0, cp = 1, ep = 1, etp = 0;
  std::vector<std::string> blank_degrees;  // of tp, pp, cp and ep, which are 1 then
  int mbs = 0, gbs = 0;
  std::string recompute;
  std::string seq_parallel;  // "0", "1" or blank
  std::string dist_opt;      // likewise
  int zero_stage = -1;       // -1: blank
  int fsdp_shard = 0;
  std::string schedule;
  std::string overlap;

  double time_s = 0.0;      // iter_time_s, else iter_time_calc_s; 0: not measured
  double memory_gb = 0.0;   // mem_gb
  std::string memory_kind;  // mem_kind
  std::string peer;         // another simulator that published a prediction of this row
  double peer_predicted_s = 0.0;
  double t_f_ms = 0.0, t_b_ms = 0.0, t_w_ms = 0.0, t_comm_ms = 0.0;  // profiled costs of a stage
};

// Every row of `table`. Errors, all at once: a required column is absent (id, seq_len, gpu, gpus,
// mbs, gbs, iter_time_s or iter_time_calc_s, and layers, hidden, heads, vocab unless there is a
// model), an id is blank or repeated, a number is none.
[[nodiscard]] Result<std::vector<MeasuredStep>> ReadMeasuredSteps(const CsvTable& table);

}  // namespace quadrille::tools
