// The tree is built from yaml-cpp's events, not from its nodes. Events come with marks for keys as
// well as values, let an alias be refused where it stands (nodes would share it, so a few lines
// could expand to gigabytes), and show both of two equal keys (nodes keep the first in silence).
//
// What yaml-cpp cannot report well is looked for in the text first: encoding, control characters,
// tabs that indent.
#include "sim/scenario/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

// Leaves yaml-cpp's recursion when a limit is passed; caught in ParseYaml.
struct LimitReached {
  YAML::Mark mark;
  std::string message;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, Diagnostics* problems) : file_(file), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    YamlValue value;
    value.position = At(mark);
    Add(std::move(value));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Problem(mark, "aliases (*name) are not supported; write the value out");
    YamlValue value;
    value.refused = true;
    value.position = At(mark);
    Add(std::move(value));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    YamlValue value;
    value.kind = YamlValue::Kind::kScalar;
    value.text = text;
    value.quoted = tag == "!";
    value.position = At(mark);
    Add(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlValue::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlValue::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  [[nodiscard]] YamlValue TakeRoot() { return std::move(root_); }

 private:
  // A container that is not closed yet, and the key that waits for its value when it is a map.
  struct Frame {
    YamlValue container;
    std::optional<YamlEntry> pending;
  };

  [[nodiscard]] SourcePosition At(const YAML::Mark& mark) const {
    if (mark.is_null()) return {file_, 1, 1};
    return {file_, mark.line + 1, mark.column + 1};
  }
  void Problem(const YAML::Mark& mark, std::string message) {
    problems_->push_back({At(mark), std::move(message)});
  }
  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) Problem(mark, "anchors (&name) are not supported");
  }
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      Problem(mark, fmt::format("tags ({}) are not supported", Quoted(tag)));
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlValue::Kind kind) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (stack_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      throw LimitReached{mark, fmt::format("nested more than {} deep", kMaxYamlDepth)};
    }
    Frame frame;
    frame.container.kind = kind;
    frame.container.position = At(mark);
    stack_.push_back(std::move(frame));
  }

  void Close() {
    YamlValue value = std::move(stack_.back().container);
    stack_.pop_back();
    Add(std::move(value));
  }

  void Add(YamlValue value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.container.is_sequence()) {
      frame.container.items.push_back(std::move(value));
    } else if (!frame.pending) {
      AddKey(frame, std::move(value));
    } else {
      AddEntry(frame, std::move(value));
    }
  }

  void AddKey(Frame& frame, YamlValue key) {
    if (!key.is_scalar()) {
      problems_->push_back({key.position, "a key must be a plain word"});
    } else if (key.text == "<<") {
      problems_->push_back({key.position, "merge keys (<<) are not supported"});
      key.text.clear();
    }
    // An empty key marks an entry that is dropped when its value has come.
    frame.pending = YamlEntry{key.is_scalar() ? key.text : "", key.position, {}};
  }

  void AddEntry(Frame& frame, YamlValue value) {
    YamlEntry entry = std::move(*frame.pending);
    frame.pending.reset();
    if (entry.key.empty()) return;
    if (const YamlEntry* first = frame.container.Find(entry.key)) {
      problems_->push_back({entry.position, fmt::format("duplicate key {}; the first is on line {}",
                                                        Quoted(entry.key), first->position.line)});
      return;
    }
    if (frame.container.entries.size() >= kMaxEntries) {
      throw LimitReached{{}, fmt::format("a map of more than {} keys", kMaxEntries)};
    }
    // yaml-cpp marks an absent value wherever it noticed; the key is where the reader looks.
    if (value.is_null()) value.position = entry.position;
    entry.value = std::move(value);
    frame.container.entries.push_back(std::move(entry));
  }

  static constexpr std::size_t kMaxEntries = 1000;

  const std::string& file_;
  Diagnostics* problems_;
  std::vector<Frame> stack_;
  YamlValue root_;
};

}  // namespace

const YamlEntry* YamlValue::Find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

YamlEntry* YamlValue::Find(std::string_view key) {
  return const_cast<YamlEntry*>(static_cast<const YamlValue*>(this)->Find(key));
}

std::optional<YamlValue> ParseYaml(std::string_view text, const std::string& file,
                                   Diagnostics* problems) {
  if (!CheckText(text, file, problems)) return std::nullopt;
  TreeBuilder builder(file, problems);
  const auto position = [&](const YAML::Mark& mark) {
    if (mark.is_null()) return SourcePosition{file, 0, 0};
    return SourcePosition{file, mark.line + 1, mark.column + 1};
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      problems->push_back({{file, 0, 0}, "the file is empty"});
      return std::nullopt;
    }
    YamlValue root = builder.TakeRoot();
    Diagnostics ignored;
    TreeBuilder second(file, &ignored);
    if (parser.HandleNextDocument(second)) {
      problems->push_back({second.TakeRoot().position, "more than one document in the file"});
    }
    return root;
  } catch (const YAML::Exception& error) {
    problems->push_back({position(error.mark), fmt::format("not valid YAML: {}", error.msg)});
  } catch (const LimitReached& limit) {
    problems->push_back({position(limit.mark), limit.message});
  }
  return std::nullopt;
}

}  // namespace quadrille::scenario
