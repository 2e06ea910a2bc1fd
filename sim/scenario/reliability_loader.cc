#include "sim/scenario/reliability_loader.h"

#include <fmt/format.h>

#include "sim/scenario/run_sections.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

using reliability::FailureScope;

constexpr Named<FailureScope> kScopes[] = {
    {"gpu", FailureScope::kGpu}, {"node", FailureScope::kNode}, {"run", FailureScope::kRun}};
// Far above any machine, and low enough that a run of them ends.
constexpr Range<double> kCount{0.0, 1e6};

void LoadComponents(MapReader& reader, reliability::FailureTable* table) {
  const YamlValue* list = reader.Find("components");
  if (list == nullptr) return;
  if (!list->is_sequence() || list->items.empty()) {
    return reader.Error("components", "expected a list of components with their counts");
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    MapReader item(&list->items[i], fmt::format("{}.components.{}", reader.path(), i),
                   &reader.findings());
    reliability::FailureComponent component;
    item.Read("name", &component.name);
    item.Read("count", &component.count, kCount);
    item.ReadName("per", &component.per, kScopes);
    item.Read("replaces_node", &component.replaces_node);
    item.Require({"name", "count"});
    item.Finish();
    table->components.push_back(std::move(component));
  }
}

void LoadFailures(MapReader reader, reliability::FailureTable* table) {
  if (!reader.present()) return;
  std::string description;
  reader.Read("name", &table->name);
  reader.Read("description", &description);
  reader.Read("source", &table->source);
  reader.Read("gpus", &table->gpus, {1, 1 << 24});
  reader.Read("gpus_per_node", &table->gpus_per_node, {1, 4096});
  reader.Read("duration", &table->duration, Zero::kRefused);
  reader.Read("planned", &table->planned, kCount);
  LoadComponents(reader, table);
  reader.Require({"gpus", "duration", "components"});
  reader.Finish();
}

void LoadCheckpoint(MapReader reader, reliability::CheckpointSpec* checkpoint) {
  reliability::WallTime time{0};
  BytesPerSecond storage;
  if (reader.Read("interval", &time, Zero::kRefused)) checkpoint->interval = time;
  if (reader.Read("cost", &time, Zero::kAllowed)) checkpoint->cost = time;
  if (reader.Read("storage", &storage)) checkpoint->storage = storage;
  if (checkpoint->cost && checkpoint->storage) {
    reader.Error("storage", "either the cost of a checkpoint or the rate it is written at");
  }
  if (reader.present() && !reader.Has("cost") && !reader.Has("storage")) {
    reader.findings().ErrorAt(
        reader.path(), "a checkpoint needs its cost, or the rate of the storage it is written to");
  }
  reader.Finish();
}

}  // namespace

void LoadReliability(MapReader reader, Scenario* scenario) {
  if (!reader.present()) return;
  reliability::ReliabilitySpec spec;
  const YamlValue* failures = reader.Find("failures");
  // A name that stands for no file was reported where it was looked up.
  if (failures != nullptr && !failures->is_scalar()) {
    LoadFailures(reader.Section("failures"), &spec.failures);
  }
  reliability::WallTime duration{0};
  TokenCount tokens;
  if (reader.Read("duration", &duration, Zero::kRefused)) spec.duration = duration;
  if (reader.Read("tokens", &tokens)) spec.tokens = tokens;
  if (spec.duration && spec.tokens) {
    reader.Error("tokens", "a run ends after a duration or after a number of tokens, not both");
  }
  if (!reader.Has("duration") && !reader.Has("tokens")) {
    reader.findings().ErrorAt(reader.path(),
                              "the run has no end: give its duration or its number of tokens");
  }
  LoadCheckpoint(reader.Section("checkpoint"), &spec.checkpoint);
  reader.Read("detection", &spec.detection, Zero::kAllowed);
  reader.Read("restart", &spec.restart, Zero::kAllowed);
  reader.Read("planned_restart", &spec.planned, Zero::kAllowed);
  reader.Read("spares", &spec.spares, {0, 1 << 20});
  reader.Read("repair", &spec.repair, Zero::kAllowed);
  reader.Require({"failures", "checkpoint", "detection", "restart"});
  reader.Finish();
  scenario->reliability = std::move(spec);
}

}  // namespace quadrille::scenario
