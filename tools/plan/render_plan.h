// A plan as text for a terminal and as JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/report/run_description.h"
#include "sim/report/text_table.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// Sections in the order of the accounts. Formulas and remarks wrap at the width of the style.
[[nodiscard]] std::string RenderText(const report::RunDescription& run,
                                     const std::vector<Account>& accounts,
                                     const report::TableStyle& style);

// {schema_version, version, scenario {name, hash, seed}, accounts {KEY: {title, figures {KEY:
// {value, unit, label, formula, note}}, tables {KEY: {title, formula, rows [{COLUMN: value}]}},
// remarks}}, assumptions [{key, value, reason}]}. Values are in plain units: bytes, seconds,
// parameters; shares are fractions of 1.
[[nodiscard]] std::string RenderJson(const report::RunDescription& run,
                                     const std::vector<Account>& accounts);

}  // namespace quadrille::plan
