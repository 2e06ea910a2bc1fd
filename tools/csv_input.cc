#include "tools/csv_input.h"

#include <utility>

#include "sim/scenario/library.h"
#include "tools/command_line.h"

namespace quadrille::tools {
namespace {

// The largest published table has less than a megabyte.
constexpr std::size_t kMaxCsvBytes = std::size_t{1} << 28;

// What `parse` makes of the text of `file`.
template <typename Parse>
auto Read(const std::string& file, int& status, Parse parse)
    -> std::optional<typename decltype(parse(std::string()))::value_type> {
  const Result<std::string> text = scenario::ReadTextFile(file, kMaxCsvBytes);
  if (!text) {
    PrintProblems(text.error());
    status = kFileTrouble;
    return std::nullopt;
  }
  auto parsed = parse(*text);
  if (parsed) return std::move(*parsed);
  PrintProblems(parsed.error());
  status = kWrongInput;
  return std::nullopt;
}

}  // namespace

std::optional<CsvTable> ReadTable(const std::string& file, int& status) {
  return Read(file, status, [&](const std::string& text) { return CsvTable::Parse(text, file); });
}

std::optional<std::vector<MeasuredCollective>> ReadMeasuredCollectives(const std::string& file,
                                                                       const std::string& cluster,
                                                                       int& status) {
  return Read(file, status,
              [&](const std::string& text) { return ReadCollectives(text, file, cluster); });
}

bool StartsWithAny(const std::string& id, const std::vector<std::string>& heads) {
  for (const std::string& head : heads) {
    if (id.rfind(head, 0) == 0) return true;
  }
  return false;
}

}  // namespace quadrille::tools
