// A YAML document as a plain tree in which every value knows where it stands.
//
// Only the part of YAML that a description needs: one document, maps with plain keys, sequences,
// scalars. Anchors, aliases, merge keys, tags and duplicate keys are problems, not features, so a
// tree is never larger than its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace quadrille::scenario {

struct YamlEntry;

struct YamlValue {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMap };

  Kind kind = Kind::kNull;
  std::string text;      // of a scalar
  bool quoted = false;   // a quoted scalar is a string whatever it looks like
  bool refused = false;  // a null in place of something that has been reported
  SourcePosition position;
  std::vector<YamlValue> items;
  std::vector<YamlEntry> entries;  // of a map, in file order, without duplicates

  [[nodiscard]] const YamlEntry* Find(std::string_view key) const;
  [[nodiscard]] YamlEntry* Find(std::string_view key);
  [[nodiscard]] bool is_map() const { return kind == Kind::kMap; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::kScalar; }
  [[nodiscard]] bool is_sequence() const { return kind == Kind::kSequence; }
  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
};

struct YamlEntry {
  std::string key;
  SourcePosition position;  // of the key
  YamlValue value;
};

// Limits that no honest description reaches.
inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr int kMaxYamlDepth = 32;

// Parses `text`, naming `file` in every position. Problems are appended to `problems`; the tree is
// still returned, without the offending parts, when they are local (a duplicate key), and is empty
// when the text cannot be parsed at all.
[[nodiscard]] std::optional<YamlValue> ParseYaml(std::string_view text, const std::string& file,
                                                 Diagnostics* problems);

}  // namespace quadrille::scenario
