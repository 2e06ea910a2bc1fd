#include "sim/report/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/report/text_table.h"

namespace quadrille::report {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

struct Harness {
  steady_clock::time_point now{};
  std::string output;
  int drawings = 0;

  ProgressBar Bar(bool interactive) {
    return ProgressBar(
        "simulating", Terminal{.interactive = interactive, .color = false, .width = 80},
        [this](std::string_view text) {
          output += text;
          ++drawings;
        },
        [this] { return now; });
  }
};

TEST(ProgressBarTest, IsSilentInTheFirstSecond) {
  Harness harness;
  {
    ProgressBar bar = harness.Bar(true);
    harness.now += milliseconds(999);
    bar.Update(Ratio(0.5));
  }
  EXPECT_EQ(harness.output, "");
}

TEST(ProgressBarTest, DrawsAfterASecondAndErasesItselfAtTheEnd) {
  Harness harness;
  {
    ProgressBar bar = harness.Bar(true);
    harness.now += seconds(1);
    bar.Update(Ratio(0.5));
    EXPECT_NE(harness.output.find("simulating  50 % ["), std::string::npos) << harness.output;
  }
  EXPECT_TRUE(harness.output.ends_with("\r\x1b[K"));
}

TEST(ProgressBarTest, DrawsAFewTimesASecondAtMost) {
  Harness harness;
  ProgressBar bar = harness.Bar(true);
  harness.now += seconds(1);
  for (int i = 0; i < 1000; ++i) {
    bar.Update(Ratio(i / 1000.0));
    harness.now += milliseconds(1);
  }
  EXPECT_EQ(harness.drawings, 5);
}

TEST(ProgressBarTest, StaysErasedOnceFinished) {
  Harness harness;
  ProgressBar bar = harness.Bar(true);
  harness.now += seconds(1);
  bar.Update(Ratio(0.5));
  bar.Finish();
  const std::string output = harness.output;
  EXPECT_TRUE(output.ends_with("\r\x1b[K"));
  harness.now += seconds(1);
  bar.Update(Ratio(0.75));
  EXPECT_EQ(harness.output, output);
}

TEST(ProgressBarTest, IsSilentWithoutATerminal) {
  Harness harness;
  {
    ProgressBar bar = harness.Bar(false);
    harness.now += seconds(100);
    bar.Update(Ratio(0.5));
  }
  EXPECT_EQ(harness.output, "");
}

TEST(ProgressLineTest, FitsTheWidthAtEveryShare) {
  for (std::size_t width : {20u, 40u, 79u, 200u}) {
    for (int percent = -10; percent <= 110; percent += 5) {
      EXPECT_LE(DisplayWidth(
                    ProgressLine("simulating", Ratio(percent / 100.0), seconds(500), width, false)),
                width);
    }
  }
}

TEST(ProgressLineTest, EstimatesWhatIsLeftFromWhatIsDone) {
  EXPECT_NE(ProgressLine("x", Ratio(0.25), seconds(10), 80, false).find("30 s left"),
            std::string::npos);
  EXPECT_EQ(ProgressLine("x", Ratio(0.001), seconds(10), 80, false).find("left"),
            std::string::npos);
}

// Tests run without a terminal.
TEST(DetectTerminalTest, AFileIsNotInteractiveAndHasNoColourUnlessAsked) {
  FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int descriptor = fileno(file);
  EXPECT_FALSE(DetectTerminal(descriptor).interactive);
  EXPECT_FALSE(DetectTerminal(descriptor).color);
  EXPECT_TRUE(DetectTerminal(descriptor, ColorChoice::kAlways).color);
  EXPECT_FALSE(DetectTerminal(descriptor, ColorChoice::kNever).color);
  EXPECT_GE(DetectTerminal(descriptor).width, 40u);
  std::fclose(file);
}

}  // namespace
}  // namespace quadrille::report
