#include "tools/calibrate_collectives_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/report/file_output.h"
#include "sim/report/text_table.h"
#include "sim/scenario/quantity_text.h"
#include "tools/calibrate_common.h"
#include "tools/command_line.h"
#include "tools/csv_input.h"
#include "tools/validate/collective_calibration.h"
#include "tools/validate/collective_pricing.h"

namespace quadrille::tools {
namespace {

struct CollectiveArguments : RunArguments {
  std::vector<std::string> files;
  std::string output;
  std::string cluster;
  std::string smallest = "1 MB";
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::vector<std::string> constants;
  std::vector<std::string> owners;
  int folds = 0;
  int threads = 0;
};

// What the call asks for, read and checked; the owners are empty for "all".
struct Wanted {
  CollectiveCalibrationOptions options;
  std::vector<CollectiveOwner> owners;
};

Result<Wanted> ReadWanted(const CollectiveArguments& arguments, const scenario::LoadOptions& load) {
  Wanted wanted;
  Diagnostics problems;
  std::set<std::string> clusters;
  AddDescriptions(load, "clusters", &clusters);
  std::set<std::string> tables;
  AddDescriptions(load, "clusters/collectives", &tables);
  if (!arguments.cluster.empty()) {
    CheckName("--cluster", "cluster", arguments.cluster, clusters, &problems);
  }
  std::set<std::string> both = clusters;
  both.insert(tables.begin(), tables.end());
  for (const std::string& name : arguments.owners) {
    CheckName("--of", "cluster or table of collective constants", name, both, &problems);
    wanted.owners.push_back({name, !clusters.contains(name)});
  }
  std::set<std::string> constants;
  for (const CollectiveConstant& constant : AllCollectiveConstants()) {
    constants.emplace(constant.key);
    constants.emplace(constant.key.substr(0, constant.key.find('.')));
  }
  for (const std::string& name : arguments.constants) {
    CheckName("--constants", "constant", name, constants, &problems);
  }
  const scenario::Parsed<Bytes> smallest = scenario::ParseBytes(arguments.smallest);
  if (smallest) {
    wanted.options.smallest = *smallest;
  } else {
    problems.push_back({{"--from", 0, 0}, smallest.error()});
  }
  wanted.options.constants = arguments.constants;
  wanted.options.folds = arguments.folds;
  wanted.options.threads = arguments.threads;
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return wanted;
}

std::string ConstantsText(const CollectiveFit& fit) {
  using report::Align;
  report::TextTable table({{"constant"},
                           {"rows", Align::kRight},
                           {"before", Align::kRight},
                           {"fitted", Align::kRight},
                           {"over folds", Align::kRight}});
  for (const FreedConstant& c : fit.freed) {
    table.AddRow(
        {std::string(c.constant->key), fmt::format("{}", c.rows), c.constant->Text(c.before),
         c.constant->Text(c.value),
         fmt::format("{} to {}", c.constant->Text(c.smallest), c.constant->Text(c.largest))});
  }
  return table.Render(OutputStyle());
}

std::string ErrorsText(const CollectiveFit& fit) {
  report::TextTable table(ErrorColumns("errors of the fit rows"));
  AddErrors("before", fit.errors_before, &table);
  AddErrors("after", fit.errors_after, &table);
  AddErrors("leave one size out", fit.errors_without_size, &table, "all rows are of one");
  AddErrors("leave one system out", fit.errors_without_system, &table, "all rows are of one");
  return table.Render(OutputStyle());
}

// Constants that stay for one reason, in one line.
std::string KeptText(const CollectiveFit& fit) {
  std::vector<std::string> reasons;
  std::map<std::string, std::string> keys;
  for (const KeptConstant& kept : fit.kept) {
    std::string& list = keys[kept.reason];
    if (list.empty()) reasons.push_back(kept.reason);
    list += (list.empty() ? "" : ", ") + kept.key;
  }
  std::string text;
  for (const std::string& reason : reasons) {
    text += fmt::format("  kept: {}: {}\n", keys[reason], reason);
  }
  return text;
}

std::string FitText(const CollectiveFit& fit) {
  std::string text =
      fmt::format("{} {}: {} rows\n\n", fit.owner.is_table ? "collectives" : "cluster",
                  fit.owner.name, fit.rows.size());
  if (!fit.freed.empty()) text += ConstantsText(fit) + "\n";
  if (!fit.rows.empty()) text += ErrorsText(fit);
  return text + KeptText(fit);
}

// The rows of all files that the call wants; none, with the problem printed, on failure.
std::optional<std::vector<MeasuredCollective>> ReadRows(const CollectiveArguments& arguments,
                                                        int& status) {
  std::vector<MeasuredCollective> rows;
  for (const std::string& file : arguments.files) {
    auto read = ReadMeasuredCollectives(file, arguments.cluster, status);
    if (!read) return std::nullopt;
    for (MeasuredCollective& row : *read) {
      const bool wanted = arguments.only.empty() || StartsWithAny(row.system, arguments.only);
      if (wanted && !StartsWithAny(row.system, arguments.exclude)) rows.push_back(std::move(row));
    }
  }
  if (!rows.empty() || arguments.only.empty()) return rows;
  PrintProblems({{{},
                  fmt::format("--only {}: no system of the files begins so",
                              fmt::join(arguments.only, ","))}});
  status = kWrongInput;
  return std::nullopt;
}

int CalibrateFiles(const CollectiveArguments& arguments) {
  PrintWarnings(CheckFileName("--output", arguments.output, {"yaml", "yml"}));
  const Diagnostics misnamed = CheckOverlayName(LoadOptionsOf(arguments), arguments.output);
  if (!misnamed.empty()) {
    PrintProblems(misnamed);
    return kWrongInput;
  }
  const scenario::LoadOptions load = LoadOptionsOf(arguments);
  Result<Wanted> wanted = ReadWanted(arguments, load);
  if (!wanted) {
    PrintProblems(wanted.error());
    return kWrongInput;
  }
  int status = kDone;
  const auto rows = ReadRows(arguments, status);
  if (!rows) return status;
  if (wanted->owners.empty()) wanted->owners = OwnersOf(*rows);
  std::vector<CollectiveFit> fits;
  std::string text;
  for (const CollectiveOwner& owner : wanted->owners) {
    const Result<CollectiveFit> fit = FitCollectives(*rows, owner, wanted->options, load);
    if (!fit) {
      PrintProblems(fit.error());
      return kWrongInput;
    }
    text += (text.empty() ? "" : "\n") + FitText(*fit);
    fits.push_back(*fit);
  }
  const bool fitted = std::any_of(fits.begin(), fits.end(),
                                  [](const CollectiveFit& fit) { return !fit.freed.empty(); });
  if (fitted && !arguments.output.empty()) {
    std::string sources;
    for (const std::string& file : arguments.files) {
      sources += (sources.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
    }
    const auto written = report::WriteFile(arguments.output, CollectiveOverlayText(fits, sources));
    if (!written) {
      PrintProblems(written.error());
      return kFileTrouble;
    }
  }
  status = PrintOutput(text);
  if (fitted || status != kDone) return status;
  PrintProblems({{{}, "no constant was fitted: no rows, too few, or the shipped ones do as well"}});
  return kAnswerIsNo;
}

}  // namespace

void AddCalibrateCollectives(CLI::App& command, const std::string& executable, int& status) {
  auto arguments = std::make_shared<CollectiveArguments>();
  arguments->executable = executable;
  command
      .add_option("files", arguments->files,
                  "Tables of measured collectives, or what nccl-tests printed")
      ->required()
      ->type_name("FILE");
  command.add_option("--output,-o", arguments->output, "Write the constants as a YAML overlay")
      ->type_name("FILE.yaml")
      ->check(NamesAFile());
  AddScenarioPath(command, &arguments->scenario_path);
  command
      .add_option("--cluster", arguments->cluster,
                  "Cluster that was measured, where rows name none (else told by their system)")
      ->type_name("NAME");
  command
      .add_option("--of", arguments->owners,
                  "Only constants of these clusters, or of these tables of collective constants "
                  "to all systems that use them (default: each cluster that was measured)")
      ->delimiter(',');
  command
      .add_option("--constants", arguments->constants,
                  "Constants, or whole laws, to fit (default: those that predict left-out sizes)")
      ->delimiter(',');
  command.add_option("--from", arguments->smallest, "Smallest size to fit to")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--only", arguments->only, "Only rows whose system begins so")->delimiter(',');
  command.add_option("--exclude", arguments->exclude, "No rows whose system begins so")
      ->delimiter(',');
  command
      .add_option("--folds", arguments->folds,
                  "Parts of the sizes to leave out in turn (0: each size by itself)")
      ->check(CLI::Range(0, 100));
  AddThreads(command, &arguments->threads);
  command.callback([arguments, &status] { status = CalibrateFiles(*arguments); });
}

}  // namespace quadrille::tools
