#include "test/compute/gpu_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace quadrille::compute {
namespace {

const char* const kGpuDirectory = QUADRILLE_SOURCE_DIR "/scenarios/gpus/";

const char* const kClassNames[] = {"elementwise",   "norm_forward", "norm_backward", "activation",
                                   "rope",          "softmax",      "cast",          "embedding",
                                   "cross_entropy", "router",       "permute",       "unpermute",
                                   "reduction",     "optimizer"};

std::string ValueOf(const YAML::Node& node) {
  return (node.IsMap() ? node["value"] : node).as<std::string>();
}
double NumberOf(const YAML::Node& node) { return std::stod(ValueOf(node)); }
Duration TimeOf(const YAML::Node& node) { return FromSeconds(QuantityOf(ValueOf(node))); }
FlopsPerSecond FlopsOf(const YAML::Node& node) {
  return FlopsPerSecond(node.IsDefined() ? QuantityOf(ValueOf(node)) : 0.0);
}

GemmConstants GemmOf(const YAML::Node& node) {
  GemmConstants c;
  if (!node.IsDefined()) return c;
  c.peak_share = NumberOf(node["peak_share"]);
  c.tile_overhead = NumberOf(node["tile_overhead"]);
  c.prologue_k = NumberOf(node["prologue_k"]);
  c.partial_wave = NumberOf(node["partial_wave"]);
  c.launch = TimeOf(node["launch"]);
  c.bandwidth_share = NumberOf(node["bandwidth_share"]);
  c.sustained_droop = NumberOf(node["sustained_droop"]);
  if (node["droop_onset"]) c.droop_onset = TimeOf(node["droop_onset"]);
  if (node["burst_dip"]) {
    c.burst_dip = NumberOf(node["burst_dip"]);
    c.burst_dip_at = TimeOf(node["burst_dip_at"]);
  }
  if (node["operand_cast_launch"]) {
    c.operand_cast_launch = TimeOf(node["operand_cast_launch"]);
    c.operand_cast_bytes = NumberOf(node["operand_cast_bytes"]);
  }
  const YAML::Node roofline = node["roofline"];
  c.roofline.launch = TimeOf(roofline["launch"]);
  c.roofline.peak_share = NumberOf(roofline["peak_share"]);
  c.roofline.bandwidth_share = NumberOf(roofline["bandwidth_share"]);
  c.roofline.constant_share = NumberOf(roofline["constant_share"]);
  return c;
}

model::AttentionBackend BackendOf(const std::string& name) {
  if (name == "cudnn") return model::AttentionBackend::kCudnn;
  if (name == "flash2") return model::AttentionBackend::kFlash2;
  if (name == "flash3") return model::AttentionBackend::kFlash3;
  if (name == "flash4") return model::AttentionBackend::kFlash4;
  if (name == "triton_alibi") return model::AttentionBackend::kTritonAlibi;
  throw std::runtime_error("unknown backend " + name);
}

AttentionConstants AttentionOf(const YAML::Node& node) {
  AttentionConstants c;
  if (node["backend"]) c.backend = BackendOf(node["backend"].as<std::string>());
  c.head_dim = node["head_dim"].as<int>();
  c.backward = node["backward"].as<bool>();
  c.causal = node["causal"].as<bool>();
  c.asymptote = FlopsOf(node["asymptote"]);
  c.half_length = NumberOf(node["half_length"]);
  c.block_rows = node["block_rows"].as<int>();
  c.tail = NumberOf(node["tail"]);
  c.launch = TimeOf(node["launch"]);
  if (node["cache_write_share"]) c.cache_write_share = NumberOf(node["cache_write_share"]);
  return c;
}

void SetIfPresent(const YAML::Node& node, const char* key, double* value) {
  if (node[key]) *value = NumberOf(node[key]);
}

SystematicFactors FactorsOf(const YAML::Node& node) {
  SystematicFactors f;
  if (!node.IsDefined()) return f;
  SetIfPresent(node, "sustained_derate", &f.sustained_derate);
  SetIfPresent(node, "weight_gradient_16bit", &f.weight_gradient_16bit);
  SetIfPresent(node, "weight_gradient_fp8", &f.weight_gradient_fp8);
  SetIfPresent(node, "weight_gradient_block_fp8", &f.weight_gradient_block_fp8);
  SetIfPresent(node, "input_gradient", &f.input_gradient);
  return f;
}

// Maps key by key, anything else whole; a constant with its source counts as one value.
YAML::Node Merged(const YAML::Node& base, const YAML::Node& over) {
  if (!base.IsDefined() || !base.IsMap() || !over.IsMap() || over["value"]) return over;
  YAML::Node merged = YAML::Clone(base);
  for (const auto& entry : over) {
    const auto key = entry.first.as<std::string>();
    merged[key] = Merged(base[key], entry.second);
  }
  return merged;
}

}  // namespace

YAML::Node LoadGpuFile(const std::string& name) {
  const YAML::Node own = YAML::LoadFile(kGpuDirectory + name + ".yaml");
  if (!own["base"]) return own;
  return Merged(LoadGpuFile(own["base"].as<std::string>()), own);
}

double QuantityOf(const std::string& text) {
  std::size_t used = 0;
  const double number = std::stod(text, &used);
  const std::string unit = text.substr(text.find_first_not_of(' ', used));
  if (unit == "TFLOP/s" || unit == "TB/s") return number * 1e12;
  if (unit == "GB") return number * 1e9;
  if (unit == "us") return number * 1e-6;
  throw std::runtime_error("unknown unit in " + text);
}

GpuFile ReadGpuFile(const std::string& name) {
  const YAML::Node root = LoadGpuFile(name);
  GpuFile file;
  file.gpu.name = root["name"].as<std::string>();
  file.gpu.architecture = root["architecture"].as<std::string>();
  file.gpu.streaming_multiprocessors =
      static_cast<std::int32_t>(NumberOf(root["streaming_multiprocessors"]));
  file.gpu.peak_fp32 = FlopsOf(root["peak_fp32"]);
  file.gpu.peak_16bit = FlopsOf(root["peak_16bit"]);
  file.gpu.peak_fp8 = FlopsOf(root["peak_fp8"]);
  file.gpu.peak_fp4 = FlopsOf(root["peak_fp4"]);
  file.gpu.memory_bandwidth = BytesPerSecond(QuantityOf(ValueOf(root["memory_bandwidth"])));
  file.gpu.memory_capacity =
      Bytes(static_cast<std::int64_t>(QuantityOf(ValueOf(root["memory_capacity"]))));
  const YAML::Node efficiency = root["efficiency"];
  file.efficiency.gemm_16bit = GemmOf(efficiency["gemm_16bit"]);
  file.efficiency.gemm_fp8 = GemmOf(efficiency["gemm_fp8"]);
  file.efficiency.gemm_fp8_block = GemmOf(efficiency["gemm_fp8_block"]);
  file.efficiency.gemm_fp4 = GemmOf(efficiency["gemm_fp4"]);
  for (const YAML::Node& entry : efficiency["attention"]) {
    file.efficiency.attention.push_back(AttentionOf(entry));
  }
  const YAML::Node memory = efficiency["memory_bound"];
  file.efficiency.memory_bound.launch = TimeOf(memory["launch"]);
  for (const char* key : kClassNames) {
    file.efficiency.memory_bound.bandwidth_share.push_back(
        NumberOf(memory["bandwidth_share"][key]));
  }
  file.efficiency.factors_16bit = FactorsOf(efficiency["factors_16bit"]);
  file.efficiency.factors_fp8 = FactorsOf(efficiency["factors_fp8"]);
  file.efficiency.factors_fp4 = FactorsOf(efficiency["factors_fp4"]);
  return file;
}

std::vector<std::string> ShippedGpus() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGpuDirectory)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::vector<std::string>> ReadDataRows(const std::string& name) {
  std::ifstream stream(std::string(QUADRILLE_SOURCE_DIR "/test/compute/data/") + name);
  if (!stream) throw std::runtime_error("cannot read " + name);
  std::vector<std::vector<std::string>> rows;
  bool header = true;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (header) {
      header = false;
      continue;
    }
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    rows.push_back(fields);
  }
  return rows;
}

model::MemoryBoundClass MemoryBoundClassOf(const std::string& name) {
  const auto* const found = std::find(std::begin(kClassNames), std::end(kClassNames), name);
  if (found == std::end(kClassNames)) throw std::runtime_error("unknown class " + name);
  return static_cast<model::MemoryBoundClass>(found - std::begin(kClassNames));
}

ErrorSummary Summarize(std::vector<double> absolute_errors) {
  if (absolute_errors.empty()) throw std::runtime_error("no errors to summarise");
  std::sort(absolute_errors.begin(), absolute_errors.end());
  const std::size_t n = absolute_errors.size();
  return {absolute_errors[n / 2], absolute_errors[std::min(n - 1, n * 9 / 10)]};
}

}  // namespace quadrille::compute
