#include "sim/scenario/gemm_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "sim/compute/gemm_residuals.h"
#include "sim/scenario/gpu_loader.h"

namespace quadrille::scenario {
namespace {

struct DescribedGpu {
  topology::GpuSpec spec;
  compute::GpuEfficiency efficiency;
};

// What the shipped or the user's library says of the GPU `name`, whatever the run changes of it.
std::optional<DescribedGpu> Describe(const std::string& name, const SourcePosition& position,
                                     const Library& library, Findings* findings) {
  YamlValue tree;
  tree.kind = YamlValue::Kind::kScalar;
  tree.text = name;
  tree.position = position;
  // Of another file at the same path: its keys must not pass for the run's.
  Findings own;
  DescribedGpu gpu;
  if (library.Expand("cluster.gpu", &tree, &own)) {
    LoadGpu(MapReader(&tree, "cluster.gpu", &own), nullptr, &gpu.spec, &gpu.efficiency);
  }
  if (!own.any_problem()) return gpu;
  for (Diagnostic& problem : own.TakeProblems()) findings->Error(std::move(problem));
  return std::nullopt;
}

// The rows of one table against the formula of its GPU. Nothing: it is wrong, which is reported.
std::optional<std::vector<compute::GemmResidual>> LoadTable(const YamlValue& name,
                                                            std::int32_t table,
                                                            const Library& library,
                                                            Findings* findings,
                                                            std::vector<SourceNote>* notes) {
  const std::string file = ResolvePath(name.text, name.position);
  const auto fail = [&](Diagnostics problems) {
    for (Diagnostic& problem : problems) findings->Error(std::move(problem));
    return std::nullopt;
  };
  const Result<std::string> text = ReadTextFile(file, kMaxTableBytes);
  if (!text) return fail({{name.position, ToString(text.error()), text.error().front().kind}});
  const std::string gpu_name = Stem(file);
  auto measured = compute::ParseMeasuredGemms(*text, file, gpu_name);
  if (!measured) return fail(std::move(measured.error()));
  const auto gpu = Describe(gpu_name, name.position, library, findings);
  if (!gpu) return std::nullopt;
  for (std::string& source : compute::TableSources(*text)) {
    notes->push_back({"gemm_tables." + gpu_name, std::move(source), "measured"});
  }
  return compute::ResidualsOf(gpu->spec, gpu->efficiency, *measured, table);
}

}  // namespace

void LoadGemmTables(MapReader& reader, const Library* library, compute::GpuEfficiency* efficiency,
                    std::vector<SourceNote>* notes) {
  std::vector<std::string> names;
  if (!reader.Read("gemm_tables", &names, "[measured/h100-sxm.csv]") || library == nullptr) return;
  const std::vector<YamlValue>& items = reader.Find("gemm_tables")->items;
  std::vector<compute::GemmResidual> rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (std::count(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) > 0) {
      reader.findings().Error(items[i].position, fmt::format("{} is named twice", names[i]));
      return reader.findings().Fail(reader.PathOf("gemm_tables"));
    }
    const auto table =
        LoadTable(items[i], static_cast<std::int32_t>(i), *library, &reader.findings(), notes);
    if (!table) return reader.findings().Fail(reader.PathOf("gemm_tables"));
    rows.insert(rows.end(), table->begin(), table->end());
  }
  efficiency->gemm_residuals = compute::KeepHelpful(rows);
}

void AddMeasuredGemms(const topology::GpuSpec& gpu,
                      const std::vector<compute::MeasuredGemm>& measured,
                      compute::GpuEfficiency* efficiency) {
  const auto rows = compute::ResidualsOf(gpu, *efficiency, measured, 0);
  if (rows.empty()) return;
  efficiency->gemm_residuals = std::make_shared<const compute::GemmResiduals>(
      efficiency->gemm_residuals ? efficiency->gemm_residuals->With(rows)
                                 : compute::GemmResiduals(rows));
}

}  // namespace quadrille::scenario
