// Constants that cite where they come from: `0.85`, or `{value: 0.85, source: "...", kind:
// fitted}`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/yaml_reader.h"

namespace quadrille::scenario {

struct SourceNote {
  std::string constant;
  std::string source;
  std::string kind;  // measured, fitted, published or assumed
};

inline constexpr std::string_view kSourceKinds[] = {"measured", "fitted", "published", "assumed"};

// "cluster.gpu.efficiency.gemm_fp8" -> "gemm_fp8": what the report calls a constant.
inline std::string ConstantName(std::string_view path) {
  for (std::string_view prefix :
       {"cluster.gpu.efficiency.", "cluster.gpu.", "cluster.collectives.", "stack."}) {
    if (path.starts_with(prefix)) return std::string(path.substr(prefix.size()));
  }
  return std::string(path);
}

// Reads `source` and `kind` of a map into a note on `constant`; a constant without them counts as
// assumed. `note` is for the file's reader.
inline void ReadSource(MapReader& reader, std::string constant, std::vector<SourceNote>* notes) {
  SourceNote note{std::move(constant), "not stated", "assumed"};
  std::string ignored;
  reader.Read("source", &note.source);
  reader.Read("note", &ignored);
  const int kind = reader.ReadChoice("kind", kSourceKinds);
  if (kind >= 0) note.kind = kSourceKinds[static_cast<std::size_t>(kind)];
  notes->push_back(std::move(note));
}

// Reads a constant in either form. `arguments` are those of the matching MapReader::Read. A plain
// value is covered by the note on its map when that has a source.
template <typename T, typename... Arguments>
bool ReadSourced(MapReader& reader, std::string_view key, T* out, std::vector<SourceNote>* notes,
                 Arguments... arguments) {
  const YamlValue* value = reader.Find(key);
  if (value == nullptr) return false;
  if (!value->is_map()) {
    if (!reader.Has("source")) {
      notes->push_back({ConstantName(reader.PathOf(key)), "not stated", "assumed"});
    }
    return reader.Read(key, out, arguments...);
  }
  MapReader section = reader.Section(key);
  const bool read = section.Read("value", out, arguments...);
  section.Require({"value"});
  ReadSource(section, ConstantName(section.path()), notes);
  section.Finish();
  return read;
}

}  // namespace quadrille::scenario
