// An overlay is applied where a name takes its file's place (Library), so that overrides from the
// command line, which come later, win over it, and the strict reader that follows checks its keys
// like those of the description, each with the overlay's own position.
#include "sim/scenario/overlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sim/base/nearest.h"
#include "sim/scenario/library.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

struct SectionKind {
  std::string_view key;
  std::string_view kind;
  std::string_view noun;
};
constexpr SectionKind kSections[] = {
    {"models", "models", "model"},
    {"gpus", "gpus", "GPU"},
    {"clusters", "clusters", "cluster"},
    {"collectives", "clusters/collectives", "table of collective constants"},
    {"stacks", "clusters/stacks", "software stack"},
};
constexpr std::string_view kTexts[] = {"name", "description", "source"};

bool IsText(std::string_view key) {
  return std::find(std::begin(kTexts), std::end(kTexts), key) != std::end(kTexts);
}

std::string PathOf(const OverlaySection& section, std::string_view name) {
  return fmt::format("include.{}.{}", section.key, name);
}

// The file that `value` names, as a tree.
std::optional<YamlValue> ReadOverlay(const YamlValue& value, const Library& library,
                                     Findings* findings) {
  const auto fail = [&](const std::string& message, ProblemKind kind = ProblemKind::kWrongInput) {
    findings->Error(value.position, fmt::format("include: {}", message), kind);
    return std::nullopt;
  };
  if (!value.is_scalar() || value.text.empty()) return fail("expected a name or a file");
  const std::filesystem::path given(value.text);
  std::string file = value.text;
  if (given.extension() == ".yaml") {
    file = ResolvePath(value.text, value.position);
  } else {
    file = given.has_parent_path() ? "" : library.Locate("overlays", value.text);
    if (file.empty()) return fail(fmt::format("there is no overlay named {}", Quoted(value.text)));
  }
  const Result<std::string> text = ReadTextFile(file);
  if (!text) return fail(ToString(text.error()), text.error().front().kind);
  std::optional<YamlValue> tree = ParseYaml(*text, file, findings->problems());
  if (tree && !tree->is_map()) {
    findings->Error(tree->position, "expected an overlay with the keys gpus, stacks, ...");
    return std::nullopt;
  }
  return tree;
}

void CheckNames(const OverlaySection& section, std::string_view noun, const Library& library,
                Findings* findings) {
  const std::vector<std::string> known = library.NamesOf(section.kind);
  const std::vector<std::string_view> views(known.begin(), known.end());
  for (const YamlEntry& entry : section.changes.entries) {
    if (!entry.value.is_map()) {
      findings->Error(entry.value.position, fmt::format("expected the keys of a {}", noun));
    }
    if (!library.Locate(section.kind, entry.key).empty()) continue;
    const std::string_view nearest = Nearest(entry.key, views);
    findings->Error(
        entry.position,
        fmt::format("there is no {} named {}{}", noun, Quoted(entry.key),
                    nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  }
}

void TakeSections(YamlValue tree, const Library& library, std::vector<OverlaySection>* sections,
                  Findings* findings) {
  for (YamlEntry& entry : tree.entries) {
    if (IsText(entry.key)) continue;
    const auto* row = std::find_if(std::begin(kSections), std::end(kSections),
                                   [&](const SectionKind& s) { return s.key == entry.key; });
    if (row == std::end(kSections)) {
      std::vector<std::string_view> keys(std::begin(kTexts), std::end(kTexts));
      for (const SectionKind& section : kSections) keys.push_back(section.key);
      const std::string_view nearest = Nearest(entry.key, keys);
      findings->Error(
          entry.position,
          fmt::format("unknown key {}{}", Quoted(entry.key),
                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
      continue;
    }
    if (!entry.value.is_map()) {
      findings->Error(entry.value.position, fmt::format("expected names of {}", entry.key));
      continue;
    }
    sections->push_back({entry.key, std::string(row->kind), std::move(entry.value)});
    CheckNames(sections->back(), row->noun, library, findings);
  }
}

}  // namespace

void MergeOnto(const YamlValue& over, YamlValue* base) {
  if (!over.is_map() || !base->is_map() || over.Find("value") != nullptr) {
    *base = over;
    return;
  }
  for (const YamlEntry& entry : over.entries) {
    if (YamlEntry* found = base->Find(entry.key)) {
      found->position = entry.position;
      MergeOnto(entry.value, &found->value);
    } else {
      base->entries.push_back(entry);
    }
  }
}

std::vector<OverlaySection> TakeOverlays(YamlValue* root, const Library& library,
                                         Findings* findings) {
  std::vector<OverlaySection> sections;
  const auto found = std::find_if(root->entries.begin(), root->entries.end(),
                                  [](const YamlEntry& entry) { return entry.key == "include"; });
  if (found == root->entries.end()) return sections;
  const YamlEntry include = std::move(*found);
  root->entries.erase(found);
  findings->Place("include", include.position);
  std::vector<YamlValue> files = {include.value};
  if (include.value.is_sequence()) files = include.value.items;
  for (const YamlValue& file : files) {
    std::optional<YamlValue> tree = ReadOverlay(file, library, findings);
    if (tree) TakeSections(std::move(*tree), library, &sections, findings);
  }
  return sections;
}

void ApplyOverlays(const std::vector<OverlaySection>& sections, std::string_view kind,
                   std::string_view name, YamlValue* tree, Findings* findings) {
  for (const OverlaySection& section : sections) {
    const YamlEntry* entry = section.kind == kind ? section.changes.Find(name) : nullptr;
    if (entry == nullptr || !entry->value.is_map()) continue;
    MergeOnto(entry->value, tree);
    findings->Place(PathOf(section, name), entry->position);
  }
}

void WarnOfUnusedOverlays(const std::vector<OverlaySection>& sections, Findings* findings) {
  if (sections.empty()) return;
  for (const OverlaySection& section : sections) {
    for (const YamlEntry& entry : section.changes.entries) {
      if (findings->Has(PathOf(section, entry.key))) return;
    }
  }
  findings->WarnAt("include", "changes nothing that this run uses");
}

}  // namespace quadrille::scenario
