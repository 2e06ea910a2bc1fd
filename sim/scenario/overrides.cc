#include "sim/scenario/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

struct ShortName {
  std::string_view path;
  std::string_view name;
};
constexpr ShortName kShortNames[] = {
    {"parallel.tp", "tensor"},         {"parallel.pp", "pipeline"},
    {"parallel.cp", "context"},        {"parallel.ep", "expert"},
    {"parallel.etp", "expert_tensor"}, {"parallel.dp", "data"},
    {"parallel.vp", "virtual_stages"}, {"parallel.sp", "sequence"},
};

void SetPositions(YamlValue* value) {
  value->position = {kCommandLine, 0, 0};
  for (YamlValue& item : value->items) SetPositions(&item);
  for (YamlEntry& entry : value->entries) {
    entry.position = {kCommandLine, 0, 0};
    SetPositions(&entry.value);
  }
}

bool IsWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// "parallel.tp" -> {"parallel", "tensor"}; empty when a part is not a key.
std::vector<std::string> SplitKey(std::string_view key) {
  std::vector<std::string> parts;
  std::string_view rest = key;
  for (;;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    if (!IsWord(rest.substr(0, dot))) return {};
    parts.emplace_back(rest.substr(0, dot));
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  for (const ShortName& row : kShortNames) {
    if (row.path == key) parts.back() = row.name;
  }
  return parts;
}

// The map that holds the last part of the key, made on the way where it is absent; nullptr when
// something else is there.
YamlValue* Descend(const std::vector<std::string>& parts, YamlValue* root, const Library& library,
                   Findings* findings) {
  YamlValue* map = root;
  std::string path;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    path += (i == 0 ? "" : ".") + parts[i];
    YamlEntry* entry = map->Find(parts[i]);
    if (entry == nullptr) {
      YamlValue made;
      made.kind = YamlValue::Kind::kMap;
      made.position = {kCommandLine, 0, 0};
      map->entries.push_back({parts[i], made.position, std::move(made)});
      entry = &map->entries.back();
    }
    if (entry->value.is_null()) entry->value.kind = YamlValue::Kind::kMap;
    const std::size_t before = findings->problems()->size();
    if (!library.Expand(path, &entry->value, findings)) {
      if (findings->problems()->size() == before) {
        findings->Error({kCommandLine, 0, 0}, fmt::format("{} is not a map of keys", path));
      }
      return nullptr;
    }
    map = &entry->value;
  }
  return map;
}

}  // namespace

void ApplyOverride(const std::string& text, YamlValue* root, const Library& library,
                   Findings* findings) {
  const SourcePosition here{kCommandLine, 0, 0};
  const std::size_t equals = text.find('=');
  const std::vector<std::string> parts = SplitKey(std::string_view(text).substr(0, equals));
  if (equals == std::string::npos || parts.empty()) {
    findings->Error(here,
                    fmt::format("{} is not KEY=VALUE, as in 'parallel.tensor=4'", Quoted(text)));
    return;
  }
  const std::string value_text = text.substr(equals + 1);
  YamlValue value;
  if (value_text.find_first_not_of(' ') != std::string::npos) {
    Diagnostics problems;
    std::optional<YamlValue> parsed = ParseYaml(value_text, kCommandLine, &problems);
    for (const Diagnostic& problem : problems) {
      findings->Error(here, fmt::format("{}: {}", Quoted(text), problem.message));
    }
    if (!parsed || !problems.empty()) return;
    value = std::move(*parsed);
  }
  SetPositions(&value);

  YamlValue* map = Descend(parts, root, library, findings);
  if (map == nullptr) return;
  const auto found = std::find_if(map->entries.begin(), map->entries.end(),
                                  [&](const YamlEntry& e) { return e.key == parts.back(); });
  if (value.is_null()) {
    if (found != map->entries.end()) map->entries.erase(found);
  } else if (found != map->entries.end()) {
    *found = {parts.back(), here, std::move(value)};
  } else {
    map->entries.push_back({parts.back(), here, std::move(value)});
  }
}

}  // namespace quadrille::scenario
