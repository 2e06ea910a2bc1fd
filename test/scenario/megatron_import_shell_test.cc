// Scripts are read as a shell would run them, as far as that is known without running them.
#include "sim/scenario/megatron_import_shell.h"

#include <gtest/gtest.h>

#include "sim/scenario/megatron_import_words.h"
#include "test/scenario/scenario_test_support.h"

namespace quadrille::scenario {
namespace {

std::vector<std::string> LastCommand(const std::string& script) {
  const auto read = ReadShell(script, "x.sh");
  if (!read || read->commands.empty()) return {};
  std::vector<std::string> words;
  for (const ShellWord& word : read->commands.back()) words.push_back(word.text);
  return words;
}

TEST(MegatronImportShell, ExpansionsFollowTheShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(LastCommand("A='1 2'; run $A \"$A\""), (Words{"run", "1", "2", "1 2"}));
  EXPECT_EQ(LastCommand("A=(x 'y z'); run ${A[@]} \"${A[@]}\""),
            (Words{"run", "x", "y", "z", "x", "y z"}));
  EXPECT_EQ(LastCommand("run ${B:-7} ${B:-$C} a${D:-b}c"), (Words{"run", "7", "$C", "abc"}));
  EXPECT_EQ(LastCommand("A=1; A+=2; run pre$A ${A}post"), (Words{"run", "pre12", "12post"}));
  EXPECT_EQ(LastCommand("A=(1); A+=(2 3); run \"${A[@]}\""), (Words{"run", "1", "2", "3"}));
  EXPECT_EQ(LastCommand("A=(); run \"${A[@]}\" \"$@\" ''"), (Words{"run", ""}));
  EXPECT_EQ(LastCommand("run ${B:=7} $B ${B:-8} ${C=9} $C"),
            (Words{"run", "7", "7", "7", "9", "9"}));
  EXPECT_EQ(LastCommand("run $(date +%s) `id` $((1+X))"),
            (Words{"run", "$(date +%s)", "`id`", "$((1+X))"}));
  EXPECT_EQ(LastCommand("T=8; N=${N:-128}; run $((T * 2 + 1)) $(( $N / (T*${T}) )) \"$((N%5))\""),
            (Words{"run", "17", "2", "3"}));
  for (const char* wrong : {"$((1/0))", "$((1+))", "$((9223372036854775807+1))", "$((a b))"}) {
    EXPECT_EQ(LastCommand(std::string("run ") + wrong).back(), wrong);
  }
  EXPECT_EQ(LastCommand("run a \\\n  b # comment\n"), (Words{"run", "a", "b"}));
  EXPECT_EQ(LastCommand("run a > out.txt 2>&1"), (Words{"run", "a"}));
}

// What the last command's words are when everything before it was known.
TEST(MegatronImportShell, KnownConditionsAreFollowed) {
  using Words = std::vector<std::string>;
  const auto branch = [](const std::string& condition) {
    return LastCommand("A=fp8; B=; N=4; X=0\nif " + condition +
                       "; then X=1; elif [ $N -gt 3 ]; then X=2; else X=3; fi\nrun $X")
        .back();
  };
  for (const char* holds : {"true",
                            "[[ \"$A\" == \"fp8\" ]]",
                            "[[ $A = fp* ]]",
                            "[ $A = fp8 ]",
                            "test -n \"$A\"",
                            "[ -z \"$B\" ]",
                            "[[ -z $B && -n $A ]]",
                            "[[ $A == bf16 || $N -eq 4 ]]",
                            "[ $A = bf16 ] || [ $N -lt 5 ]",
                            "[ $N -le 4 ] && [ $N -ge 4 ]",
                            "[ $N -ne 3 -a $A != b ]",
                            "! [ -z $A ]",
                            "[[ ! ( -z $A ) ]]",
                            "(( N > 3 ))",
                            "((N == 4))",
                            "(( N ))",
                            "[[ -n ${A} ]]",
                            "[ \"${1:-MOCK}\" = MOCK ]",
                            "[[ $A != *16 ]]",
                            "[[ -f $X || $A == fp8 ]]",
                            "[ $((N * 2)) -eq 8 ]"}) {
    EXPECT_EQ(branch(holds), "1") << holds;
  }
  for (const char* fails :
       {"false", "[[ $A == bf16 ]]", "[ -n \"$B\" ]", "[[ $A == fp8 && $N -gt 4 ]]", "! true",
        "(( N < 4 ))", "[ $N -lt 4 ] || [ $N -gt 4 ]", "[[ -f $X && $A == bf16 ]]"}) {
    EXPECT_EQ(branch(fails), "2") << fails;
  }
  EXPECT_EQ(LastCommand("A=1; if [ $A = 2 ]; then A=3; else A=4; fi; run $A"), (Words{"run", "4"}));
  EXPECT_EQ(LastCommand("A=1; [ $A = 1 ] && B=2; [ $A = 2 ] && B=3; [ $A = 2 ] || C=4; run $B $C"),
            (Words{"run", "2", "4"}));
  EXPECT_EQ(LastCommand("cd /work && A=1 || A=2; mkdir x || A=3; run $A"), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("A=1; [ -z $A ] || { A=2; B=3; }; run $A $B"), (Words{"run", "2", "3"}));
}

TEST(MegatronImportShell, KnownCasesAndLoopsAreFollowed) {
  using Words = std::vector<std::string>;
  const std::string choose =
      "case $A in\n  bf16) X=1 ;;\n  fp8|\"mx fp8\") X=2 ;;\n  nv*) X=3;;\n  *) X=4\nesac\nrun $X";
  EXPECT_EQ(LastCommand("A=bf16; " + choose), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("A=fp8; " + choose), (Words{"run", "2"}));
  EXPECT_EQ(LastCommand("A='mx fp8'; " + choose), (Words{"run", "2"}));
  EXPECT_EQ(LastCommand("A=nvfp4; " + choose), (Words{"run", "3"}));
  EXPECT_EQ(LastCommand("A=; " + choose), (Words{"run", "4"}));
  EXPECT_EQ(LastCommand("A=()\nfor i in 1 2 3; do\n  A+=(--x$i)\ndone\nrun ${A[@]}"),
            (Words{"run", "--x1", "--x2", "--x3"}));
  EXPECT_EQ(LastCommand("for i in a b; do for j in c d; do X+=$i$j; done; done; run $X"),
            (Words{"run", "acadbcbd"}));
  EXPECT_EQ(LastCommand("for i in 1 2 3 4; do if [ $i = 2 ]; then continue; fi; "
                        "[ $i = 4 ] && break; X+=$i; done; run $X"),
            (Words{"run", "13"}));
  EXPECT_EQ(LastCommand("X=1; while false; do X=2; done; run $X"), (Words{"run", "1"}));
}

TEST(MegatronImportShell, WhatIsNotKnownIsPassedOverWithItsFlagsAndVariables) {
  const auto read = ReadShell(
      "T=8\n"
      "if [ -f x ]; then\n  A+=(--fp8-format hybrid --bf16); T=4\nelse\n  U=5\nfi\n"
      "[[ -n $Z ]] && A+=(--swiglu)\n"
      "[ -d y ] || exit 1\n"
      "while [ $# -gt 0 ]; do case $1 in --tp) V=$2; shift 2;; esac; done\n"
      "for i in $(seq 3); do W=$i; done\n"
      "run $T $V ${A[@]}\n",
      "x.sh");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->passed_over.size(), 4u);
  EXPECT_EQ(read->passed_over[0].what, "the body of 'if'");
  EXPECT_EQ(read->passed_over[0].position.line, 2);
  EXPECT_EQ(read->passed_over[0].flags, (std::set<std::string>{"--bf16", "--fp8-format"}));
  EXPECT_EQ(read->passed_over[0].variables, (std::set<std::string>{"T"}));  // nobody asks for U
  EXPECT_EQ(read->passed_over[1].what, "what follows '&&'");
  EXPECT_EQ(read->passed_over[1].flags, (std::set<std::string>{"--swiglu"}));
  EXPECT_EQ(read->passed_over[2].what, "the body of 'while'");
  EXPECT_EQ(read->passed_over[2].variables, (std::set<std::string>{"V"}));
  EXPECT_EQ(read->passed_over[3].what, "the body of 'for'");
  // An unknown condition leaves its other branches undecided, a known one before it does not.
  EXPECT_EQ(LastCommand("A=1; if [ -f x ]; then A=2; elif true; then A=3; fi; run $A"),
            (std::vector<std::string>{"run", "1"}));
  EXPECT_EQ(LastCommand("A=1; if true; then A=2; elif [ -f x ]; then A=3; fi; run $A"),
            (std::vector<std::string>{"run", "2"}));
  EXPECT_EQ(LastCommand("if [ -f x ]; then run c; fi; if false; then run a; fi; run b"),
            (std::vector<std::string>{"run", "b"}));
}

TEST(MegatronImportShell, EndlessGrowthIsRefused) {
  std::string loops = "X=1\n";
  for (int i = 0; i < 5; ++i) loops += "for a in 1 2 3 4 5 6 7 8; do ";
  loops += "X=1; ";
  for (int i = 0; i < 5; ++i) loops += "done; ";
  const auto turns = ReadShell(loops, "x.sh");
  ASSERT_FALSE(turns);
  EXPECT_NE(ToString(turns.error()).find("more than 1000 turns"), std::string::npos);
  std::string doubling = "X=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "X=$X$X\n";
  const auto grown = ReadShell(doubling, "x.sh");
  ASSERT_FALSE(grown);
  EXPECT_NE(ToString(grown.error()).find("longer than a megabyte"), std::string::npos);
}

TEST(MegatronImportShell, FunctionsAreNotFollowed) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(LastCommand("f() {\n A=4\n}\nA=1\nrun $A"), (Words{"run", "1"}));
  EXPECT_EQ(LastCommand("function f {\n A=4\n}\nA=1\nrun $A"), (Words{"run", "1"}));
}

TEST(MegatronImportShell, AnyTextIsReadOrRefusedWithoutEnd) {
  const std::string script = ReadFile(kTestDirectory + "/megatron/llama3-8b.sh");
  for (std::size_t cut = 0; cut < script.size(); cut += 7) {
    (void)ReadMegatronArguments(script.substr(cut), "x.sh");
    (void)ReadMegatronArguments(script.substr(0, cut), "x.sh");
  }
  for (const char* odd : {"$",
                          "${",
                          "$(",
                          "`",
                          "\\",
                          "((((",
                          "))))",
                          "${a[",
                          "a=(${a",
                          "<<<<",
                          "}",
                          "fi",
                          "done",
                          "esac",
                          "case",
                          "case x in",
                          "case x in (",
                          "for",
                          "for x in",
                          "for x in 1; do",
                          "for x in 1; do done",
                          "if",
                          "then",
                          "[[",
                          "[[ a",
                          "((",
                          "((1",
                          "if [[ x",
                          "else",
                          "{",
                          "f()",
                          "f() {",
                          "function",
                          "while; do",
                          "&&",
                          "||",
                          ";;",
                          "a &&",
                          "case x in x) ;;",
                          "!"}) {
    (void)ReadShell(odd, "x.sh");
  }
}

}  // namespace
}  // namespace quadrille::scenario
