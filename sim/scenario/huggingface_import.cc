// From config.json to our keys. The tree of config.json is read by one model type's function into a
// tree of our own keys, which then is read like a model of ours. Values are copied with their
// positions, so that a problem which only a later check finds ("heads do not divide hidden") still
// points into config.json.
#include "sim/scenario/huggingface_import.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/nearest.h"
#include "sim/scenario/huggingface_json.h"
#include "sim/scenario/huggingface_translator.h"
#include "sim/scenario/huggingface_types.h"
#include "sim/scenario/library.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> TypeNames() {
  std::vector<std::string_view> names;
  for (const HuggingFaceModelType& type : HuggingFaceTypes()) names.push_back(type.name);
  return names;
}

const HuggingFaceModelType* FindType(std::string_view name) {
  for (const HuggingFaceModelType& type : HuggingFaceTypes()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string TypeList() { return fmt::format("{}", fmt::join(TypeNames(), ", ")); }

// Multimodal models keep the language model's keys one level down.
const YamlValue& LanguageModel(const YamlValue& config, Findings* findings) {
  const YamlEntry* text = config.Find("text_config");
  if (text == nullptr || !text->value.is_map()) return config;
  const YamlEntry* type = text->value.Find("model_type");
  if (type == nullptr || FindType(type->value.text) == nullptr) return config;
  findings->Assume("model", "text_config", "the language model of a multimodal one");
  return text->value;
}

}  // namespace

YamlValue TranslateHuggingFace(const YamlValue& config, const std::string& name,
                               Findings* findings) {
  const YamlValue& language = config.is_map() ? LanguageModel(config, findings) : config;
  HuggingFaceTranslator translator(language, findings);
  const YamlEntry* type = language.Find("model_type");
  if (!language.is_map() || type == nullptr) {
    translator.Error(config.position, "config.json has no model_type; known are " + TypeList());
    return translator.Take();
  }
  const HuggingFaceModelType* known = FindType(type->value.text);
  if (known == nullptr) {
    const std::string_view nearest = Nearest(type->value.text, TypeNames());
    translator.Error(
        type->value.position,
        fmt::format("model_type {} is not known{}; known are {}", Quoted(type->value.text),
                    nearest.empty() ? "" : fmt::format(", did you mean '{}'", nearest),
                    TypeList()));
    return translator.Take();
  }
  translator.Set("name", name, config.position);
  known->translate(translator);
  if (config.Find("quantization_config") != nullptr) {
    translator.Note("quantization_config", "ignored",
                    "it speaks of the released weights, not of training");
  }
  return translator.Take();
}

bool ExpandHuggingFace(YamlValue* model, Findings* findings) {
  const YamlEntry* given = model->Find("huggingface");
  if (given == nullptr) return true;
  if (!findings->Good({"model"})) return false;
  const auto fail = [&](const SourcePosition& position, const std::string& message,
                        ProblemKind kind = ProblemKind::kWrongInput) {
    findings->Fail("model");
    findings->Error(position, "model.huggingface: " + message, kind);
    return false;
  };
  const YamlValue& value = given->value;
  if (!value.is_scalar() || value.text.empty()) {
    return fail(given->position, "expected the path of a config.json");
  }
  fs::path path(ResolvePath(value.text, value.position));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) path /= "config.json";
  const std::string file = path.lexically_normal().string();
  const Result<std::string> text = ReadTextFile(file);
  if (!text) return fail(value.position, ToString(text.error()), text.error().front().kind);
  const std::size_t before = findings->problems()->size();
  std::optional<YamlValue> config = ParseJson(*text, file, findings->problems());
  if (!config || findings->problems()->size() > before) return findings->Fail("model"), false;
  if (!config->is_map()) return fail(config->position, "expected the keys of a config.json");
  // .../llama3-405b/config.json is called after its directory.
  const std::string stem =
      Stem(file) == "config" ? path.parent_path().filename().string() : Stem(file);
  YamlValue translated =
      TranslateHuggingFace(*config, stem.empty() ? "huggingface" : stem, findings);
  if (findings->problems()->size() > before) return findings->Fail("model"), false;
  for (YamlEntry& entry : model->entries) {
    if (entry.key == "huggingface") continue;
    if (YamlEntry* same = translated.Find(entry.key)) {
      *same = std::move(entry);
    } else {
      translated.entries.push_back(std::move(entry));
    }
  }
  *model = std::move(translated);
  return true;
}

}  // namespace quadrille::scenario
