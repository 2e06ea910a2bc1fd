// Scenarios and look-ups that the tests of `quadrille plan` share.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/scenario/scenario_loader.h"
#include "tools/plan/account.h"

namespace quadrille::plan {

// A shipped run under overrides. A run that does not load fails the test by an exception with the
// messages.
inline scenario::LoadOptions Shipped(std::vector<std::string> overrides) {
  scenario::LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  options.overrides = std::move(overrides);
  return options;
}

inline scenario::Scenario ShippedRun(const std::string& name,
                                     std::vector<std::string> overrides = {}) {
  auto loaded = scenario::LoadScenario(name, Shipped(std::move(overrides)));
  if (!loaded) throw std::runtime_error(ToString(loaded.error()));
  return std::move(*loaded);
}

// The same of the text of a run file.
inline scenario::Scenario RunOf(const std::string& text, std::vector<std::string> overrides = {}) {
  auto loaded = scenario::LoadScenarioText(text, "own.yaml", Shipped(std::move(overrides)));
  if (!loaded) throw std::runtime_error(ToString(loaded.error()));
  return std::move(*loaded);
}

inline const Figure& FigureOf(const Account& account, const std::string& key) {
  for (const Figure& figure : account.figures) {
    if (figure.key == key) return figure;
  }
  throw std::runtime_error("no figure " + key);
}

inline const AccountTable& TableOf(const Account& account, const std::string& key) {
  for (const AccountTable& table : account.tables) {
    if (table.key == key) return table;
  }
  throw std::runtime_error("no table " + key);
}

// The cell of `column` in the first row whose first cell reads `row`.
inline const Amount& CellOf(const AccountTable& table, const std::string& row,
                            const std::string& column) {
  for (const std::vector<Amount>& cells : table.rows) {
    if (ToText(cells.front()) != row) continue;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (table.columns[c].key == column) return cells[c];
    }
  }
  throw std::runtime_error("no cell " + row + "/" + column);
}

inline double Gigabytes(Bytes bytes) { return static_cast<double>(bytes.value()) / 1e9; }
inline double Gigabytes(const Amount& amount) { return Gigabytes(std::get<Bytes>(amount)); }

}  // namespace quadrille::plan
