#include "sim/scenario/written_keys.h"

#include <algorithm>
#include <string_view>

#include "sim/scenario/library.h"
#include "sim/scenario/overrides.h"

namespace quadrille::scenario {
namespace {

constexpr std::string_view kWithoutEffect[] = {"name", "description", "published"};

class Walk {
 public:
  Walk(const std::string& file, std::vector<WrittenKey>* keys) : file_(file), keys_(*keys) {}

  void Map(const std::string& path, const YamlValue& map) {
    for (const YamlEntry& entry : map.entries) {
      const bool root = path.empty();
      if (root && std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), entry.key) !=
                      std::end(kWithoutEffect)) {
        continue;
      }
      if (!root && entry.key == "name" && StandsForFile(path)) continue;
      Value(root ? entry.key : path + "." + entry.key, entry.value, Own(entry.position));
    }
  }

 private:
  [[nodiscard]] bool Own(const SourcePosition& position) const {
    return position.file == file_ || position.file == kCommandLine;
  }

  void Value(const std::string& key, const YamlValue& value, bool own) {
    if (value.is_map()) {
      const YamlEntry* name = StandsForFile(key) ? value.Find("name") : nullptr;
      if (name != nullptr) Leaf(key, name->value.text, own);
      return Map(key, value);
    }
    if (!value.is_sequence()) return Leaf(key, value.text, own);
    const bool plain = std::all_of(value.items.begin(), value.items.end(),
                                   [](const YamlValue& item) { return item.is_scalar(); });
    if (!plain) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        Value(key + "." + std::to_string(i), value.items[i], own);
      }
      return;
    }
    std::string text;
    for (const YamlValue& item : value.items) text += (text.empty() ? "" : ", ") + item.text;
    Leaf(key, "[" + text + "]", own);
  }

  void Leaf(const std::string& key, const std::string& text, bool own) {
    const bool known = std::any_of(keys_.begin(), keys_.end(),
                                   [&](const WrittenKey& other) { return other.key == key; });
    if (!known) keys_.push_back({key, text, own});
  }

  const std::string& file_;
  std::vector<WrittenKey>& keys_;
};

}  // namespace

void AddWrittenKeys(const YamlValue& tree, const std::string& file, std::vector<WrittenKey>* keys) {
  if (tree.is_map()) Walk(file, keys).Map("", tree);
}

}  // namespace quadrille::scenario
