// Between a config.json and a model in our keys: what is read, what is written, what was assumed.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/scenario/findings.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// Keys of config.json in order of preference: the same thing has different names in different
// model types.
using HuggingFaceKeys = std::initializer_list<std::string_view>;

class HuggingFaceTranslator {
 public:
  // `config` must outlive the translator.
  HuggingFaceTranslator(const YamlValue& config, Findings* findings);

  // The first of `keys` that is present, or nullptr.
  [[nodiscard]] const YamlValue* Get(HuggingFaceKeys keys) const;
  [[nodiscard]] std::optional<std::int64_t> Integer(HuggingFaceKeys keys) const;
  // Absent counts as `otherwise`.
  [[nodiscard]] bool Truth(HuggingFaceKeys keys, bool otherwise) const;

  // Writes our `key` ("experts.top_k"). `position` is where in config.json it comes from.
  void Set(std::string_view key, std::string text, const SourcePosition& position);
  // A trait of the model type, which no key states.
  void Trait(std::string_view key, std::string_view text);
  // True when one of `from` is present.
  bool Copy(std::string_view key, HuggingFaceKeys from);
  // A dimension that every model of the type states.
  void Require(std::string_view key, HuggingFaceKeys from);
  // Absent: `otherwise`, told as an assumption with `why`.
  void CopyOr(std::string_view key, HuggingFaceKeys from, std::string_view otherwise,
              std::string_view why);
  // Writes a value for the key `absent` that config.json lacks, and tells why.
  void Assume(std::string_view key, std::string_view absent, std::string text,
              std::string_view why);
  // Tells an assumption that writes nothing.
  void Note(std::string_view key, std::string value, std::string reason);
  void Error(const SourcePosition& position, const std::string& message);

  [[nodiscard]] const YamlValue& config() const { return config_; }
  [[nodiscard]] YamlValue Take() { return std::move(model_); }

 private:
  void Put(std::string_view key, YamlValue value);

  const YamlValue& config_;
  Findings* findings_;
  YamlValue model_;
};

}  // namespace quadrille::scenario
