// GPUs and clusters by name, each loaded once.
#pragma once

#include <array>
#include <map>
#include <string>

#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_loader.h"

namespace quadrille::tools {

class HardwareLibrary {
 public:
  explicit HardwareLibrary(scenario::LoadOptions options) : options_(std::move(options)) {}

  // A scenario whose cluster and collectives are those of `cluster` and whose GPU is `gpu` (empty:
  // the cluster's own); `collectives`, unless empty, is the table of constants in place of the
  // cluster's. Model and run are of no meaning. nullptr when there is none of that name.
  [[nodiscard]] const scenario::Scenario* Find(const std::string& cluster, const std::string& gpu,
                                               const std::string& collectives = "");

 private:
  scenario::LoadOptions options_;
  std::map<std::array<std::string, 3>, Result<scenario::Scenario>> loaded_;
};

}  // namespace quadrille::tools
