// GPUs and clusters by name, each loaded once.
#pragma once

#include <map>
#include <string>

#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_loader.h"

namespace quadrille::tools {

class HardwareLibrary {
 public:
  explicit HardwareLibrary(scenario::LoadOptions options) : options_(std::move(options)) {}

  // A scenario whose cluster and collectives are those of `cluster` and whose GPU is `gpu` (empty:
  // the cluster's own); model and run are of no meaning. nullptr when there is none of that name.
  [[nodiscard]] const scenario::Scenario* Find(const std::string& cluster, const std::string& gpu);

 private:
  scenario::LoadOptions options_;
  std::map<std::pair<std::string, std::string>, Result<scenario::Scenario>> loaded_;
};

}  // namespace quadrille::tools
