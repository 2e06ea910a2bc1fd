#include "sim/scenario/yaml_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/scenario/text_checks.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {
namespace {

std::string ProblemsOf(std::string_view text) {
  Diagnostics problems;
  (void)ParseYaml(text, "f", &problems);
  return ToString(problems);
}

TEST(YamlTree, EveryKeyAndValueKnowsItsLineAndColumnFromOne) {
  Diagnostics problems;
  const auto tree = ParseYaml("a: 1\nb:\n  c: [x, {d: y}]\n", "f", &problems);
  ASSERT_TRUE(tree && problems.empty()) << ToString(problems);
  const YamlEntry* a = tree->Find("a");
  EXPECT_EQ(a->position.line, 1);
  EXPECT_EQ(a->position.column, 1);
  EXPECT_EQ(a->value.position.column, 4);
  const YamlEntry* c = tree->Find("b")->value.Find("c");
  EXPECT_EQ(c->position.line, 3);
  EXPECT_EQ(c->position.column, 3);
  const YamlValue& y = c->value.items[1].Find("d")->value;
  EXPECT_EQ(y.text, "y");
  EXPECT_EQ(y.position.line, 3);
  EXPECT_EQ(y.position.column, 14);
  EXPECT_EQ(y.position.file, "f");
}

TEST(YamlTree, AnEmptyValueStandsWhereItsKeyStands) {
  Diagnostics problems;
  const auto tree = ParseYaml("a: 1\n\nb:\n\n\nc: 2\n", "f", &problems);
  EXPECT_TRUE(tree->Find("b")->value.is_null());
  EXPECT_EQ(tree->Find("b")->value.position.line, 3);
}

TEST(YamlTree, DuplicateKeysAreReportedWithThePlaceOfTheFirst) {
  EXPECT_EQ(ProblemsOf("a: 1\nb: 2\na: 3\n"), "f:3:1: duplicate key 'a'; the first is on line 1");
}

TEST(YamlTree, AnchorsAliasesMergeKeysAndTagsAreRefused) {
  EXPECT_EQ(ProblemsOf("a: &x 1\nb: *x\n"),
            "f:1:4: anchors (&name) are not supported\n"
            "f:2:4: aliases (*name) are not supported; write the value out");
  EXPECT_EQ(ProblemsOf("a: !!int 1\n"), "f:1:4: tags ('tag:yaml.org,2002:int') are not supported");
  EXPECT_EQ(ProblemsOf("<<: {a: 1}\n"), "f:1:1: merge keys (<<) are not supported");
}

TEST(YamlTree, ABombOfAliasesCostsNothing) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) text += (k ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  Diagnostics problems;
  const auto tree = ParseYaml(text, "f", &problems);
  ASSERT_TRUE(tree);
  EXPECT_EQ(problems.size(), 30u + 29u * 9u);
}

TEST(YamlTree, DepthAndSizeAreLimited) {
  EXPECT_NE(ProblemsOf(std::string(100, '[') + std::string(100, ']')).find("nested more than 32"),
            std::string::npos);
  EXPECT_NE(ProblemsOf(std::string(50'000, '[')).find("nested more than 32"), std::string::npos);
  EXPECT_NE(ProblemsOf(std::string(50'000, '{')).find("f:"), std::string::npos);
  EXPECT_EQ(ProblemsOf("a: " + std::string(kMaxYamlBytes, 'x')),
            "f: 1048579 bytes are too many for a description (at most 1048576)");
}

TEST(YamlTree, TextThatIsNotTextIsRefusedAtItsPlace) {
  EXPECT_EQ(ProblemsOf("a: 1\nb: \xff\n"), "f:2:4: byte 0xff is not valid UTF-8");
  EXPECT_EQ(ProblemsOf("a: \xc0\xaf\n"), "f:1:4: byte 0xc0 is not valid UTF-8");
  EXPECT_EQ(ProblemsOf("a: \xed\xa0\x80\n"), "f:1:4: byte 0xed is not valid UTF-8");
  EXPECT_EQ(ProblemsOf(std::string_view("a: \0\n", 5)), "f:1:4: control character 0x00");
  EXPECT_EQ(ProblemsOf("a:\n\tb: 1\n"), "f:2:1: a tab indents this line; YAML wants spaces");
  EXPECT_EQ(ProblemsOf("a: \xc2\xb5s\n"), "");
  EXPECT_EQ(ProblemsOf("\t# a comment may stand behind a tab\na: 1\n"), "");
}

TEST(YamlTree, OneDocumentIsAllowed) {
  EXPECT_EQ(ProblemsOf(""), "f: the file is empty");
  EXPECT_EQ(ProblemsOf("# nothing\n"), "f: the file is empty");
  EXPECT_EQ(ProblemsOf("---\na: 1\n"), "");
  EXPECT_EQ(ProblemsOf("a: 1\n---\nb: 2\n"), "f:3:1: more than one document in the file");
}

TEST(Quoted, EscapesWhatATerminalShouldNotSeeAndCutsWhatIsLong) {
  EXPECT_EQ(Quoted("a\x1b[31m\n\xff"), "'a\\x1b[31m\\n\\xff'");
  EXPECT_EQ(Quoted(std::string(100, 'a')), "'" + std::string(60, 'a') + "...'");
}

// Reads `text` with a reader that knows tensor, name, rate, on and ranks; returns what it found.
struct Reading {
  std::int32_t tensor = 1;
  std::string name = "none";
  BytesPerSecond rate{1};
  bool on = false;
  std::vector<std::int32_t> ranks;
  std::string problems;
};

Reading ReadAll(std::string_view text) {
  Findings findings;
  const auto tree = ParseYaml(text, "f", findings.problems());
  Reading reading;
  if (tree) {
    MapReader reader(&*tree, "top", &findings);
    reader.Read("tensor", &reading.tensor, {1, 64});
    reader.Read("name", &reading.name);
    reader.Read("rate", &reading.rate);
    reader.Read("on", &reading.on);
    reader.Read("ranks", &reading.ranks, {0, 7});
    reader.Finish();
  }
  reading.problems = ToString(findings.TakeProblems());
  return reading;
}

TEST(MapReader, ReadsEachKindOfValue) {
  const Reading r = ReadAll("{tensor: 8, name: '010', rate: 400 Gb/s, on: true, ranks: [0, 7]}");
  EXPECT_EQ(r.problems, "");
  EXPECT_EQ(r.tensor, 8);
  EXPECT_EQ(r.name, "010");
  EXPECT_DOUBLE_EQ(r.rate.value(), 50e9);
  EXPECT_TRUE(r.on);
  EXPECT_EQ(r.ranks, (std::vector<std::int32_t>{0, 7}));
}

TEST(MapReader, AllProblemsComeAtOnceInTheOrderOfTheFile) {
  const Reading r = ReadAll(
      "rate: 400\n"
      "tensr: 8\n"
      "on: yes\n"
      "tensor: 65\n"
      "ranks: [1, 8]\n"
      "name:\n");
  EXPECT_EQ(
      r.problems,
      "f:1:7: top.rate: '400' has no unit, as in '450 GB/s'; accepted: B/s, kB/s, MB/s, GB/s, "
      "TB/s, MiB/s, GiB/s, TiB/s, b/s, kb/s, Mb/s, Gb/s, Tb/s\n"
      "f:2:1: unknown key 'tensr' in top; did you mean 'tensor'?\n"
      "f:3:5: top.on: expected true or false, got 'yes'\n"
      "f:4:9: top.tensor: 65 is not between 1 and 64\n"
      "f:5:12: top.ranks: 8 is not between 0 and 7\n"
      "f:6:1: top.name: has no value");
}

TEST(MapReader, AWrongValueLeavesTheDefaultAlone) {
  const Reading r = ReadAll("{tensor: eight, rate: 0 GB/s, ranks: 3}");
  EXPECT_EQ(r.tensor, 1);
  EXPECT_DOUBLE_EQ(r.rate.value(), 1);
  EXPECT_EQ(r.problems,
            "f:1:10: top.tensor: expected a whole number, got 'eight'\n"
            "f:1:23: top.rate: must not be zero\n"
            "f:1:38: top.ranks: expected a list such as [0, 1], got a single value");
}

TEST(MapReader, QuotesMakeAStringOfANumber) {
  EXPECT_EQ(ReadAll("tensor: '8'").problems,
            "f:1:9: top.tensor: the quotes make '8' a string; write it without");
}

TEST(MapReader, AbbreviationsAreExplained) {
  EXPECT_EQ(ReadAll("tp: 8").problems, "f:1:1: unknown key 'tp' in top; did you mean 'tensor'?");
}

TEST(MapReader, AMissingKeyStandsWhereItsMapStands) {
  Findings findings;
  const auto tree = ParseYaml("a: 1\nsection:\n  x: 1\n", "f", findings.problems());
  MapReader root(&*tree, "", &findings);
  MapReader section = root.Section("section");
  section.Require({"x", "y"});
  EXPECT_EQ(ToString(findings.TakeProblems()), "f:2:1: section.y: is missing");
}

TEST(Findings, AKeyBelowAnUnreadableMapIsNotGood) {
  Findings findings;
  findings.Fail("parallel");
  EXPECT_FALSE(findings.Good({"parallel.tensor"}));
  EXPECT_TRUE(findings.Good({"training.tensor"}));
}

}  // namespace
}  // namespace quadrille::scenario
