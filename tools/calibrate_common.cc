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
    // The user's own directory need not be laid out as the shipped one is.
    for (const std::string& place : {fmt::format("{}/{}", directory, kind), directory}) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
        if (entry.path().extension() == ".yaml") {
          names->insert(scenario::Stem(entry.path().string()));
        }
      }
    }
  }
}

void CheckName(const std::string& option, const std::string& what, const std::string& name,
               const std::set<std::string>& known, Diagnostics* problems) {
  if (known.contains(name)) return;
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = Nearest(name, names);
  problems->push_back(
      {{option, 0, 0},
       fmt::format("no {} is named '{}'{}", what, name,
                   nearest.empty() ? "" : fmt::format("; nearest: '{}'", nearest))});
}

Diagnostics CheckOverlayName(const scenario::LoadOptions& load, const std::string& output) {
  scenario::LoadOptions shipped = load;
  shipped.scenario_path.clear();
  std::set<std::string> names;
  for (const char* kind :
       {"gpus", "clusters", "clusters/collectives", "clusters/stacks", "models", "runs"}) {
    AddDescriptions(shipped, kind, &names);
  }
  const std::string name = scenario::Stem(output);
  if (!names.contains(name)) return {};
  return {{{"--output", 0, 0},
           fmt::format("an overlay named '{}' would stand for the shipped description of that name "
                       "in its directory; name it otherwise",
                       name)}};
}

Result<std::vector<std::string>> WantedNames(const std::vector<std::string>& asked,
                                             const std::set<std::string>& known,
                                             const std::string& what) {
  std::vector<std::string> wanted;
  Diagnostics problems;
  for (const std::string& name : asked) {
    const GpuName* gpu = FindGpu(name);
    wanted.push_back(gpu != nullptr ? std::string(gpu->description) : name);
    if (gpu == nullptr || !known.contains(wanted.back())) {
      CheckName("--of", what, name, known, &problems);
    }
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

void AddErrors(const std::string& name, const std::vector<double>& errors, report::TextTable* table,
               const char* otherwise) {
  if (errors.empty()) {
    table->AddRow({fmt::format("{}: {}", name, otherwise), "", "", "", "", ""});
    return;
  }
  const ErrorSummary s = Summarise(errors);
  table->AddRow({name, fmt::format("{}", s.rows), fmt::format("{:.1f} %", s.median * 100.0),
                 fmt::format("{:.1f} %", s.mean * 100.0), fmt::format("{:.1f} %", s.p90 * 100.0),
                 fmt::format("{:+.1f} %", s.bias * 100.0)});
}

}  // namespace quadrille::tools
