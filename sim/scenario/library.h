// Descriptions by name: where a model, a GPU, a cluster or a table is looked up, and how it takes
// its name's place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/findings.h"
#include "sim/scenario/overlay.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// The text of a file. Errors: it is absent, no regular file or not readable, all of them
// kUnreadable; it is larger than `max_bytes`.
[[nodiscard]] Result<std::string> ReadTextFile(const std::string& path,
                                               std::size_t max_bytes = kMaxYamlBytes);

// File name without directory and extension.
[[nodiscard]] std::string Stem(const std::string& path);

// Whether a name can stand for a file at the dotted `path`: "model", "cluster.gpu".
[[nodiscard]] bool StandsForFile(std::string_view path);

// The path `given` at `place`: beside the file that gives it, or where the call is made when the
// command line does.
[[nodiscard]] std::string ResolvePath(const std::string& given, const SourcePosition& place);

struct IncludePlace;  // where a name stands for a file

class Library {
 public:
  // Directories are searched in this order. A file of kind "models" is looked for in
  // DIRECTORY/models/ and then in DIRECTORY, where runs of the same name may lie: none of them is
  // the answer, unless of kind "runs".
  Library(std::vector<std::string> directories, std::string run_file)
      : directories_(std::move(directories)), run_file_(std::move(run_file)) {}

  // The path of NAME.yaml of this kind ("models", "clusters/overlap"), empty when there is none.
  [[nodiscard]] std::string Locate(std::string_view kind, std::string_view name) const {
    return Locate(kind, name, nullptr);
  }
  // The names that exist of a kind, sorted, for hints.
  [[nodiscard]] std::vector<std::string> NamesOf(std::string_view kind) const;

  // If a file can stand at the dotted `path` and `*value` is a name, puts the map from that file in
  // its place, with the name as its key `name`. A map with a key `base`, in a file or in the run
  // itself, is put on top of the description of that name. Overlays change what they name. Whatever
  // is wrong is reported, and leaves the value as it was. True when `*value` is a map afterwards.
  bool Expand(std::string_view path, YamlValue* value, Findings* findings) const;

  // Expands every place below `root` where a file can stand.
  void ExpandAll(YamlValue* root, Findings* findings) const;

  // Applied to descriptions from now on.
  void SetOverlays(std::vector<OverlaySection> overlays) { overlays_ = std::move(overlays); }
  [[nodiscard]] const std::vector<OverlaySection>& overlays() const { return overlays_; }

 private:
  // `*run`: a run of this name that was found first and is none of the kind.
  [[nodiscard]] std::string Locate(std::string_view kind, std::string_view name,
                                   std::string* run) const;
  // The description that the scalar `name` names, with its base; what is wrong is reported at it.
  [[nodiscard]] std::optional<YamlValue> Describe(const IncludePlace& place, const YamlValue& name,
                                                  int depth, Findings* findings) const;
  // Puts a map with a key `base` on top of that description. False: it was wrong, and is reported.
  bool PutOnBase(const IncludePlace& place, YamlValue* value, int depth, Findings* findings) const;

  std::vector<std::string> directories_;
  std::string run_file_;
  std::vector<OverlaySection> overlays_;
};

}  // namespace quadrille::scenario
