#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/validate/csv_table.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {
namespace {

namespace fs = std::filesystem;

const fs::path kMalformed = fs::path(QUADRILLE_SOURCE_DIR) / "test/tools/malformed_csv";

std::string TextOf(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST(CsvTable, ReadsQuotedFieldsAcrossLinesAndKnowsWhereEachRowStarts) {
  const auto table =
      CsvTable::Parse("\xEF\xBB\xBFid,notes\r\na,\"x, \"\"y\"\"\nz\"\r\n\r\nb,\n", "t.csv");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows(), 2U);
  EXPECT_EQ(table->At(0, "notes"), "x, \"y\"\nz");
  EXPECT_EQ(table->At(1, "id"), "b");
  EXPECT_EQ(table->At(1, "absent"), "");
  EXPECT_EQ(table->PositionOf(1).line, 5);
}

TEST(CsvTable, ReadsAnInferredNumberAndRefusesWhatIsNone) {
  const auto table = CsvTable::Parse("n\n8?\nseven\n-1\n2.5\n", "t.csv");
  ASSERT_TRUE(table);
  Diagnostics problems;
  CellReader cells(*table, &problems);
  EXPECT_EQ(cells.Whole(0, "n", 0, 0), 8);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(cells.Whole(1, "n", 3, 0), 3);
  EXPECT_EQ(cells.Whole(2, "n", 3, 0), 3);
  EXPECT_EQ(cells.Whole(3, "n", 3, 0), 3);
  EXPECT_EQ(ToString(problems),
            "t.csv:3:1: n: 'seven' is not a number\nt.csv:4:1: n: '-1' is less than 0\n"
            "t.csv:5:1: n: '2.5' is not a whole number");
}

TEST(CsvTable, RefusesEveryFileOfTheMalformedCorpusWithTheExpectedMessages) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kMalformed)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_GE(files.size(), 8U);
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const auto table = CsvTable::Parse(TextOf(file), name);
    const auto steps = table ? ReadMeasuredSteps(*table)
                             : Result<std::vector<MeasuredStep>>(tl::unexpected(table.error()));
    ASSERT_FALSE(steps) << name;
    fs::path expected = file;
    expected.replace_extension(".expected");
    EXPECT_EQ(ToString(steps.error()) + "\n", TextOf(expected)) << name;
  }
}

}  // namespace
}  // namespace quadrille::tools
