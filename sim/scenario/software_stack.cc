// A stack speaks through the run's own keys: what it chooses is added to the tree before any
// section is read, so that the sections, their checks and their messages know nothing of stacks.
#include "sim/scenario/software_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "sim/scenario/sourced.h"

namespace quadrille::scenario {
namespace {

constexpr std::string_view kGenerations[] = {"volta", "ampere", "hopper", "blackwell"};

void ReadFrameworks(MapReader& reader, SoftwareStack* stack) {
  const YamlValue* list = reader.Find("frameworks");
  if (list == nullptr) return;
  if (!list->is_sequence()) return reader.Error("frameworks", "expected a list");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    MapReader item(&list->items[i], fmt::format("frameworks.{}", i), &reader.findings());
    FrameworkMatch match;
    item.Read("name", &match.framework);
    item.Read("since", &match.since, {0.0, 1e6});
    item.Read("before", &match.before, {0.0, 1e6});
    item.Require({"name"});
    item.Finish();
    stack->frameworks.push_back(match);
  }
}

const YamlValue* ValueAt(const YamlValue& root, std::string_view section, std::string_view key) {
  const YamlEntry* entry = root.Find(section);
  if (entry == nullptr || !entry->value.is_map()) return nullptr;
  const YamlEntry* found = entry->value.Find(key);
  return found == nullptr ? nullptr : &found->value;
}

std::string TextAt(const YamlValue& root, std::string_view section, std::string_view key) {
  const YamlValue* value = ValueAt(root, section, key);
  return value == nullptr ? "" : value->text;
}

// A degree of `parallel`, 1 when it is absent or no number; the section itself reports that.
int DegreeAt(const YamlValue& root, std::string_view key) {
  return std::max(1, std::atoi(TextAt(root, "parallel", key).c_str()));
}

// Adds what a stack chooses to the sections of a run.
class StackWriter {
 public:
  StackWriter(YamlValue* root, SourcePosition position, const SoftwareStack& stack,
              Findings* findings)
      : root_(root), position_(std::move(position)), stack_(stack), findings_(findings) {}

  void WriteAll() {
    WriteParallel();
    WriteTraining();
    WriteExperts();
    WriteKernels();
    WriteOptimizer();
    WriteOverlap();
    WriteHost();
  }

 private:
  [[nodiscard]] bool Given(std::string_view section, std::string_view key) const {
    return ValueAt(*root_, section, key) != nullptr;
  }

  // Where the stack's choice for a key comes from: its file's word on a constant, if any.
  [[nodiscard]] std::string Reason(std::string_view constant) const {
    std::string reason = fmt::format("software stack {}", stack_.name);
    for (const SourceNote& note : stack_.sources) {
      if (note.constant != constant) continue;
      return fmt::format("{}; {}: {}", reason, note.kind, note.source);
    }
    return reason;
  }

  void Add(std::string_view section, std::string_view key, std::string text) {
    Add(section, key, key, std::move(text));
  }
  // `constant` is what the stack's file calls it.
  void Add(std::string_view section, std::string_view key, std::string_view constant,
           std::string text) {
    if (Given(section, key)) return;
    YamlEntry* entry = root_->Find(section);
    if (entry == nullptr) {
      YamlValue map;
      map.kind = YamlValue::Kind::kMap;
      map.position = position_;
      root_->entries.push_back({std::string(section), position_, std::move(map)});
      entry = &root_->entries.back();
    }
    if (!entry->value.is_map()) return;  // the section's reader reports it
    findings_->Assume(fmt::format("{}.{}", section, key), text, Reason(constant));
    YamlValue value;
    value.kind = YamlValue::Kind::kScalar;
    value.position = position_;
    value.text = std::move(text);
    entry->value.entries.push_back({std::string(key), position_, std::move(value)});
  }
  void Add(std::string_view section, std::string_view key, bool value) {
    Add(section, key, std::string(value ? "true" : "false"));
  }
  void AddTime(std::string_view section, std::string_view key, Duration time) {
    Add(section, key, fmt::format("{} us", ToSeconds(time) * 1e6));
  }

  void WriteParallel() {
    const int tensor = DegreeAt(*root_, "tensor");
    if (tensor > 1) Add("parallel", "sequence", stack_.sequence_parallel);
    const bool whole = tensor > 1 && TextAt(*root_, "parallel", "sequence") != "true";
    if (whole && stack_.scatter_gather && DegreeAt(*root_, "pipeline") > 1) {
      Add("parallel", "scatter_gather", true);
    }
    if (whole && !stack_.tensor_gradient_overlap) Add("overlap", "tensor_gradient", false);
    const bool experts = ValueAt(*root_, "model", "experts") != nullptr;
    if (experts && stack_.expert_tensor_follows_tensor && tensor > 1) {
      Add("parallel", "expert_tensor", fmt::format("{}", tensor));
    }
  }

  void WriteTraining() {
    if (stack_.recompute_drops_unused) Add("training", "recompute_drops_unused", true);
    if (stack_.dropout > 0.0) Add("training", "dropout", fmt::format("{}", stack_.dropout));
    if (TextAt(*root_, "training", "precision") != "fp8") return;
    root_->Find("training")->value.Find("precision")->value.text = stack_.fp8;
    findings_->Assume("training.precision", stack_.fp8,
                      fmt::format("'fp8' in software stack {}", stack_.name));
  }

  void WriteExperts() {
    const YamlEntry* cluster = root_->Find("cluster");
    if (ValueAt(*root_, "model", "experts") == nullptr || cluster == nullptr) return;
    const std::string domain = TextAt(cluster->value, "nvlink", "domain_gpus");
    const int node = std::atoi(TextAt(*root_, "cluster", "gpus_per_node").c_str());
    const int gpus = domain.empty() ? node : std::atoi(domain.c_str());
    // Consecutive ranks hold the experts of a group.
    const bool across = DegreeAt(*root_, "expert") * DegreeAt(*root_, "expert_tensor") > gpus;
    const bool latent = gpus > node && ValueAt(*root_, "model", "latent") != nullptr &&
                        !stack_.expert_dispatch_latent.empty();
    Add("experts", "dispatch",
        across   ? stack_.expert_dispatch_across
        : latent ? stack_.expert_dispatch_latent
                 : stack_.expert_dispatch);
    WriteExpertOverlap(across ? stack_.expert_overlap_across : stack_.expert_overlap);
  }

  void WriteExpertOverlap(bool overlaps) {
    const bool virtual_stages = DegreeAt(*root_, "virtual_stages") > 1;
    if (!overlaps || !virtual_stages || DegreeAt(*root_, "pipeline") == 1) return;
    if (!Given("schedule", "order")) Add("schedule", "name", std::string("combined"));
    if (TextAt(*root_, "schedule", "name") == "combined") {
      Add("overlap", "expert_all_to_all", true);
    }
  }

  void WriteKernels() {
    const YamlEntry* cluster = root_->Find("cluster");
    const std::string architecture =
        cluster == nullptr ? "" : TextAt(cluster->value, "gpu", "architecture");
    if (DegreeAt(*root_, "context") > 1 && !stack_.context_attention.empty()) {
      Add("kernels", "attention", stack_.context_attention);
    }
    for (std::size_t i = 0; i < std::size(kGenerations); ++i) {
      if (architecture == kGenerations[i]) Add("kernels", "attention", stack_.attention[i]);
    }
    Add("kernels", "fusions", stack_.fusions);
    if (DegreeAt(*root_, "context") > 1) {
      Add("kernels", "context_algorithm", stack_.context_algorithm);
    }
    if (stack_.gradient_placeholders) Add("kernels", "gradient_placeholders", true);
    if (stack_.eager_factor != 1.0) {
      Add("kernels", "time_factor", "eager_factor", fmt::format("{}", stack_.eager_factor));
    }
  }

  [[nodiscard]] bool ShardsFully() const {
    return TextAt(*root_, "parallel", "zero") == "3" ||
           TextAt(*root_, "parallel", "sharding") == "full";
  }

  void WriteOptimizer() {
    if (!Given("parallel", "zero") && !Given("parallel", "sharding")) {
      Add("optimizer", "distributed", stack_.distributed_optimizer);
    }
    const std::string precision = TextAt(*root_, "training", "precision");
    const bool half = precision == "fp16" && !stack_.gradient_dtype_fp16.empty();
    Add("optimizer", "gradient_dtype", half ? stack_.gradient_dtype_fp16 : stack_.gradient_dtype);
    if (stack_.keeps_parameter_gradients &&
        TextAt(*root_, "optimizer", "gradient_dtype") == "fp32") {
      Add("optimizer", "keeps_parameter_gradients", true);
    }
    if (stack_.fp8_parameters && precision.compare(0, 3, "fp8") == 0) {
      Add("optimizer", "parameter_gather_dtype", std::string("fp8"));
    } else if (precision.find("fp8") != std::string::npos && ShardsFully() &&
               !stack_.fsdp_fp8_gather_dtype.empty()) {
      Add("optimizer", "parameter_gather_dtype", stack_.fsdp_fp8_gather_dtype);
    }
  }

  void WriteOverlap() {
    Add("overlap", "gradient_reduce", stack_.gradient_reduce);
    Add("overlap", "parameter_gather", stack_.parameter_gather);
    const bool virtual_stages = DegreeAt(*root_, "virtual_stages") > 1;
    const bool full = ShardsFully();
    const bool sharded = TextAt(*root_, "parallel", "zero") != "0" &&
                         TextAt(*root_, "parallel", "sharding") != "none" &&
                         TextAt(*root_, "optimizer", "distributed") != "false";
    if (stack_.parameter_gather_with_optimizer_step && virtual_stages && !full && sharded &&
        TextAt(*root_, "overlap", "parameter_gather") == "true" &&
        TextAt(*root_, "overlap", "gradient_reduce") == "true") {
      Add("overlap", "parameter_gather_with_optimizer_step", true);
    }
    if (DegreeAt(*root_, "tensor") > 1 && TextAt(*root_, "parallel", "sequence") == "true") {
      AddTensorOverlap();
    }
    if (DegreeAt(*root_, "pipeline") > 1 && virtual_stages) {
      Add("overlap", "p2p", stack_.point_to_point);
    }
  }

  // Transformer Engine joins the GPUs of a host to userbuffers. A tensor group over two trays of a
  // rack does without (NVIDIA/TransformerEngine:transformer_engine/pytorch/module/base.py,
  // initialize_ub; recalled; step times of NVIDIA/dgxc-benchmarking on GB200 with TP 8 agree).
  void AddTensorOverlap() {
    const int host = std::atoi(TextAt(*root_, "cluster", "gpus_per_node").c_str());
    const bool across = host > 0 && DegreeAt(*root_, "tensor") > host;
    Add("overlap", "tensor_parallel", across ? "none" : stack_.tensor_overlap);
  }

  void WriteHost() {
    AddTime("host", "fixed_step", stack_.fixed_step);
    AddTime("host", "launch", stack_.launch);
    if (stack_.owner_broadcast.count() > 0) {
      AddTime("host", "owner_broadcast", stack_.owner_broadcast);
    }
    Add("host", "cuda_graphs", stack_.cuda_graphs);
  }

  YamlValue* root_;
  SourcePosition position_;
  const SoftwareStack& stack_;
  Findings* findings_;
};

}  // namespace

void ReadStack(MapReader reader, SoftwareStack* stack) {
  reader.Read("name", &stack->name);
  reader.Read("description", &stack->description);
  reader.Read("source", &stack->source);
  ReadFrameworks(reader, stack);
  MapReader attention = reader.Section("attention");
  for (std::size_t i = 0; i < std::size(kGenerations); ++i) {
    attention.Read(kGenerations[i], &stack->attention[i]);
  }
  attention.Finish();
  reader.Read("fusions", &stack->fusions);
  reader.Read("fp8", &stack->fp8);
  reader.Read("context_algorithm", &stack->context_algorithm);
  reader.Read("sequence_parallel", &stack->sequence_parallel);
  reader.Read("scatter_gather", &stack->scatter_gather);
  reader.Read("tensor_gradient_overlap", &stack->tensor_gradient_overlap);
  reader.Read("distributed_optimizer", &stack->distributed_optimizer);
  reader.Read("gradient_dtype", &stack->gradient_dtype);
  reader.Read("gradient_dtype_fp16", &stack->gradient_dtype_fp16);
  reader.Read("keeps_parameter_gradients", &stack->keeps_parameter_gradients);
  reader.Read("gradient_placeholders", &stack->gradient_placeholders);
  reader.Read("fp8_parameters", &stack->fp8_parameters);
  reader.Read("fsdp_fp8_gather_dtype", &stack->fsdp_fp8_gather_dtype);
  reader.Read("gradient_reduce", &stack->gradient_reduce);
  reader.Read("parameter_gather", &stack->parameter_gather);
  reader.Read("parameter_gather_with_optimizer_step", &stack->parameter_gather_with_optimizer_step);
  reader.Read("tensor_overlap", &stack->tensor_overlap);
  reader.Read("point_to_point", &stack->point_to_point);
  reader.Read("dropout", &stack->dropout, {0.0, 0.99});
  reader.Read("recompute_drops_unused", &stack->recompute_drops_unused);
  reader.Read("context_attention", &stack->context_attention);
  reader.Read("cuda_graphs", &stack->cuda_graphs);
  reader.Read("expert_tensor_follows_tensor", &stack->expert_tensor_follows_tensor);
  MapReader dispatch = reader.Section("expert_dispatch");
  dispatch.Read("within_domain", &stack->expert_dispatch);
  dispatch.Read("across_domains", &stack->expert_dispatch_across);
  dispatch.Read("latent_within_rack", &stack->expert_dispatch_latent);
  dispatch.Finish();
  MapReader overlap = reader.Section("expert_overlap");
  overlap.Read("within_domain", &stack->expert_overlap);
  overlap.Read("across_domains", &stack->expert_overlap_across);
  overlap.Finish();
  ReadSourced(reader, "eager_factor", &stack->eager_factor, &stack->sources,
              Range<double>{0.5, 3.0});
  ReadSourced(reader, "launch", &stack->launch, &stack->sources);
  ReadSourced(reader, "fixed_step", &stack->fixed_step, &stack->sources);
  ReadSourced(reader, "owner_broadcast", &stack->owner_broadcast, &stack->sources);
  reader.Require({"name", "description", "source"});
  reader.Finish();
}

void ApplyStack(YamlValue* root, Findings* findings) {
  const auto found = std::find_if(root->entries.begin(), root->entries.end(),
                                  [](const YamlEntry& entry) { return entry.key == "stack"; });
  if (found == root->entries.end() || !found->value.is_map()) {
    // Without a map a name was given that no file has, which has been reported.
    if (found != root->entries.end() && findings->Good({"stack"})) {
      findings->Error(found->position, "stack: expected the name of a software stack");
    }
    if (found != root->entries.end()) root->entries.erase(found);
    return;
  }
  const YamlEntry entry = std::move(*found);
  root->entries.erase(found);
  findings->Place("stack", entry.position);
  SoftwareStack stack;
  ReadStack(MapReader(&entry.value, "stack", findings), &stack);
  StackWriter(root, entry.position, stack, findings).WriteAll();
}

void SlowKernels(double factor, Scenario* scenario) {
  compute::GpuEfficiency& efficiency = scenario->efficiency;
  for (compute::SystematicFactors* factors :
       {&efficiency.factors_16bit, &efficiency.factors_fp8, &efficiency.factors_fp4}) {
    factors->sustained_derate *= factor;
  }
  for (double& share : efficiency.memory_bound.bandwidth_share) share /= factor;
}

}  // namespace quadrille::scenario
