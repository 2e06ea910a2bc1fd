#include "tools/calibrate_common.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/base/nearest.h"
#include "sim/scenario/library.h"
#include "tools/validate/gpu_names.h"
#include "tools/validate/statistics.h"

namespace quadrille::tools {

void AddDescriptions(const scenario::LoadOptions& load, const std::string& kind,
                     std::set<std::string>* names) {
  std::vector<std::string> directories = load.scenario_path;
  directories.push_back(load.shipped_directory);
  for (const std::string& directory : directories) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("{}/{}", directory, kind), error)) {
      names->insert(scenario::Stem(entry.path().string()));
    }
  }
}

Result<std::vector<std::string>> WantedNames(const std::vector<std::string>& asked,
                                             const std::set<std::string>& known,
                                             const std::string& what) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::vector<std::string> wanted;
  Diagnostics problems;
  for (const std::string& name : asked) {
    const GpuName* gpu = FindGpu(name);
    wanted.push_back(gpu != nullptr ? std::string(gpu->description) : name);
    if (known.contains(wanted.back())) continue;
    const std::string_view nearest = Nearest(name, names);
    problems.push_back(
        {{"--of", 0, 0},
         fmt::format("no {} is named '{}'{}", what, name,
                     nearest.empty() ? "" : fmt::format("; nearest: '{}'", nearest))});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return wanted;
}

std::vector<report::Column> ErrorColumns(const std::string& title) {
  using report::Align;
  return {{title},
          {"rows", Align::kRight},
          {"median", Align::kRight},
          {"mean", Align::kRight},
          {"p90", Align::kRight},
          {"bias", Align::kRight}};
}

void AddErrors(const std::string& name, const std::vector<double>& errors,
               report::TextTable* table) {
  const ErrorSummary s = Summarise(errors);
  table->AddRow({name, fmt::format("{}", s.rows), fmt::format("{:.1f} %", s.median * 100.0),
                 fmt::format("{:.1f} %", s.mean * 100.0), fmt::format("{:.1f} %", s.p90 * 100.0),
                 fmt::format("{:+.1f} %", s.bias * 100.0)});
}

}  // namespace quadrille::tools
