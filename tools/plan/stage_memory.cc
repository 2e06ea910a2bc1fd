#include "tools/plan/stage_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/number_text.h"

namespace quadrille::plan {
namespace {

// Names of components over all stages, in the order of their first appearance.
std::vector<std::string> ComponentNames(const metrics::StepReport& report) {
  std::vector<std::string> names;
  for (const metrics::StageReport& stage : report.stages) {
    for (const metrics::MemoryComponent& component : stage.components) {
      if (std::find(names.begin(), names.end(), component.name) == names.end()) {
        names.push_back(component.name);
      }
    }
  }
  return names;
}

std::string KeyOf(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + "_bytes";
}

}  // namespace

Account DescribeStageMemory(const metrics::StepReport& report) {
  Account account{.key = "memory",
                  .title = "Memory per GPU, simulated",
                  .figures = {},
                  .tables = {},
                  .remarks = {}};
  account.figures.push_back(
      {"peak_bytes", "peak", report.peak_memory, fmt::format("stage {}", report.peak_memory_stage),
       report.out_of_memory
           ? fmt::format("More than the {} of the GPU: it does not fit.",
                         report::BytesText(report.memory_capacity))
           : fmt::format("Fits the {} of the GPU.", report::BytesText(report.memory_capacity))});
  const std::vector<std::string> names = ComponentNames(report);
  AccountTable table;
  table.key = "stages";
  table.title = "at each stage's peak";
  table.columns = {{"stage", "stage"}, {"peak_bytes", "peak"}};
  for (const std::string& name : names) table.columns.push_back({KeyOf(name), name});
  table.columns.push_back({"held", "chunk activations held"});
  for (const metrics::StageReport& stage : report.stages) {
    std::vector<Amount> row = {std::int64_t{stage.pipeline_rank}, stage.peak_memory};
    for (const std::string& name : names) {
      Bytes bytes(0);
      for (const metrics::MemoryComponent& component : stage.components) {
        if (component.name == name) bytes += component.bytes;
      }
      row.emplace_back(bytes);
    }
    row.emplace_back(std::int64_t{stage.peak_activations});
    table.rows.push_back(std::move(row));
  }
  table.formula = "allocations less releases over one simulated step, at the moment of the peak";
  account.tables.push_back(std::move(table));
  return account;
}

}  // namespace quadrille::plan
