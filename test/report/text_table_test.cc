#include "sim/report/text_table.h"

#include <gtest/gtest.h>

namespace quadrille::report {
namespace {

TextTable Sample() {
  TextTable table({{"kind"}, {"total", Align::kRight}});
  table.AddRow({"TP", "1.5 s"});
  table.AddRow({"naïve", {"12 s", Emphasis::kError}});
  return table;
}

TEST(TextTableTest, ColumnsAlignAndLinesEndWithoutBlanks) {
  EXPECT_EQ(Sample().Render({}),
            "  kind   total\n"
            "  TP     1.5 s\n"
            "  naïve   12 s\n");
}

TEST(TextTableTest, ColourChangesNoColumn) {
  std::string painted = Sample().Render({.color = true});
  EXPECT_NE(painted.find("\x1b[1;31m12 s\x1b[0m"), std::string::npos);
  std::string plain;
  for (std::size_t i = 0; i < painted.size(); ++i) {
    if (painted[i] == '\x1b')
      i = painted.find('m', i);
    else
      plain += painted[i];
  }
  EXPECT_EQ(plain, Sample().Render({}));
}

TEST(TextTableTest, ATableWithoutTitlesHasNoHeader) {
  TextTable table({{""}, {""}});
  table.AddRow({"a", "b"});
  EXPECT_EQ(table.Render({}, 0), "a  b\n");
}

TEST(TextTableTest, ARuleIsAsWideAsTheTable) {
  TextTable table({{"a"}, {"b"}});
  table.AddRow({"xx", "yy"});
  table.AddRule();
  table.AddRow({"z", "w"});
  EXPECT_EQ(table.Render({}, 0), "a   b\nxx  yy\n──────\nz   w\n");
}

TEST(TextTableTest, CsvQuotesWhatItMust) {
  TextTable table({{"what"}, {"value"}});
  table.AddRow({"a,b", "say \"hi\""});
  table.AddRow({"two\nlines", " outer "});
  EXPECT_EQ(table.RenderCsv(),
            "what,value\n\"a,b\",\"say \"\"hi\"\"\"\n\"two\nlines\",\" outer \"\n");
}

TEST(TextTableDeathTest, ARowOfTheWrongLengthIsABug) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_DEATH(table.AddRow({"only one"}), "1 cells in a table of 2 columns");
}

TEST(DisplayWidthTest, CountsColumnsAndNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("ä≤█"), 3u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u) << "a combining acute";
  EXPECT_EQ(DisplayWidth("中文"), 4u);
  EXPECT_EQ(DisplayWidth("🚀"), 2u);
  EXPECT_EQ(DisplayWidth("\xff\xfe"), 2u) << "malformed bytes count one each";
}

TEST(WrappedTest, BreaksAtBlanksAndIndentsWhatFollows) {
  EXPECT_EQ(Wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(Wrapped("unbreakable", 3, 2), "unbreakable");
  EXPECT_EQ(Wrapped("", 3, 2), "");
}

}  // namespace
}  // namespace quadrille::report
