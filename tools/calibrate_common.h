// What the subcommands of `quadrille calibrate` share, and `validate` with them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/report/text_table.h"
#include "sim/scenario/scenario_loader.h"

namespace quadrille::tools {

// Adds the names of the descriptions of `kind` ("gpus") in the scenario directories.
void AddDescriptions(const scenario::LoadOptions& load, const std::string& kind,
                     std::set<std::string>* names);

// Adds a problem with `option` unless `name` is one of `known`; `what` says what it should be.
void CheckName(const std::string& option, const std::string& what, const std::string& name,
               const std::set<std::string>& known, Diagnostics* problems);

// Problems with the name of an overlay: one that a shipped description has would stand for it in
// every call from that directory.
[[nodiscard]] Diagnostics CheckOverlayName(const scenario::LoadOptions& load,
                                           const std::string& output);

// What --of names, GPUs in any spelling. Errors: names that are not in `known`, each with the
// nearest; `what` says what they should be.
[[nodiscard]] Result<std::vector<std::string>> WantedNames(const std::vector<std::string>& asked,
                                                           const std::set<std::string>& known,
                                                           const std::string& what);

// "name", rows, median, mean, 90th percentile and bias of relative errors, under ErrorColumns; of
// no errors, `otherwise` says why there are none.
[[nodiscard]] std::vector<report::Column> ErrorColumns(const std::string& title);
void AddErrors(const std::string& name, const std::vector<double>& errors, report::TextTable* table,
               const char* otherwise = "");

}  // namespace quadrille::tools
