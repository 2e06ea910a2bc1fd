// What reading a scenario has found so far: problems, warnings, assumptions, and where each key
// stands.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/scenario.h"

namespace quadrille::scenario {

// Keys are named by their dotted path from the root of the run file ("parallel.tensor"), also when
// they stand in an included file ("model.layers").
class Findings {
 public:
  void Error(SourcePosition position, std::string message,
             ProblemKind kind = ProblemKind::kWrongInput);
  void Error(Diagnostic problem);
  // An error at the key itself, or at its nearest ancestor that is present; the message opens with
  // the path.
  void ErrorAt(const std::string& path, std::string_view message,
               ProblemKind kind = ProblemKind::kWrongInput);
  void WarnAt(const std::string& path, std::string_view message);
  void Assume(std::string key, std::string value, std::string reason);

  // The reader tells where a key stands, and which keys it could not read.
  void Place(const std::string& path, SourcePosition position);
  void Fail(const std::string& path);

  [[nodiscard]] bool Has(const std::string& path) const { return places_.count(path) != 0; }
  [[nodiscard]] SourcePosition Position(std::string_view path) const;
  // None of the keys, nor a map around one, failed to be read: what is computed from them deserves
  // a message of its own.
  [[nodiscard]] bool Good(std::initializer_list<std::string_view> paths) const;

  [[nodiscard]] Diagnostics* problems() { return &problems_; }
  [[nodiscard]] bool any_problem() const { return !problems_.empty(); }
  // In the order of their positions: files as they were opened, then lines, then columns.
  [[nodiscard]] Diagnostics TakeProblems();
  [[nodiscard]] Diagnostics TakeWarnings() { return std::move(warnings_); }
  [[nodiscard]] std::vector<Assumption> TakeAssumptions() { return std::move(assumptions_); }

 private:
  Diagnostics problems_;
  Diagnostics warnings_;
  std::vector<Assumption> assumptions_;
  std::map<std::string, SourcePosition, std::less<>> places_;
  std::set<std::string, std::less<>> failed_;
};

}  // namespace quadrille::scenario
