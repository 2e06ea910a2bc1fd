#include "sim/compute/kernel_table.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace quadrille::compute {
namespace {

std::vector<std::string_view> SplitFields(std::string_view line) {
  std::vector<std::string_view> fields;
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i == line.size() || (line[i] == ',' && !quoted)) {
      fields.push_back(line.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return fields;
}

std::string NormalizedName(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return result;
}

bool ServesGpu(std::string_view row_gpu, std::string_view gpu_name) {
  const std::string row = NormalizedName(row_gpu);
  const std::string gpu = NormalizedName(gpu_name);
  return gpu == row || gpu.starts_with(row + "-");
}

std::optional<DataType> ParseType(std::string_view text) {
  if (text.starts_with("bf")) return DataType::kBf16;
  if (text.starts_with("float16") || text.starts_with("fp16")) return DataType::kFp16;
  if (text.starts_with("fp8") || text.starts_with("float8")) return DataType::kFp8;
  if (text.starts_with("nvfp4") || text.starts_with("fp4")) return DataType::kFp4;
  if (text.starts_with("float32") || text.starts_with("fp32")) return DataType::kFp32;
  return std::nullopt;
}

std::optional<model::GemmLayout> ParseLayout(std::string_view text) {
  if (text.empty() || text.starts_with("TN")) return model::GemmLayout::kTN;
  if (text.starts_with("NN")) return model::GemmLayout::kNN;
  if (text.starts_with("NT")) return model::GemmLayout::kNT;
  return std::nullopt;
}

enum Column : std::size_t { kGpu, kDtype, kM, kN, kK, kTime, kLayout, kCast, kColumnCount };
constexpr std::array<std::string_view, kColumnCount> kColumnNames{
    "gpu", "dtype", "m", "n", "k", "time_us", "layout", "includes_cast"};

bool IsOptional(std::size_t column) {
  return column == kGpu || column == kLayout || column == kCast;
}

using ColumnIndex = std::array<std::optional<std::size_t>, kColumnCount>;

// One row, with its problems appended. A row of another GPU gives nothing and is not checked.
class RowParser {
 public:
  RowParser(const std::vector<std::string_view>& fields, const ColumnIndex& columns,
            SourcePosition position, Diagnostics& problems)
      : fields_(fields), columns_(columns), position_(std::move(position)), problems_(problems) {}

  std::optional<MeasuredGemm> Parse(std::string_view gpu_name) {
    if (columns_[kGpu] && !ServesGpu(Field(kGpu), gpu_name)) return std::nullopt;
    const std::size_t before = problems_.size();
    MeasuredGemm row;
    row.m = PositiveInteger(kM);
    row.n = PositiveInteger(kN);
    row.k = PositiveInteger(kK);
    row.time = PositiveTime();
    if (const auto type = ParseType(Field(kDtype))) {
      row.type = *type;
      row.block_scaled = Field(kDtype).starts_with("fp8_block");
    } else {
      Problem(kDtype, "is not a known type (bfloat16, float16, fp8, fp8_block, nvfp4)");
    }
    if (const auto layout = ParseLayout(Field(kLayout))) {
      row.layout = *layout;
    } else {
      Problem(kLayout, "is not a layout (TN, NN, NT)");
    }
    row.includes_cast = Field(kCast) == "yes";
    if (!row.includes_cast && !Field(kCast).empty() && Field(kCast) != "no") {
      Problem(kCast, "is neither yes nor no");
    }
    if (problems_.size() > before) return std::nullopt;
    return row;
  }

 private:
  std::string_view Field(Column column) const {
    const auto index = columns_[column];
    return index && *index < fields_.size() ? fields_[*index] : std::string_view{};
  }

  void Problem(Column column, std::string_view what) {
    SourcePosition position = position_;
    if (const auto index = columns_[column]; index && *index < fields_.size()) {
      position.column = static_cast<int>(fields_[*index].data() - fields_[0].data()) + 1;
    }
    problems_.push_back(
        {position, fmt::format("{} '{}' {}", kColumnNames[column], Field(column), what)});
  }

  std::int64_t PositiveInteger(Column column) {
    const std::string_view text = Field(column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value <= 0) {
      Problem(column, "is not a positive integer");
      return 0;
    }
    return value;
  }

  Duration PositiveTime() {
    const std::string_view text = Field(kTime);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // An hour is more than any kernel takes and keeps the conversion in range.
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) ||
        !(value < 3.6e9)) {
      Problem(kTime, "is not a time in microseconds");
      return Duration(0);
    }
    return FromSeconds(value * 1e-6);
  }

  const std::vector<std::string_view>& fields_;
  const ColumnIndex& columns_;
  SourcePosition position_;
  Diagnostics& problems_;
};

Result<ColumnIndex> ParseHeader(std::string_view line, const SourcePosition& position) {
  ColumnIndex columns;
  const std::vector<std::string_view> names = SplitFields(line);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t c = 0; c < kColumnCount; ++c) {
      if (names[i] == kColumnNames[c]) columns[c] = i;
    }
  }
  Diagnostics problems;
  for (std::size_t c = 0; c < kColumnCount; ++c) {
    if (!IsOptional(c) && !columns[c]) {
      problems.push_back({position, fmt::format("no column '{}'", kColumnNames[c])});
    }
  }
  if (!problems.empty()) return tl::unexpected(problems);
  return columns;
}

}  // namespace

Result<std::vector<MeasuredGemm>> ParseMeasuredGemms(std::string_view text, const std::string& file,
                                                     std::string_view gpu_name) {
  std::optional<ColumnIndex> columns;
  std::vector<MeasuredGemm> rows;
  Diagnostics problems;
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const SourcePosition position{file, line_number, 1};
    if (!columns) {
      auto header = ParseHeader(line, position);
      if (!header) return tl::unexpected(header.error());
      columns = *header;
      continue;
    }
    const std::vector<std::string_view> fields = SplitFields(line);
    if (auto row = RowParser(fields, *columns, position, problems).Parse(gpu_name)) {
      rows.push_back(*row);
    }
  }
  if (!columns) return Error("no header line", {file, 1, 1});
  if (!problems.empty()) return tl::unexpected(problems);
  return rows;
}

std::vector<std::string> TableSources(std::string_view text) {
  constexpr std::string_view kMark = "# source: ";
  std::vector<std::string> sources;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kMark)) sources.emplace_back(line.substr(kMark.size()));
  }
  return sources;
}

std::optional<Duration> ExactTime(const std::vector<MeasuredGemm>& measured,
                                  const model::GemmShape& shape, DataType type, bool block_scaled) {
  if (shape.groups != 1) return std::nullopt;
  std::int64_t picoseconds = 0;
  std::int64_t count = 0;
  for (const MeasuredGemm& row : measured) {
    if (row.type == DataType::kFp8 && row.block_scaled != block_scaled) continue;
    if (row.m == shape.m && row.n == shape.n && row.k == shape.k && row.layout == shape.layout &&
        row.type == type) {
      picoseconds += row.time.count();
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return Duration((picoseconds + count / 2) / count);
}

}  // namespace quadrille::compute
