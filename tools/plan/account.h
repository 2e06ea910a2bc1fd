// What `quadrille plan` prints: accounts, each a few figures and tables that carry their formulas.
//
// An account is computed by a pure function from a scenario to typed values (the other files of
// this folder) and then put into this form, which one renderer turns into text and another into
// JSON.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace quadrille::plan {

// A value with its unit. A plain count is std::int64_t, a plain number (a factor, bytes per
// parameter) double; std::monostate is a cell that does not apply.
using Amount = std::variant<std::monostate, std::int64_t, double, std::string, bool, Bytes,
                            Duration, Ratio, ParameterCount, FlopCount, BytesPerSecond>;

// For a reader: "470 MB", "12.7 %", "-" where nothing applies.
[[nodiscard]] std::string ToText(const Amount& amount);

// One line: a name, a value, how it comes about, and what is to be said about it.
struct Figure {
  std::string key;    // in JSON; snake_case, unique within the account
  std::string label;  // for a reader
  Amount value;
  std::string formula;  // with the run's own numbers where they help
  std::string note;     // why it differs from a simpler or published figure; may be empty
};

struct AccountColumn {
  std::string key;
  std::string title;
};

struct AccountTable {
  std::string key;
  std::string title;
  std::vector<AccountColumn> columns;
  std::vector<std::vector<Amount>> rows;  // as many cells as columns
  std::string formula;
};

struct Account {
  std::string key;
  std::string title;
  std::vector<Figure> figures;
  std::vector<AccountTable> tables;
  std::vector<std::string> remarks;  // whole sentences, with their sources
};

}  // namespace quadrille::plan
