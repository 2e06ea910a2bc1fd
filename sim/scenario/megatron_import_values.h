// The flags of a job by name: their values as numbers and words, and which were asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/megatron_import_words.h"

namespace quadrille::scenario {

// Wrong and unevaluated values are collected in problems(), values that cannot be expressed in
// refused(); a reading that fails is as if the flag were absent.
class MegatronFlagValues {
 public:
  explicit MegatronFlagValues(std::vector<MegatronFlag> flags) : flags_(std::move(flags)) {
    for (const MegatronFlag& flag : flags_) last_.insert_or_assign(flag.name, &flag);
  }

  MegatronFlagValues(const MegatronFlagValues&) = delete;
  MegatronFlagValues& operator=(const MegatronFlagValues&) = delete;

  // A switch or any flag that is present.
  bool Has(const std::string& name);
  std::optional<std::string> Text(const std::string& name);
  std::vector<std::string> List(const std::string& name);
  std::optional<std::int64_t> Whole(const std::string& name);
  std::optional<double> Number(const std::string& name);
  // At least 1; absent is a problem.
  std::int64_t Require(const std::string& name, const std::string& file);
  void Error(const std::string& name, const std::string& message);
  // A value that is read but cannot be expressed.
  void Refuse(const std::string& name, const std::string& instead);

  [[nodiscard]] const std::vector<MegatronFlag>& all() const { return flags_; }
  [[nodiscard]] bool WasRead(const std::string& name) const { return read_.count(name) != 0; }
  [[nodiscard]] Diagnostics& problems() { return problems_; }
  [[nodiscard]] Diagnostics& refused() { return refused_; }

 private:
  void Error(const MegatronFlag& flag, const std::string& message);

  std::vector<MegatronFlag> flags_;
  std::map<std::string, const MegatronFlag*> last_;
  std::set<std::string> read_;
  Diagnostics problems_;
  Diagnostics refused_;
};

}  // namespace quadrille::scenario
