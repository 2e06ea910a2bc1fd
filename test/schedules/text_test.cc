#include "schedules/text.h"

#include "schedule_test_support.h"
#include "schedules/check.h"
#include "schedules/evaluate.h"

namespace quadrille::schedules {
namespace {

constexpr std::string_view kHeader = "# schedule=x P=2 M=2 v=1 placement=loop\n";

std::string Problems(std::string_view text) {
  const auto result = ParseSchedule(text, "order.txt");
  return result ? "accepted" : ToString(result.error());
}
std::string WithHeader(std::string_view body) { return std::string(kHeader) + std::string(body); }

TEST(Print, HeaderStatesEverythingTheReaderNeeds) {
  EXPECT_EQ(PrintSchedule(Build("1f1b", Request(2, 1)), true),
            "# schedule=1f1b P=2 M=1 v=1 placement=loop\nF0.0 B0.0\nF0.0 B0.0\n");
  // v of a bidirectional order counts the chunks of one replica.
  const std::string chimera = PrintSchedule(Build("chimera", Request(2, 2)), true);
  EXPECT_EQ(chimera.substr(0, chimera.find('\n')),
            "# schedule=chimera P=2 M=2 v=1 placement=bidir");
  const std::string sliced = PrintSchedule(Build("seq1f1b", Request(1, 1, 0, 0, 2)), true);
  EXPECT_EQ(
      sliced,
      "# schedule=seq1f1b P=1 M=1 v=1 placement=loop slices=2\nF0.0s0 F0.0s1 B0.0s1 B0.0s0\n");
}

TEST(Parse, AcceptsWhatForeignFilesHold) {
  // Further keys, comments, blank lines, tabs and Windows line ends.
  const auto schedule = ParseSchedule(
      "# a comment\r\n# schedule=own P=2 M=2 v=1 F=any B=any W=any placement=loop "
      "source=a:b/c.py\r\n"
      "\r\n  F0.0\tF1.0 B0.0 B1.0  \r\n# rank 1\r\nF0.0 I0.0 F1.0&W0.0 B1.0",
      "order.txt");
  ASSERT_TRUE(schedule.has_value()) << ToString(schedule.error());
  EXPECT_EQ(schedule->name, "own");
  EXPECT_EQ(PrintSchedule(*schedule, false), "F0.0 F1.0 B0.0 B1.0\nF0.0 I0.0 F1.0&W0.0 B1.0\n");
}

TEST(Parse, DerivesLopsidedDirectionsFromTheOrder) {
  const std::string text = PrintSchedule(Build("chimera", Request(4, 3)), true);
  const auto schedule = ParseSchedule(text, "order.txt");
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(schedule->microbatches_of(ChunkId(0)), 2);
  EXPECT_EQ(schedule->microbatches_of(ChunkId(1)), 1);
}

// Sends and receives of a lowered step stand between its actions and change nothing about them.
TEST(Parse, ReadsTheActionsOfALoweredStep) {
  const auto log = ParseSchedule(
      "# lowered=megatron mode=1f1b P=2 M=2 v=1 tokens=any\n"
      "F0.0 sf F1.0 sf|rb B0.0 rb B1.0\n"
      "rf F0.0 B0.0 sb|rf F1.0 B1.0 sb\n",
      "log");
  ASSERT_TRUE(log) << quadrille::ToString(log.error());
  EXPECT_EQ(PrintSchedule(*log, false), "F0.0 F1.0 B0.0 B1.0\nF0.0 B0.0 F1.0 B1.0\n");
  const auto both = ParseSchedule(
      "# lowered=dualpipe P=2 M=2 tokens=any\n"
      "F0.0 sf0.0 rf0.1 F0.1 rb0.0|sb0.1 B0.1 B0.0\n"
      "F0.1 sf0.1 rf0.0 F0.0 B0.0 B0.1\n",
      "log");
  ASSERT_TRUE(both) << quadrille::ToString(both.error());
  EXPECT_EQ(both->placement, Placement::kBidirectional);
  const auto torch = ParseSchedule("# lowered=torch schedule=x P=2 M=2 v=1\n0F0\n1F0\n", "log");
  ASSERT_FALSE(torch);
  EXPECT_NE(quadrille::ToString(torch.error()).find("lowered by PyTorch"), std::string::npos);
}

TEST(Parse, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(Problems(""),
            "order.txt: no header and no orders: the file is empty; `quadrille schedules print "
            "--header` writes both");
  EXPECT_EQ(Problems("F0.0 B0.0\n"),
            "order.txt:1:1: expected a header `# schedule=NAME P=.. M=.. v=.. "
            "placement=loop|v|bidir` before the first order; `quadrille schedules print --header` "
            "writes one");
  EXPECT_EQ(Problems("# P=2 M=x v=0 placement=spiral\n"),
            "order.txt:1:7: M must be a whole number from 1, not 'x'\n"
            "order.txt:1:11: v must be a whole number from 1, not '0'\n"
            "order.txt:1:15: placement must be loop, v or bidir, not 'spiral'");
  EXPECT_EQ(Problems("# P=2\n"),
            "order.txt:1:1: the header lacks M, the number of microbatches\n"
            "order.txt:1:1: the header lacks v, the virtual stages per rank\n"
            "order.txt:1:1: the header lacks placement=loop|v|bidir\n"
            "order.txt:1:1: a header is `# schedule=NAME P=.. M=.. v=.. placement=loop|v|bidir`; "
            "`quadrille schedules print --header` writes one");
  EXPECT_EQ(Problems("# P=2 P=3 M=1 v=1 placement=loop\nF0.0 B0.0\n"),
            "order.txt:1:7: P is given twice");
  EXPECT_EQ(Problems("# P=99999999999 M=1 v=1 placement=loop\n"),
            "order.txt:1:3: P must be a whole number from 1, not '99999999999'");
  EXPECT_EQ(Problems("# P=2000000000 M=2000000000 v=1 placement=loop\n"),
            "order.txt:1:1: P x M x v x slices is too large: up to 12000000000000000000 actions, "
            "limit 67108864");
  EXPECT_EQ(Problems(WithHeader("F0.0 B0.0 F1.0 B1.0\n")),
            "order.txt:2:1: the header states P=2, but there are orders for 1 rank");
}

TEST(Parse, ReportsEveryBadWordWithItsColumn) {
  EXPECT_EQ(
      Problems(WithHeader("F0.0 X0.0 F F1 F1.0x B2.0 B0.1 B0.0s1 F0.0&\nF-1.0 F1.0&B0.0&B1.0\n")),
      "order.txt:2:6: 'X0.0' is not an action: expected F, B, I or W, a microbatch, a dot and a "
      "chunk, as in F3.0\n"
      "order.txt:2:11: 'F' is not an action: expected F, B, I or W, a microbatch, a dot and a "
      "chunk, as in F3.0\n"
      "order.txt:2:13: 'F1' is not an action: expected F, B, I or W, a microbatch, a dot and a "
      "chunk, as in F3.0\n"
      "order.txt:2:16: 'F1.0x' is not an action: expected F, B, I or W, a microbatch, a dot and "
      "a chunk, as in F3.0\n"
      "order.txt:2:22: microbatch 2 of 'B2.0' is out of range: there are 2\n"
      "order.txt:2:27: chunk 1 of 'B0.1' is out of range: there are 1\n"
      "order.txt:2:32: slice 1 of 'B0.0s1' is out of range: there are 1\n"
      "order.txt:2:44: '' is not an action: expected F, B, I or W, a microbatch, a dot and a "
      "chunk, as in F3.0\n"
      "order.txt:3:1: 'F-1.0' is not an action: expected F, B, I or W, a microbatch, a dot and a "
      "chunk, as in F3.0\n"
      "order.txt:3:12: 'B0.0&B1.0' is not an action: expected F, B, I or W, a microbatch, a dot "
      "and a chunk, as in F3.0");
}

TEST(Parse, StopsCountingOutProblemsAtFifty) {
  std::string body;
  for (int i = 0; i < 80; ++i) body += "Q ";
  const auto result = ParseSchedule(WithHeader(body + "\nF0.0 B0.0\n"), "order.txt");
  ASSERT_FALSE(result.has_value());
  ASSERT_EQ(result.error().size(), 51u);
  EXPECT_EQ(ToString(result.error().back()), "order.txt: ... and 30 more problems");
}

// Whatever is read is either refused or can be judged and timed.
void ReadJudgeAndTime(std::string_view text) {
  const auto schedule = ParseSchedule(text, "order.txt");
  if (!schedule) {
    EXPECT_FALSE(schedule.error().empty());
  } else if (CheckSchedule(*schedule).empty()) {
    EXPECT_TRUE(EvaluateSchedule(*schedule, TaskCosts{}).has_value());
  }
}

TEST(Parse, SurvivesEveryTruncationAndEveryFlippedByte) {
  const std::string text = PrintSchedule(Build("dualpipe", Request(2, 4)), true);
  for (std::size_t i = 0; i < text.size(); ++i) {
    ReadJudgeAndTime(std::string_view(text).substr(0, i));
    for (const char c : {'\0', ' ', '9', '&', '#', '\n', '=', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      ReadJudgeAndTime(changed);
    }
  }
}

}  // namespace
}  // namespace quadrille::schedules
