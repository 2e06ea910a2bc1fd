#include "sim/scenario/huggingface_translator.h"

#include <fmt/format.h>

#include <charconv>

namespace quadrille::scenario {
namespace {

YamlValue ScalarOf(std::string text, SourcePosition position) {
  YamlValue value;
  value.kind = YamlValue::Kind::kScalar;
  value.text = std::move(text);
  value.position = std::move(position);
  return value;
}

}  // namespace

HuggingFaceTranslator::HuggingFaceTranslator(const YamlValue& config, Findings* findings)
    : config_(config), findings_(findings) {
  model_.kind = YamlValue::Kind::kMap;
  model_.position = config.position;
}

const YamlValue* HuggingFaceTranslator::Get(HuggingFaceKeys keys) const {
  for (std::string_view key : keys) {
    if (const YamlEntry* entry = config_.Find(key)) return &entry->value;
  }
  return nullptr;
}

std::optional<std::int64_t> HuggingFaceTranslator::Integer(HuggingFaceKeys keys) const {
  const YamlValue* value = Get(keys);
  if (value == nullptr || !value->is_scalar()) return std::nullopt;
  std::int64_t number = 0;
  const char* end = value->text.data() + value->text.size();
  const auto [rest, error] = std::from_chars(value->text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

bool HuggingFaceTranslator::Truth(HuggingFaceKeys keys, bool otherwise) const {
  const YamlValue* value = Get(keys);
  return value == nullptr ? otherwise : value->text == "true";
}

void HuggingFaceTranslator::Set(std::string_view key, std::string text,
                                const SourcePosition& position) {
  Put(key, ScalarOf(std::move(text), position));
}

void HuggingFaceTranslator::Trait(std::string_view key, std::string_view text) {
  Set(key, std::string(text), config_.position);
}

bool HuggingFaceTranslator::Copy(std::string_view key, HuggingFaceKeys from) {
  const YamlValue* value = Get(from);
  if (value == nullptr) return false;
  Put(key, *value);
  return true;
}

void HuggingFaceTranslator::Require(std::string_view key, HuggingFaceKeys from) {
  if (Copy(key, from)) return;
  findings_->Fail("model." + std::string(key));
  findings_->Error(config_.position, fmt::format("model: config.json has no {}", *from.begin()));
}

void HuggingFaceTranslator::CopyOr(std::string_view key, HuggingFaceKeys from,
                                   std::string_view otherwise, std::string_view why) {
  if (!Copy(key, from)) Assume(key, *from.begin(), std::string(otherwise), why);
}

void HuggingFaceTranslator::Assume(std::string_view key, std::string_view absent, std::string text,
                                   std::string_view why) {
  findings_->Assume("model." + std::string(key), text,
                    fmt::format("config.json has no {}: {}", absent, why));
  Set(key, std::move(text), config_.position);
}

void HuggingFaceTranslator::Note(std::string_view key, std::string value, std::string reason) {
  findings_->Assume("model." + std::string(key), std::move(value), std::move(reason));
}

void HuggingFaceTranslator::Error(const SourcePosition& position, const std::string& message) {
  findings_->Fail("model");
  findings_->Error(position, "model: " + message);
}

void HuggingFaceTranslator::Put(std::string_view key, YamlValue value) {
  YamlValue* map = &model_;
  const std::size_t dot = key.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view section = key.substr(0, dot);
    if (map->Find(section) == nullptr) {
      YamlValue empty;
      empty.kind = YamlValue::Kind::kMap;
      empty.position = config_.position;
      map->entries.push_back({std::string(section), config_.position, std::move(empty)});
    }
    map = &map->Find(section)->value;
    key.remove_prefix(dot + 1);
  }
  const SourcePosition position = value.position;
  if (YamlEntry* entry = map->Find(key)) {
    *entry = {std::string(key), position, std::move(value)};
  } else {
    map->entries.push_back({std::string(key), position, std::move(value)});
  }
}

}  // namespace quadrille::scenario
