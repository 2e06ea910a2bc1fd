#include "sim/scenario/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "sim/base/nearest.h"
#include "sim/scenario/huggingface_import.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {

namespace fs = std::filesystem;

// A place of a run file where a name stands for a file.
struct IncludePlace {
  std::string_view path;
  std::string_view kind;  // directory below scenarios/
  std::string_view noun;
  std::string_view none;  // a name that stands for no file
};

namespace {

// Outer places come first: a cluster's file names its GPU.
constexpr IncludePlace kPlaces[] = {
    {"model", "models", "model", ""},
    {"cluster", "clusters", "cluster", ""},
    {"cluster.gpu", "gpus", "GPU", ""},
    {"cluster.collectives", "clusters/collectives", "table of collective constants", ""},
    {"stack", "clusters/stacks", "software stack", ""},
    {"reliability.failures", "failures", "table of failures", ""},
    {"overlap.tensor_parallel", "clusters/overlap", "tensor overlap table", "none"},
};

const IncludePlace* FindPlace(std::string_view path) {
  for (const IncludePlace& place : kPlaces) {
    if (place.path == path) return &place;
  }
  return nullptr;
}

constexpr int kMaxBases = 8;

// A name is one path component, so that it cannot lead out of the directories that are searched.
bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 100 || text.front() == '.' || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

// Has the keys that only a run file has.
bool IsRun(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path);
  if (!text) return false;
  Diagnostics ignored;
  const std::optional<YamlValue> tree = ParseYaml(*text, path, &ignored);
  return tree && tree->is_map() && tree->Find("model") != nullptr &&
         (tree->Find("cluster") != nullptr || tree->Find("training") != nullptr);
}

bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

YamlValue* FindPath(YamlValue* root, std::string_view path) {
  YamlValue* value = root;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    YamlEntry* entry = value->Find(path.substr(0, dot));
    if (entry == nullptr) return nullptr;
    value = &entry->value;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

}  // namespace

Result<std::string> ReadTextFile(const std::string& path, std::size_t max_bytes) {
  const auto unreadable = [&](const char* why) {
    return Error(why, {path, 0, 0}, ProblemKind::kUnreadable);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return unreadable("no such file");
  if (!fs::is_regular_file(status)) return unreadable("not a regular file");
  const auto size = fs::file_size(path, error);
  if (!error && size > max_bytes) {
    return Error(fmt::format("{} bytes are too many (at most {})", size, max_bytes), {path, 0, 0});
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) return unreadable("cannot be read");
  return text;
}

std::string Stem(const std::string& path) { return fs::path(path).stem().string(); }

bool StandsForFile(std::string_view path) { return FindPlace(path) != nullptr; }

std::string ResolvePath(const std::string& given, const SourcePosition& place) {
  const fs::path path(given);
  if (path.is_absolute()) return path.lexically_normal().string();
  return (fs::path(place.file).parent_path() / path).lexically_normal().string();
}

std::string Library::Locate(std::string_view kind, std::string_view name, std::string* run) const {
  const std::string file = fmt::format("{}.yaml", name);
  for (const std::string& directory : directories_) {
    for (const fs::path& candidate :
         {fs::path(directory) / kind / file, fs::path(directory) / file}) {
      std::error_code error;
      if (!fs::is_regular_file(candidate, error) || error) continue;
      std::string path = candidate.lexically_normal().string();
      if (SameFile(path, run_file_)) continue;
      if (kind == "runs" || kind == "overlays" || !IsRun(path)) return path;
      if (run != nullptr && run->empty()) *run = path;
    }
  }
  return "";
}

std::vector<std::string> Library::NamesOf(std::string_view kind) const {
  std::set<std::string> names;
  for (const std::string& directory : directories_) {
    std::error_code error;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(directory) / kind, error)) {
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

std::optional<YamlValue> Library::Describe(const IncludePlace& place, const YamlValue& name,
                                           int depth, Findings* findings) const {
  const auto fail = [&](const std::string& message, ProblemKind kind = ProblemKind::kWrongInput) {
    findings->Fail(std::string(place.path));
    findings->Error(name.position, fmt::format("{}: {}", place.path, message), kind);
    return std::nullopt;
  };
  if (!name.is_scalar() || !IsName(name.text)) {
    return fail(
        fmt::format("{} is not a name; the name of a {} is a file name without directory "
                    "and without '.yaml'",
                    Quoted(name.text), place.noun));
  }
  if (depth > kMaxBases) return fail("bases of bases are too many, or go round in a circle");
  std::string run;
  const std::string file = Locate(place.kind, name.text, &run);
  if (file.empty()) {
    const std::vector<std::string> known = NamesOf(place.kind);
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string_view nearest = Nearest(name.text, views);
    return fail(fmt::format("there is no {} named {}{}{}", place.noun, Quoted(name.text),
                            run.empty() ? "" : fmt::format(" ({} is a run)", run),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  }
  const Result<std::string> text = ReadTextFile(file);
  if (!text) return fail(ToString(text.error()), text.error().front().kind);
  std::optional<YamlValue> tree = ParseYaml(*text, file, findings->problems());
  if (!tree) return findings->Fail(std::string(place.path)), std::nullopt;
  if (!tree->is_map()) {
    findings->Fail(std::string(place.path));
    findings->Error(tree->position, fmt::format("expected the keys of a {}", place.noun));
    return std::nullopt;
  }
  const YamlEntry* given = tree->Find("name");
  if (given != nullptr && given->value.text != name.text) {
    findings->Error(given->value.position,
                    fmt::format("name is {}, but the file is named {}", Quoted(given->value.text),
                                Quoted(name.text)));
  } else if (given == nullptr) {
    tree->entries.push_back({"name", name.position, name});
  }
  if (!PutOnBase(place, &*tree, depth, findings)) return std::nullopt;
  ApplyOverlays(overlays_, place.kind, name.text, &*tree, findings);
  return tree;
}

bool Library::PutOnBase(const IncludePlace& place, YamlValue* value, int depth,
                        Findings* findings) const {
  const auto base = std::find_if(value->entries.begin(), value->entries.end(),
                                 [](const YamlEntry& entry) { return entry.key == "base"; });
  if (base == value->entries.end()) return true;
  const YamlValue name = base->value;
  value->entries.erase(base);
  std::optional<YamlValue> tree = Describe(place, name, depth + 1, findings);
  if (!tree) return false;
  tree->position = value->position;
  MergeOnto(*value, &*tree);
  *value = std::move(*tree);
  return true;
}

bool Library::Expand(std::string_view path, YamlValue* value, Findings* findings) const {
  const IncludePlace* place = FindPlace(path);
  if (value->is_map()) {
    if (place != nullptr && !PutOnBase(*place, value, 0, findings)) return false;
    return path != "model" || ExpandHuggingFace(value, findings);
  }
  if (place == nullptr || !value->is_scalar() || value->text.empty()) return false;
  if (!findings->Good({path})) return false;  // it was tried before
  if (value->text == place->none) return false;
  std::optional<YamlValue> tree = Describe(*place, *value, 0, findings);
  if (!tree) return false;
  *value = std::move(*tree);
  return true;
}

void Library::ExpandAll(YamlValue* root, Findings* findings) const {
  for (const IncludePlace& place : kPlaces) {
    if (YamlValue* value = FindPath(root, place.path)) (void)Expand(place.path, value, findings);
  }
}

}  // namespace quadrille::scenario
