// The shipped GPU files: complete, in range, and every constant with its source.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "sim/compute/kernel_cost.h"
#include "sim/compute/kernel_table.h"
#include "test/compute/gpu_file.h"

namespace quadrille::compute {
namespace {

const std::set<std::string> kKinds{"measured", "fitted", "published", "assumed"};

bool IsCited(const YAML::Node& map) {
  return map["kind"] && kKinds.contains(map["kind"].as<std::string>()) && map["source"] &&
         map["source"].as<std::string>().size() >= 6;
}

// Every plain value needs a cited map at or above it.
void ExpectCited(const YAML::Node& node, const std::string& path, bool cited) {
  if (node.IsMap()) {
    const bool here = cited || IsCited(node);
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      if (key != "kind" && key != "source") ExpectCited(entry.second, path + "." + key, here);
    }
  } else if (node.IsSequence()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      ExpectCited(node[i], path + "." + std::to_string(i), cited);
    }
  } else {
    EXPECT_TRUE(cited) << path << " has no kind and source";
  }
}

TEST(GpuFiles, AllAskedForAreShipped) {
  const std::vector<std::string> names = ShippedGpus();
  for (const char* name :
       {"v100-sxm", "v100-pcie", "a100-sxm-80gb", "a100-pcie", "a100-pcie-40gb", "h100-sxm",
        "h100-torchtitan", "h200-sxm", "h800-sxm", "b200", "gb200", "b300", "gb300"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(GpuFiles, EveryConstantCitesItsKindAndSource) {
  for (const std::string& name : ShippedGpus()) {
    const YAML::Node root = LoadGpuFile(name);
    for (const auto& section : root["efficiency"]) {
      // These name files, which cite their own.
      if (section.first.as<std::string>() == "gemm_tables") continue;
      ExpectCited(section.second, name + "." + section.first.as<std::string>(), false);
    }
    for (const char* key : {"streaming_multiprocessors", "peak_fp32", "peak_16bit",
                            "memory_bandwidth", "memory_capacity"}) {
      EXPECT_TRUE(IsCited(root[key])) << name << ' ' << key;
    }
    EXPECT_EQ(root["name"].as<std::string>(), name);
  }
}

TEST(GpuFiles, EveryTableOfGemmsIsOfAShippedGpuAndCitesItsSource) {
  const std::vector<std::string> names = ShippedGpus();
  for (const std::string& name : names) {
    for (const YAML::Node& table : LoadGpuFile(name)["efficiency"]["gemm_tables"]) {
      const std::filesystem::path file(table.as<std::string>());
      EXPECT_NE(std::find(names.begin(), names.end(), file.stem().string()), names.end()) << file;
      std::ifstream stream(std::filesystem::path(QUADRILLE_SOURCE_DIR) / "scenarios/gpus" / file);
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      const auto rows = ParseMeasuredGemms(text, file.string(), name);
      ASSERT_TRUE(rows.has_value()) << ToString(rows.error());
      EXPECT_GT(rows->size(), 50U) << file;
      EXPECT_FALSE(TableSources(text).empty()) << file;
    }
  }
}

TEST(GpuFiles, ConstantsAreInPhysicalRange) {
  for (const std::string& name : ShippedGpus()) {
    const GpuFile file = ReadGpuFile(name);
    const GpuEfficiency& e = file.efficiency;
    for (const GemmConstants* c : {&e.gemm_16bit, &e.gemm_fp8, &e.gemm_fp8_block, &e.gemm_fp4}) {
      // What a 256 x 256 tile reaches of the peak.
      const double reached =
          c->peak_share / std::sqrt(std::sqrt(1 + std::pow(c->tile_overhead, 4)));
      EXPECT_GT(reached, 0.45) << name;
      EXPECT_LT(reached, 0.9) << name;
      EXPECT_GE(c->sustained_droop, 0) << name;
      EXPECT_LT(c->burst_dip, 0.2) << name;
      EXPECT_LE(c->partial_wave, 1) << name;
      EXPECT_LE(c->bandwidth_share, 1) << name;
    }
    for (const AttentionConstants& a : e.attention) {
      EXPECT_LT(a.asymptote.value(), file.gpu.peak_16bit.value()) << name;
      EXPECT_LE(a.tail, 1) << name;
    }
    for (const double share : e.memory_bound.bandwidth_share) {
      EXPECT_GT(share, 0.2) << name;
      EXPECT_LT(share, 0.96) << name;
    }
  }
}

TEST(GpuFiles, EveryGpuHasTrainingAttentionInBothDirectionsOrRefusesFusedKernels) {
  for (const std::string& name : ShippedGpus()) {
    const GpuFile file = ReadGpuFile(name);
    if (file.gpu.architecture == "volta") {
      EXPECT_EQ(CheckKernels(file.gpu, file.efficiency, {}).size(), 1U);
      continue;
    }
    EXPECT_TRUE(CheckKernels(file.gpu, file.efficiency, {}).empty()) << name;
    std::set<model::AttentionBackend> forward;
    std::set<model::AttentionBackend> backward;
    for (const AttentionConstants& a : file.efficiency.attention) {
      (a.backward ? backward : forward).insert(a.backend);
    }
    EXPECT_EQ(forward, backward) << name;
  }
}

}  // namespace
}  // namespace quadrille::compute
