#include "sim/scenario/gpu_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/gemm_tables.h"
#include "sim/scenario/names.h"
#include "sim/scenario/sourced.h"

namespace quadrille::scenario {
namespace {

constexpr Range<double> kShare{0.0, 1.0};
constexpr Range<double> kUsedShare{0.001, 1.0};  // of a peak, which time is divided by
constexpr Range<double> kFactor{0.01, 10.0};
constexpr Range<Duration> kClockTime{std::chrono::microseconds(1), std::chrono::seconds(10)};
constexpr std::string_view kArchitectures[] = {"volta", "ampere", "hopper", "blackwell"};

void LoadRoofline(MapReader reader, compute::RooflineConstants* constants) {
  reader.Read("launch", &constants->launch, kLaunch);
  reader.Read("peak_share", &constants->peak_share, kUsedShare);
  reader.Read("bandwidth_share", &constants->bandwidth_share, kUsedShare);
  reader.Read("constant_share", &constants->constant_share, kUsedShare);
  reader.Finish();
}

void LoadGemm(MapReader& map, std::string_view key, compute::GemmConstants* constants,
              std::vector<SourceNote>* notes) {
  MapReader reader = map.Section(key);
  if (!reader.present()) return;
  reader.Read("peak_share", &constants->peak_share, kUsedShare);
  reader.Read("tile_overhead", &constants->tile_overhead, {0.0, 10.0});
  reader.Read("prologue_k", &constants->prologue_k, {0.0, 1e6});
  reader.Read("partial_wave", &constants->partial_wave, kShare);
  reader.Read("launch", &constants->launch, kLaunch);
  reader.Read("bandwidth_share", &constants->bandwidth_share, kUsedShare);
  reader.Read("sustained_droop", &constants->sustained_droop, {0.0, 0.9});
  reader.Read("droop_onset", &constants->droop_onset, kClockTime);
  reader.Read("burst_dip", &constants->burst_dip, {0.0, 0.9});
  reader.Read("burst_dip_at", &constants->burst_dip_at, kClockTime);
  reader.Read("operand_cast_launch", &constants->operand_cast_launch, kLaunch);
  reader.Read("operand_cast_bytes", &constants->operand_cast_bytes, {0.0, 1000.0});
  LoadRoofline(reader.Section("roofline"), &constants->roofline);
  ReadSource(reader, std::string(key), notes);
  reader.Finish();
}

// The constants of one kernel; `reader` also holds the keys that select it.
void LoadAttentionConstants(MapReader& reader, compute::AttentionConstants* constants) {
  reader.ReadName("backend", &constants->backend, kAttentionBackends);
  reader.Read("head_dim", &constants->head_dim, {1, 4096});
  reader.Read("backward", &constants->backward);
  reader.Read("causal", &constants->causal);
  reader.Read("asymptote", &constants->asymptote);
  reader.Read("half_length", &constants->half_length, {0.0, 1e7});
  reader.Read("block_rows", &constants->block_rows, {1, 4096});
  reader.Read("tail", &constants->tail, kShare);
  reader.Read("launch", &constants->launch, kLaunch);
  reader.Read("cache_write_share", &constants->cache_write_share, kShare);
  if (reader.present()) reader.Require({"asymptote"});
}

void LoadAttention(MapReader& map, compute::GpuEfficiency* efficiency,
                   std::vector<SourceNote>* notes) {
  for (const std::string_view key : {"attention", "inference_attention"}) {
    const YamlValue* list = map.Find(key);
    if (list == nullptr) continue;
    if (!list->is_sequence()) {
      map.Error(key, "expected a list of kernels");
      continue;
    }
    const bool training = key == "attention";
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      MapReader reader(&list->items[i], fmt::format("{}.{}.{}", map.path(), key, i),
                       &map.findings());
      compute::InferenceAttention entry;
      if (!training) reader.Read("kernel", &entry.kernel);
      LoadAttentionConstants(reader, &entry.constants);
      if (reader.present()) reader.Require({training ? "backend" : "kernel"});
      ReadSource(reader, fmt::format("{}.{}", key, i), notes);
      reader.Finish();
      if (training) {
        efficiency->attention.push_back(entry.constants);
      } else {
        efficiency->inference_attention.push_back(std::move(entry));
      }
    }
  }
}

// `attention_factors: {triton_alibi: 1.9}`. REQUIRES: the attention table has been read.
void LoadAttentionFactors(MapReader reader, compute::GpuEfficiency* efficiency,
                          std::vector<SourceNote>* notes) {
  for (const auto& row : kAttentionBackends) {
    compute::AttentionFactor entry{row.value, 1.0};
    if (!ReadSourced(reader, row.name, &entry.factor, notes, Range<double>{0.1, 10.0})) continue;
    efficiency->attention_factors.push_back(entry);
    for (compute::AttentionConstants& constants : efficiency->attention) {
      if (constants.backend != row.value) continue;
      constants.asymptote = FlopsPerSecond(constants.asymptote.value() / entry.factor);
    }
  }
  reader.Finish();
}

void LoadMemoryBound(MapReader reader, compute::MemoryBoundConstants* constants,
                     std::vector<SourceNote>* notes) {
  ReadSourced(reader, "launch", &constants->launch, notes, kLaunch);
  constants->bandwidth_share.assign(std::size(kMemoryBoundClasses), 0.0);
  MapReader shares = reader.Section("bandwidth_share");
  for (std::size_t i = 0; i < std::size(kMemoryBoundClasses); ++i) {
    ReadSourced(shares, kMemoryBoundClasses[i].name, &constants->bandwidth_share[i], notes,
                Range<double>{0.01, 1.0});
    if (shares.present()) shares.Require({kMemoryBoundClasses[i].name});
  }
  shares.Finish();
  if (!reader.present()) return;
  reader.Require({"bandwidth_share"});
  ReadSource(reader, "memory_bound", notes);
  reader.Finish();
}

void LoadFactors(MapReader& map, std::string_view key, compute::SystematicFactors* factors,
                 std::vector<SourceNote>* notes) {
  MapReader reader = map.Section(key);
  ReadSourced(reader, "sustained_derate", &factors->sustained_derate, notes, kFactor);
  ReadSourced(reader, "weight_gradient_16bit", &factors->weight_gradient_16bit, notes, kFactor);
  ReadSourced(reader, "weight_gradient_fp8", &factors->weight_gradient_fp8, notes, kFactor);
  ReadSourced(reader, "weight_gradient_block_fp8", &factors->weight_gradient_block_fp8, notes,
              kFactor);
  ReadSourced(reader, "input_gradient", &factors->input_gradient, notes, kFactor);
  ReadSourced(reader, "host_launch", &factors->host_launch, notes, kLaunch);
  reader.Finish();
}

compute::ConstantSource::Kind SourceKind(std::string_view kind) {
  using Kind = compute::ConstantSource::Kind;
  if (kind == "measured") return Kind::kMeasured;
  if (kind == "fitted") return Kind::kFitted;
  if (kind == "published") return Kind::kPublished;
  return Kind::kAssumed;
}

// Kernels of measured tables, for the validation of the cost model.
void LoadMeasuredKernels(MapReader& map, compute::GpuEfficiency* efficiency,
                         std::vector<SourceNote>* notes) {
  const YamlValue* list = map.Find("measured_memory_bound");
  if (list == nullptr) return;
  if (!list->is_sequence()) return map.Error("measured_memory_bound", "expected a list of kernels");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    MapReader reader(&list->items[i], fmt::format("{}.measured_memory_bound.{}", map.path(), i),
                     &map.findings());
    compute::MeasuredMemoryBound measured;
    reader.Read("kernel", &measured.kernel);
    reader.Read("launch", &measured.launch, kLaunch);
    reader.Read("bandwidth_share", &measured.bandwidth_share, {0.01, 10.0});
    if (reader.Read("cached_share", &measured.cached_share, {0.01, 10.0})) {
      reader.Require({"cache"});
    }
    reader.Read("cache", &measured.cache);
    if (reader.Read("row_kept", &measured.row_kept)) reader.Require({"reread"});
    reader.Read("reread", &measured.reread, {0.0, 10.0});
    if (reader.present()) reader.Require({"kernel", "launch", "bandwidth_share"});
    ReadSource(reader, fmt::format("measured_memory_bound.{}", i), notes);
    reader.Finish();
    efficiency->measured_memory_bound.push_back(std::move(measured));
  }
}

void LoadSpec(MapReader& reader, topology::GpuSpec* gpu, std::vector<SourceNote>* notes) {
  const int architecture = reader.ReadChoice("architecture", kArchitectures);
  if (architecture >= 0) gpu->architecture = kArchitectures[architecture];
  ReadSourced(reader, "streaming_multiprocessors", &gpu->streaming_multiprocessors, notes,
              Range<std::int32_t>{1, 4096});
  ReadSourced(reader, "peak_fp32", &gpu->peak_fp32, notes, Zero::kAllowed);
  ReadSourced(reader, "peak_16bit", &gpu->peak_16bit, notes, Zero::kRefused);
  ReadSourced(reader, "peak_fp8", &gpu->peak_fp8, notes, Zero::kAllowed);
  ReadSourced(reader, "peak_fp4", &gpu->peak_fp4, notes, Zero::kAllowed);
  ReadSourced(reader, "memory_bandwidth", &gpu->memory_bandwidth, notes);
  ReadSourced(reader, "memory_capacity", &gpu->memory_capacity, notes);
  gpu->memory_usable = gpu->memory_capacity;
  if (reader.Has("memory_usable")) {
    ReadSourced(reader, "memory_usable", &gpu->memory_usable, notes);
    // Capacities are called by powers of 1000 and made by powers of 1024, a tenth at most.
    if (gpu->memory_usable > Scale(gpu->memory_capacity, 1.1)) {
      reader.Error("memory_usable", "is more than memory_capacity");
    }
  }
  reader.Require({"architecture", "streaming_multiprocessors", "peak_16bit", "memory_bandwidth",
                  "memory_capacity"});
  ReadSource(reader, "data sheet", notes);
}

void LoadEfficiency(MapReader reader, const Library* library, compute::GpuEfficiency* efficiency,
                    std::vector<SourceNote>* notes) {
  LoadGemm(reader, "gemm_16bit", &efficiency->gemm_16bit, notes);
  LoadGemm(reader, "gemm_fp8", &efficiency->gemm_fp8, notes);
  LoadGemm(reader, "gemm_fp8_block", &efficiency->gemm_fp8_block, notes);
  LoadGemm(reader, "gemm_fp4", &efficiency->gemm_fp4, notes);
  LoadGemmTables(reader, library, efficiency, notes);
  LoadAttention(reader, efficiency, notes);
  LoadAttentionFactors(reader.Section("attention_factors"), efficiency, notes);
  LoadMemoryBound(reader.Section("memory_bound"), &efficiency->memory_bound, notes);
  LoadFactors(reader, "factors_16bit", &efficiency->factors_16bit, notes);
  LoadFactors(reader, "factors_fp8", &efficiency->factors_fp8, notes);
  LoadFactors(reader, "factors_fp4", &efficiency->factors_fp4, notes);
  ReadSourced(reader, "speed_spread", &efficiency->speed_spread, notes, Range<double>{0.0, 0.2});
  LoadMeasuredKernels(reader, efficiency, notes);
  if (reader.present()) reader.Require({"gemm_16bit", "attention", "memory_bound"});
  reader.Finish();
}

}  // namespace

void LoadGpu(MapReader reader, const Library* library, topology::GpuSpec* gpu,
             compute::GpuEfficiency* efficiency) {
  if (!reader.present()) return;
  std::vector<SourceNote> notes;
  std::string ignored;
  reader.Read("name", &gpu->name);
  reader.Read("description", &ignored);
  LoadSpec(reader, gpu, &notes);
  LoadEfficiency(reader.Section("efficiency"), library, efficiency, &notes);
  reader.Require({"efficiency"});
  if (!reader.Has("name")) gpu->name = "inline";
  for (SourceNote& note : notes) {
    efficiency->sources.push_back(
        {std::move(note.constant), std::move(note.source), SourceKind(note.kind)});
  }
  reader.Finish();
}

}  // namespace quadrille::scenario
