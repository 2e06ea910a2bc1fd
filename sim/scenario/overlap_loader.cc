#include "sim/scenario/overlap_loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/names.h"

namespace quadrille::scenario {
namespace {

program::TensorOverlapEntry LoadEntry(MapReader reader) {
  program::TensorOverlapEntry entry;
  reader.ReadName("site", &entry.site, kOverlapSites);
  reader.ReadName("pass", &entry.pass, kOverlapPasses);
  reader.ReadName("method", &entry.method, kTensorOverlapMethods);
  const bool split = reader.Read("splits", &entry.splits, {2, 64});
  reader.Read("multiprocessors", &entry.multiprocessors, {0, 256});
  if (reader.present()) reader.Require({"site", "pass", "method"});
  if (split && entry.method != program::TensorOverlapMethod::kPipelined) {
    reader.Error("splits", "only the pipelined method is split");
  }
  reader.Finish();
  return entry;
}

}  // namespace

void LoadTensorOverlap(MapReader reader, program::TensorOverlapTable* table) {
  if (!reader.present()) return;
  std::string ignored;
  reader.Read("name", &table->name);
  reader.Read("description", &ignored);
  reader.Read("source", &ignored);
  reader.Require({"entries"});
  const YamlValue* list = reader.Find("entries");
  if (list != nullptr && !list->is_sequence()) {
    reader.Error("entries", "expected a list of {site, pass, method}");
    list = nullptr;
  }
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
    const std::string path = fmt::format("{}.entries.{}", reader.path(), i);
    const auto entry = LoadEntry(MapReader(&list->items[i], path, &reader.findings()));
    const bool repeated = std::any_of(
        table->entries.begin(), table->entries.end(),
        [&](const auto& other) { return other.site == entry.site && other.pass == entry.pass; });
    if (repeated && reader.findings().Good({path + ".site", path + ".pass"})) {
      reader.findings().ErrorAt(path, "this site and pass are in the table already");
    }
    table->entries.push_back(entry);
  }
  reader.Finish();
}

}  // namespace quadrille::scenario
