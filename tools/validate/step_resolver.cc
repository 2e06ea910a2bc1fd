// The run file is written section by section. Each section takes, in this order: what the row
// states; what its overlap and notes columns say in words; and, for virtual stages and
// recomputation, what sister rows and memory allow. The rest is left to the run's `stack:`, the
// software stack of its framework and release.
#include "tools/validate/step_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "schedules/registry.h"
#include "tools/validate/model_text.h"
#include "tools/validate/schedule_words.h"

namespace quadrille::tools {
namespace {

bool Contains(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

bool StartsWith(const std::string& text, std::string_view head) {
  return text.compare(0, head.size(), head) == 0;
}

const char* Flag(bool value) { return value ? "true" : "false"; }

// Writes keys of a section and notes those that the row does not state.
class Section {
 public:
  Section(std::string name, ResolvedStep* resolved) : name_(std::move(name)), resolved_(resolved) {
    resolved_->run_text += name_ + ":\n";
  }
  void Stated(std::string_view key, const std::string& value) {
    resolved_->run_text += fmt::format("  {}: {}\n", key, value);
  }
  void Stated(std::string_view key, int value) { Stated(key, fmt::format("{}", value)); }
  void Assumed(std::string_view key, const std::string& value, const std::string& reason) {
    Stated(key, value);
    resolved_->assumptions.push_back({fmt::format("{}.{}", name_, key), value, reason});
  }

 private:
  std::string name_;
  ResolvedStep* resolved_;
};

void WriteParallel(const MeasuredStep& step, int virtual_stages, ResolvedStep* resolved) {
  Section section("parallel", resolved);
  section.Stated("tensor", step.tp);
  section.Stated("pipeline", step.pp);
  section.Stated("virtual_stages", virtual_stages);
  section.Stated("context", step.cp);
  if (step.tp > 1 && !step.seq_parallel.empty()) {
    section.Stated("sequence", Flag(step.seq_parallel.front() == '1'));
  }
  if (step.experts > 0) {
    section.Stated("expert", step.ep);
    if (step.etp > 0) section.Stated("expert_tensor", step.etp);
  }
  if (step.zero_stage >= 0) {
    section.Stated("zero", step.zero_stage);
  } else if (!step.dist_opt.empty()) {
    section.Stated("zero", step.dist_opt.front() == '1' ? 1 : 0);
  }
  const int replicas = step.gpus / (step.tp * step.pp * step.cp);
  const int sharded = replicas * step.cp;
  if (step.fsdp_shard > 0 && step.fsdp_shard < sharded && step.zero_stage > 0) {
    section.Stated("shard_group", step.fsdp_shard);
  } else if (Contains(step.overlap, "zero1=8") && sharded > 8) {
    section.Stated("shard_group", 8);
  }
}

// "Interleaved" says how microbatches are dealt; whether expert layers of two of them run beside
// each other is a matter of the software stack.
void WriteSchedule(const MeasuredStep& step, int virtual_stages, ResolvedStep* resolved) {
  const ScheduleWords words = ReadScheduleWords(step.schedule);
  if (words.kind != ScheduleWords::Kind::kNamed && step.experts > 0 && virtual_stages > 1) return;
  Section section("schedule", resolved);
  if (words.kind == ScheduleWords::Kind::kNamed) return section.Stated("name", words.name);
  const std::string name = virtual_stages > 1 ? "interleaved" : "1f1b";
  if (words.kind == ScheduleWords::Kind::kMegatron || step.pp == 1) {
    return section.Stated("name", name);
  }
  section.Assumed("name", name, "not stated; Megatron's");
}

// Degrees that the row leaves blank are 1, which is worth saying where they could be more.
void NoteBlankDegrees(const MeasuredStep& step, ResolvedStep* resolved) {
  for (const std::string& column : step.blank_degrees) {
    if (column == "ep" && step.experts == 0) continue;
    const std::string key = column == "tp"   ? "tensor"
                            : column == "pp" ? "pipeline"
                            : column == "cp" ? "context"
                                             : "expert";
    resolved->assumptions.push_back({"parallel." + key, "1", "not stated"});
  }
}

// `recompute` of the row in a run file's words; `open` stands for a blank.
std::string RecomputeText(const MeasuredStep& step, const std::string& open,
                          ResolvedStep* resolved) {
  const std::string& said = step.recompute;
  const auto assume = [&](const std::string& value, const std::string& reason) {
    resolved->assumptions.push_back({"training.recompute", value, reason});
    return value;
  };
  if (StepResolver::RecomputeIsOpen(step)) {
    return assume(open, said.empty() ? "not stated; the least with which the step fits in memory"
                                     : "the recipe sets none, and the step fits in memory");
  }
  if (said == "none") return "none";
  if (said == "full") return "full";
  if (StartsWith(said, "full/block")) {
    return assume("none", fmt::format("'{}': only some layers are recomputed", said));
  }
  if (StartsWith(said, "selective op") || StartsWith(said, "selective layer")) {
    return assume("[mlp]", fmt::format("'{}' repeats half of the matrix products; the nearest that "
                                       "can be expressed",
                                       said));
  }
  if (StartsWith(said, "selective:")) {
    std::string modules = said.substr(std::string_view("selective:").size());
    modules = modules.substr(0, modules.find_first_of(" ?"));
    return "[" + modules + "]";
  }
  return assume("full", fmt::format("'{}' is not understood", said));
}

// The precision column with its first word in capitals: "bf16" as run files write it, too.
std::string PrecisionWords(const MeasuredStep& step) {
  std::string said = step.precision;
  for (std::size_t i = 0; i < said.size() && std::isalnum(static_cast<unsigned char>(said[i])) != 0;
       ++i) {
    said[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(said[i])));
  }
  return said;
}

// llm-foundry's first tables are in this mode of Composer, the later ones in DEFAULT.
bool IsPure(const MeasuredStep& step) { return Contains(step.overlap, "mode PURE"); }

void WriteTraining(const MeasuredStep& step, const SoftwareStack& stack, const std::string& recipe,
                   const std::string& recompute, ResolvedStep* resolved) {
  Section section("training", resolved);
  section.Stated("sequence_length", step.seq_len);
  section.Stated("micro_batch", step.mbs);
  section.Stated("global_batch", step.gbs);
  if (step.precision.empty()) {
    section.Assumed("precision", recipe, "not stated");
  } else if (const std::string words = PrecisionWords(step);
             StartsWith(words, "FP8") && !Contains(words, "CS") && !Contains(words, "MX")) {
    section.Assumed("precision", recipe, fmt::format("'{}' in {}", step.precision, stack.name));
  } else {
    section.Stated("precision", recipe);
  }
  section.Stated("recompute", RecomputeText(step, recompute, resolved));
  if (IsPure(step)) {
    section.Assumed("recompute_drops_unused", "false",
                    "mixed precision mode PURE: taken as measured before PyTorch 2.1, whose "
                    "checkpoints repeat a block to its end");
  }
}

// A layout string that deals the layers as evenly as they go, with embedding and loss counted as
// slots.
std::string EvenLayout(int layers, int modules, int stages) {
  const int slots = layers + 2 + modules;
  std::string text;
  int dealt = 0;
  int taken = 0;
  for (int stage = 0; stage < stages; ++stage) {
    // The first `slots % stages` stages take one more.
    const int count = slots / stages + (stage < slots % stages ? 1 : 0);
    if (stage > 0) text += '|';
    for (int i = 0; i < count; ++i, ++taken) {
      if (taken == 0) {
        text += 'E';
      } else if (dealt < layers) {
        text += 't';
        ++dealt;
      } else {
        text += taken < slots - 1 ? 'm' : 'L';
      }
    }
  }
  return text;
}

void WriteLayout(const MeasuredStep& step, int virtual_stages, ResolvedStep* resolved) {
  const schedules::ScheduleEntry* named =
      schedules::FindSchedule(ReadScheduleWords(step.schedule).name);
  const bool copies = named != nullptr && named->placement == schedules::Placement::kBidirectional;
  const int stages = step.pp * (copies ? 1 : virtual_stages);
  if (stages == 1) return;
  const bool even = step.layers % stages == 0;
  if (even && step.mtp_layers == 0) return;
  if (!even && (step.layers + 2) % stages == 0 && step.mtp_layers == 0) {
    Section section("layout", resolved);
    section.Assumed("embedding_counts_as_layer", "true",
                    fmt::format("{} layers do not divide over {} stages, {} do", step.layers,
                                stages, step.layers + 2));
    section.Stated("loss_counts_as_layer", "true");
    return;
  }
  Section section("layout", resolved);
  section.Assumed("pipeline_layout", EvenLayout(step.layers, step.mtp_layers, stages),
                  fmt::format("{} layers do not divide over {} stages: dealt as evenly as they go",
                              step.layers, stages));
}

void WriteKernels(const MeasuredStep& step, ResolvedStep* resolved) {
  if (step.cp == 1 || !Contains(step.notes, "CP comm type a2a")) return;
  Section section("kernels", resolved);
  section.Stated("context_algorithm", "ulysses");
}

// What the row says in words against its software stack.
void WriteOverlap(const MeasuredStep& step, const std::string& recipe, int virtual_stages,
                  ResolvedStep* resolved) {
  const std::string& words = step.overlap;
  const std::string reason = fmt::format("'{}'", words);
  const bool nothing = Contains(words, "all overlap disabled");
  const bool no_data =
      nothing || Contains(words, "no DP overlap") || Contains(words, "NOT overlapped");
  const bool no_tensor = nothing || Contains(words, "TP overlap off");
  const bool fp4 = recipe == "nvfp4" && step.tp > 1;
  const bool no_exchange = nothing && step.pp > 1 && virtual_stages > 1;
  if (!no_data && !no_tensor && !fp4 && !no_exchange) return;
  Section section("overlap", resolved);
  if (no_data) {
    section.Assumed("gradient_reduce", "false", reason);
    section.Assumed("parameter_gather", "false", reason);
  }
  if (no_tensor || fp4) {
    section.Assumed("tensor_parallel", "none",
                    no_tensor ? reason : "no recipe overlaps TP collectives in NVFP4");
  }
  if (no_exchange) section.Assumed("p2p", "blocking", reason);
}

void WriteRest(const MeasuredStep& step, ResolvedStep* resolved) {
  const bool narrow_gather = Contains(step.notes, "float8 all-gather");
  if (IsPure(step) || narrow_gather) {
    Section section("optimizer", resolved);
    if (IsPure(step)) section.Assumed("gradient_dtype", "bf16", "mixed precision mode PURE");
    if (narrow_gather) section.Stated("parameter_gather_dtype", "fp8");
  }
  if (Contains(step.overlap, "CUDA graphs") || Contains(step.notes, "with cuda_graph")) {
    Section section("host", resolved);
    section.Stated("cuda_graphs", "true");
    section.Assumed("fixed_step", "0 us", "CUDA graphs replay the step");
  }
}

// A job on racks of 18 trays takes the same number of trays in each, so that no group straddles two
// racks: the largest divisor of its trays up to 18 (NVIDIA-NeMo/Megatron-Bridge:
// scripts/performance, Slurm's --segment).
void LimitNvlinkDomain(const MeasuredStep& step, ResolvedStep* resolved) {
  constexpr int kTrayGpus = 4;
  constexpr int kRackTrays = 18;
  const bool rack = StartsWith(step.gpu, "GB200") || StartsWith(step.gpu, "GB300");
  const int trays = step.gpus / kTrayGpus;
  if (!rack || trays <= kRackTrays || !step.cluster.empty()) return;
  int segment = kRackTrays;
  while (trays % segment != 0) --segment;
  if (segment == kRackTrays) return;
  resolved->overrides.push_back(fmt::format("cluster.nvlink.domain_gpus={}", segment * kTrayGpus));
  resolved->assumptions.push_back(
      {"cluster.nvlink.domain_gpus", fmt::format("{}", segment * kTrayGpus),
       fmt::format("{} trays are taken as {} from each rack of {}", trays, segment, kRackTrays)});
}

}  // namespace

std::string ReasonToSkip(const MeasuredStep& step) {
  if (!step.task.empty() && step.task != "pretrain") {
    return fmt::format("'{}' is not a pre-training step", step.task);
  }
  if (StartsWith(step.arch, "hybrid"))
    return "hybrid models have Mamba layers, which are not modelled";
  if (step.time_s <= 0.0) return "no step time was measured";
  if (step.layers == 0 || step.hidden == 0 || step.heads == 0 || step.vocab == 0) {
    return step.model_hint.empty()
               ? "the model's dimensions are incomplete"
               : fmt::format("the model's dimensions are not stated, and {}", step.model_hint);
  }
  if (step.experts > 0 && step.topk == 0 && step.shipped_model.empty()) {
    return "experts are stated, but not how many a token takes (topk)";
  }
  if (step.seq_len == 0 || step.mbs == 0 || step.gbs == 0 || step.gpus == 0) {
    return "sequence length, batch or number of GPUs is not stated";
  }
  if (!step.task.empty() || step.arch.empty() || step.arch == "dense" || step.arch == "moe") {
    return "";
  }
  return fmt::format("architecture '{}' is not modelled", step.arch);
}

std::string RecipeOf(const MeasuredStep& step, const SoftwareStack& stack) {
  const std::string said = PrecisionWords(step);
  if (said.empty() || StartsWith(said, "BF16")) return "bf16";
  if (StartsWith(said, "FP16")) return "fp16";
  if (StartsWith(said, "FP32")) return "fp32";
  if (StartsWith(said, "MXFP8") || StartsWith(said, "FP8-MX")) return "mxfp8";
  if (StartsWith(said, "NVFP4")) return "nvfp4";
  if (StartsWith(said, "FP8-CS") || StartsWith(said, "FP8 tensorwise")) return "fp8-current";
  if (Contains(said, "block") || Contains(said, "32x32") || StartsWith(said, "FP8 rowwise")) {
    return "fp8-block";
  }
  if (StartsWith(said, "FP8 delayed")) return "fp8-delayed";
  if (StartsWith(said, "FP8")) return stack.fp8;
  return "";
}

bool StepResolver::RecomputeIsOpen(const MeasuredStep& step) {
  return step.recompute.empty() || step.recompute == "none?";
}

// Megatron's tables often leave virtual stages out. A row of the same model with as many pipeline
// ranks that states them is the best witness: first of the same source and GPU.
const MeasuredStep* StepResolver::SisterWithVirtualStages(const MeasuredStep& step) const {
  const MeasuredStep* best = nullptr;
  int best_score = -1;
  for (const MeasuredStep& other : steps_) {
    if (other.model != step.model || other.pp != step.pp || other.vp <= 1) continue;
    if (other.layers != step.layers) continue;
    const int score = (other.source_id == step.source_id ? 2 : 0) + (other.gpu == step.gpu ? 1 : 0);
    if (score <= best_score) continue;
    best_score = score;
    best = &other;
  }
  return best;
}

int StepResolver::VirtualStagesOf(const MeasuredStep& step, ResolvedStep* resolved) const {
  if (step.pp == 1) return 1;
  if (step.vp > 0) return step.vp;
  const ScheduleWords words = ReadScheduleWords(step.schedule);
  if (words.kind == ScheduleWords::Kind::kNamed) {
    return schedules::FindSchedule(words.name)->default_virtual_stages;
  }
  const auto assume = [&](int value, const std::string& reason) {
    resolved->assumptions.push_back({"parallel.virtual_stages", fmt::format("{}", value), reason});
    return value;
  };
  const bool open = step.schedule.empty() || Contains(step.schedule, "?") ||
                    step.framework.find("Megatron-Core") != std::string::npos;
  if (open) {
    if (const MeasuredStep* sister = SisterWithVirtualStages(step)) {
      return assume(sister->vp, fmt::format("not stated; as in {}, of the same model and pipeline",
                                            sister->id));
    }
  }
  if (StartsWith(step.schedule, "interleaved")) {
    for (int stages = 2; stages <= step.layers / step.pp; ++stages) {
      if (step.layers % (step.pp * stages) == 0) {
        return assume(stages, "not stated; the fewest that the layers allow");
      }
    }
  }
  return assume(1, "not stated");
}

Result<ResolvedStep> StepResolver::Resolve(const MeasuredStep& step,
                                           const std::string& recompute) const {
  const std::string skip = ReasonToSkip(step);
  if (!skip.empty()) return Error(skip);
  const bool open = step.stack.empty() && step.framework.empty();
  const SoftwareStack* stack = open                 ? FindStack(stacks_, kDefaultStack)
                               : step.stack.empty() ? StackOf(stacks_, step.framework, step.release)
                                                    : FindStack(stacks_, step.stack);
  if (stack == nullptr) {
    return Error(step.stack.empty() && !open
                     ? fmt::format("no software stack lists framework '{}' of '{}'; name one in a "
                                   "column 'stack'",
                                   step.framework, step.release)
                     : fmt::format("there is no software stack named '{}'{}",
                                   open ? kDefaultStack : step.stack,
                                   NearestStack(stacks_, step.stack)));
  }
  const Result<HardwareChoice> hardware = ChooseHardware(step);
  if (!hardware) return tl::unexpected(hardware.error());
  const std::string recipe = RecipeOf(step, *stack);
  if (recipe.empty()) return Error(fmt::format("precision '{}' is not known", step.precision));
  if (step.pp > 1 && ReadScheduleWords(step.schedule).kind == ScheduleWords::Kind::kUnknown) {
    return Error(
        fmt::format("schedule '{}' is not known; `quadrille schedules` lists them", step.schedule));
  }

  ResolvedStep resolved;
  resolved.stack = stack->name;
  if (open) {
    resolved.assumptions.push_back(
        {"stack", stack->name, "neither a framework nor a stack is stated; the default"});
  }
  resolved.run_text = ModelText(step, &resolved.assumptions);
  resolved.run_text += fmt::format("cluster: {}\ngpus: {}\n", hardware->cluster, step.gpus);
  if (step.cluster.empty()) {
    resolved.assumptions.push_back({"cluster", hardware->cluster, hardware->reason});
  }
  if (!hardware->gpu.empty()) resolved.overrides.push_back("cluster.gpu=" + hardware->gpu);
  LimitNvlinkDomain(step, &resolved);
  resolved.run_text += fmt::format("stack: {}\n", stack->name);
  const int virtual_stages = VirtualStagesOf(step, &resolved);
  NoteBlankDegrees(step, &resolved);
  WriteParallel(step, virtual_stages, &resolved);
  WriteSchedule(step, virtual_stages, &resolved);
  WriteTraining(step, *stack, recipe, recompute, &resolved);
  WriteLayout(step, virtual_stages, &resolved);
  WriteKernels(step, &resolved);
  WriteOverlap(step, recipe, virtual_stages, &resolved);
  WriteRest(step, &resolved);
  return resolved;
}

}  // namespace quadrille::tools
