// The validation page in the repository and what the binary carries of it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/simulate/prediction_interval.h"

namespace quadrille::tools {
namespace {

// The cells of a line of a Markdown table, without the blanks around them.
std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream text(line);
  std::string cell;
  std::getline(text, cell, '|');
  while (std::getline(text, cell, '|')) {
    const std::size_t first = cell.find_first_not_of(' ');
    const std::size_t last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// "hopper moe fp8" or "all dense steps".
simulate::ResidualStratum StratumNamed(const std::string& name) {
  std::istringstream words(name);
  simulate::ResidualStratum stratum;
  std::string architecture;
  words >> stratum.generation >> architecture >> stratum.precision;
  stratum.experts = architecture == "moe";
  if (stratum.generation == "all") stratum.generation = stratum.precision = "";
  return stratum;
}

TEST(ValidationPage, HoldsTheIntervalsThatReplayPrints) {
  std::ifstream page(QUADRILLE_SOURCE_DIR "/tools/validate/VALIDATION.md");
  std::string line;
  while (std::getline(page, line) && line != "## Intervals") continue;
  int compared = 0;
  while (std::getline(page, line) && !line.starts_with("## ")) {
    const std::vector<std::string> cells = Cells(line);
    if (cells.size() < 4 || cells[0] == "stratum" || cells[0].starts_with("---")) continue;
    // Too few rows for an interval of their own.
    const int rows = std::stoi(cells[1]);
    if (rows < 8) continue;
    const simulate::PredictionInterval interval = simulate::IntervalOf(StratumNamed(cells[0]));
    EXPECT_EQ(interval.basis, cells[0]);
    EXPECT_EQ(interval.rows, rows) << line;
    EXPECT_NEAR(interval.low, std::stod(cells[2]), 1e-9) << line;
    EXPECT_NEAR(interval.high, std::stod(cells[3]), 1e-9) << line;
    ++compared;
  }
  EXPECT_EQ(compared, 12);
}

}  // namespace
}  // namespace quadrille::tools
