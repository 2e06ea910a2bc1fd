#include "tools/csv_input.h"

#include <utility>

#include "sim/scenario/library.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

// The largest published table has less than a megabyte.
constexpr std::size_t kMaxCsvBytes = std::size_t{1} << 28;

}  // namespace

std::optional<CsvTable> ReadTable(const std::string& file, int& status) {
  const Result<std::string> text = scenario::ReadTextFile(file, kMaxCsvBytes);
  if (!text) {
    PrintProblems(text.error());
    status = kFileTrouble;
    return std::nullopt;
  }
  Result<CsvTable> table = CsvTable::Parse(*text, file);
  if (table) return std::move(*table);
  PrintProblems(table.error());
  status = kWrongInput;
  return std::nullopt;
}

bool StartsWithAny(const std::string& id, const std::vector<std::string>& heads) {
  for (const std::string& head : heads) {
    if (id.rfind(head, 0) == 0) return true;
  }
  return false;
}

}  // namespace quadrille::tools
