// The run file is parsed to a tree; overrides change the tree; names in it are replaced by the
// files they name; the software stack fills in what is left open; then each section is read into
// its part of the value, sizes are derived, and sections are checked against each other. Reading
// goes on after a problem, so that one call reports all of them.
#include "sim/scenario/scenario_loader.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "sim/base/nearest.h"
#include "sim/scenario/changed_ports.h"
#include "sim/scenario/cluster_loader.h"
#include "sim/scenario/collectives_loader.h"
#include "sim/scenario/cross_checks.h"
#include "sim/scenario/derivation.h"
#include "sim/scenario/effect_checks.h"
#include "sim/scenario/findings.h"
#include "sim/scenario/gpu_loader.h"
#include "sim/scenario/library.h"
#include "sim/scenario/model_loader.h"
#include "sim/scenario/overlay.h"
#include "sim/scenario/overrides.h"
#include "sim/scenario/reliability_loader.h"
#include "sim/scenario/run_sections.h"
#include "sim/scenario/scenario_hash.h"
#include "sim/scenario/software_stack.h"
#include "sim/scenario/text_checks.h"
#include "sim/scenario/written_keys.h"
#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {
namespace {

namespace fs = std::filesystem;

std::string DirectoryOf(const std::string& file) {
  const fs::path parent = fs::path(file).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<std::string> SearchedDirectories(const std::string& file, const LoadOptions& options) {
  std::vector<std::string> directories = {DirectoryOf(file)};
  directories.insert(directories.end(), options.scenario_path.begin(), options.scenario_path.end());
  if (!options.shipped_directory.empty()) directories.push_back(options.shipped_directory);
  return directories;
}

void LoadHardware(MapReader& root, const Library& library, Scenario* scenario) {
  MapReader cluster = root.Section("cluster");
  LoadCluster(cluster, &scenario->cluster);
  LoadGpu(cluster.Section("gpu"), &library, &scenario->gpu, &scenario->efficiency);
  scenario->cluster.gpu = scenario->gpu.name;
  LoadCollectives(cluster.Section("collectives"), &scenario->collectives);
  if (cluster.present()) cluster.Require({"collectives"});
  cluster.Finish();
}

void LoadRun(MapReader root, const std::string& file, const Library& library,
             const std::optional<topology::ClusterSpec>& described, Scenario* scenario) {
  if (!root.present()) return;
  GivenSizes given;
  if (root.Read("name", &scenario->name) && scenario->name != Stem(file)) {
    root.Error("name", fmt::format("{} is not the name of the file, {}", Quoted(scenario->name),
                                   Quoted(Stem(file))));
  }
  root.Read("description", &scenario->description);
  LoadModel(root.Section("model"), &scenario->model);
  LoadHardware(root, library, scenario);
  if (described) ScaleWithPorts(*described, &root.findings(), scenario);
  root.Read("nodes", &given.nodes, {1, 1 << 20});
  root.Read("gpus", &given.gpus, {1, 1 << 24});
  LoadParallel(root.Section("parallel"), &given, scenario);
  LoadSchedule(root.Section("schedule"), scenario);
  LoadTraining(root.Section("training"), &given, scenario);
  LoadExpertExecution(root.Section("experts"), scenario);
  LoadLayout(root.Section("layout"), scenario);
  LoadKernels(root.Section("kernels"), scenario);
  LoadOptimizer(root.Section("optimizer"), scenario);
  LoadOverlap(root.Section("overlap"), scenario);
  LoadPlacement(root.Section("placement"), scenario);
  LoadHost(root.Section("host"), scenario);
  LoadNetwork(root.Section("network"), scenario);
  LoadPerturbations(root, scenario);
  LoadReliability(root.Section("reliability"), scenario);
  LoadPublished(root, scenario);
  root.Read("seed", &scenario->seed);
  root.Require({"model", "cluster", "training"});
  root.Finish();
  DeriveSizes(given, &root.findings(), scenario);
  scenario->execution.sharding = scenario->parallel.layer_sharding();
  CrossCheck(&root.findings(), *scenario);
  if (!root.findings().any_problem()) WarnOfNoEffect(&root.findings(), *scenario);
}

bool IsInclude(const std::string& override) { return override.starts_with("include="); }

// Replaces names by files, with overlays and overrides, and fills in what the software stack says.
// Notes which keys are written where.
void Complete(const std::string& file, const std::vector<std::string>& overrides, Library* library,
              YamlValue* tree, std::vector<WrittenKey>* written, Findings* findings) {
  for (const std::string& override : overrides) {
    if (IsInclude(override)) ApplyOverride(override, tree, *library, findings);
  }
  std::vector<WrittenKey> includes;
  AddWrittenKeys(*tree, file, &includes);
  std::erase_if(includes, [](const WrittenKey& key) { return !key.key.starts_with("include"); });
  library->SetOverlays(TakeOverlays(tree, *library, findings));
  for (const std::string& override : overrides) {
    if (!IsInclude(override)) ApplyOverride(override, tree, *library, findings);
  }
  library->ExpandAll(tree, findings);
  *written = std::move(includes);
  AddWrittenKeys(*tree, file, written);
  const std::size_t given = written->size();
  ApplyStack(tree, findings);
  library->ExpandAll(tree, findings);  // the stack may have named a table
  AddWrittenKeys(*tree, file, written);
  for (std::size_t i = given; i < written->size(); ++i) (*written)[i].own = false;
  WarnOfUnusedOverlays(library->overlays(), findings);
}

}  // namespace

Result<Scenario> LoadScenarioText(const std::string& text, const std::string& file,
                                  const LoadOptions& options) {
  Findings findings;
  Scenario scenario;
  scenario.name = Stem(file);
  scenario.source_text = text;
  scenario.overridden = !options.overrides.empty();
  Library library(SearchedDirectories(file, options), file);
  std::optional<YamlValue> tree = ParseYaml(text, file, findings.problems());
  if (tree && tree->is_map()) {
    Complete(file, options.overrides, &library, &*tree, &scenario.written, &findings);
  }
  if (tree) {
    const std::optional<topology::ClusterSpec> described =
        DescribedCluster(*tree, library, options.overrides);
    LoadRun(MapReader(&*tree, "", &findings), file, library, described, &scenario);
  }
  if (findings.any_problem()) return tl::unexpected(findings.TakeProblems());
  scenario.warnings = findings.TakeWarnings();
  scenario.assumptions = findings.TakeAssumptions();
  scenario.hash = HashOf(scenario);
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& file, const LoadOptions& options) {
  std::string path = file;
  std::error_code error;
  if (!fs::exists(file, error)) {
    const Library library(SearchedDirectories(file, options), "");
    const bool name = fs::path(file).filename() == file;
    if (name) path = library.Locate("runs", file);
    if (!name || path.empty()) {
      const std::vector<std::string> known = library.NamesOf("runs");
      const std::vector<std::string_view> views(known.begin(), known.end());
      const std::string_view nearest = Nearest(Stem(file), views);
      // What has neither a directory nor an ending is the name of a shipped run.
      const bool is_path = !name || fs::path(file).extension() == ".yaml";
      return Error(
          fmt::format("no such file{}",
                      nearest.empty() ? "" : fmt::format("; did you mean the run '{}'?", nearest)),
          {file, 0, 0}, is_path ? ProblemKind::kUnreadable : ProblemKind::kWrongInput);
    }
  }
  const Result<std::string> text = ReadTextFile(path);
  if (!text) return tl::unexpected(text.error());
  return LoadScenarioText(*text, path, options);
}

std::string ShippedDirectory(const std::string& executable) {
  std::error_code error;
  fs::path directory = fs::canonical(executable, error).parent_path();
  if (error) directory = fs::path(executable).parent_path();
  // Beside the binary; build/PRESET/quadrille in a source tree; bin/quadrille in an installation.
  for (const fs::path& candidate :
       {directory / "scenarios", directory / ".." / ".." / "scenarios",
        directory / ".." / "scenarios", directory / ".." / "share" / "quadrille" / "scenarios",
        fs::path(QUADRILLE_SHIPPED_SCENARIOS)}) {
    if (fs::is_directory(candidate / "runs", error)) return candidate.lexically_normal().string();
  }
  return "";
}

}  // namespace quadrille::scenario
