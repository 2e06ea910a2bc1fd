#include <algorithm>
#include <sstream>

#include "schedule_test_support.h"
#include "schedules/ascii_timeline.h"
#include "schedules/draw_svg.h"
#include "schedules/text.h"

namespace quadrille::schedules {
namespace {

std::string Ascii(const PipelineSchedule& schedule, const TaskCosts& costs, int width) {
  return DrawAsciiTimeline(schedule, *EvaluateSchedule(schedule, costs), costs, {.width = width});
}
std::string Svg(const PipelineSchedule& schedule, const TaskCosts& costs) {
  return DrawSvg(schedule, *EvaluateSchedule(schedule, costs), costs, {});
}
std::size_t CountOf(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(AsciiTimeline, DrawsEachActionAsWideAsItLasts) {
  EXPECT_EQ(Ascii(Build("1f1b", Request(2, 2)), Costs(1, 1, 1), 80),
            "rank 0 F0 F1 ......B0    ...B1    \n"
            "rank 1 ...F0 B0    F1 B1    ......\n"
            "F=1 B=2 I=1 W=1 latency=0 pair=sum, makespan 9\n");
}

TEST(AsciiTimeline, ShowsChunksByCaseAndPairsWithAnAmpersand) {
  const std::string text = Ascii(Build("combined", Request(2, 4, 2)), Costs(1, 1, 1), 200);
  EXPECT_NE(text.find("F2 "), std::string::npos);
  EXPECT_NE(text.find("&b0"), std::string::npos) << text;
  EXPECT_NE(text.find("lower case: odd chunks"), std::string::npos);
}

TEST(AsciiTimeline, IsCutAtTheWidthAndSaysSo) {
  for (const int width : {24, 40, 63, 80}) {
    const std::string text = Ascii(Build("1f1b", Request(8, 48)), Costs(1, 1, 1, 0.1), width);
    std::istringstream lines(text);
    std::string line;
    for (int r = 0; r < 8; ++r) {
      std::getline(lines, line);
      EXPECT_EQ(line.size(), static_cast<std::size_t>(width)) << line;
    }
    std::getline(lines, line);
    EXPECT_NE(line.find("; cut at "), std::string::npos) << line;
  }
}

TEST(AsciiTimeline, ColoursTakeNoRoom) {
  const PipelineSchedule schedule = Build("1f1b", Request(2, 2));
  std::string coloured = DrawAsciiTimeline(schedule, *EvaluateSchedule(schedule, TaskCosts{}),
                                           TaskCosts{}, {.width = 80, .colour = true});
  for (const char* code : {"\x1b[34m", "\x1b[32m", "\x1b[0m"}) {
    EXPECT_GT(CountOf(coloured, code), 0u);
    for (std::size_t at; (at = coloured.find(code)) != std::string::npos;) {
      coloured.erase(at, std::string(code).size());
    }
  }
  EXPECT_EQ(coloured, Ascii(schedule, TaskCosts{}, 80));
}

TEST(Svg, HoldsOneBoxAndOneNumberPerAction) {
  const PipelineSchedule schedule = Build("zb-h1", Request(4, 8));
  const std::string svg = Svg(schedule, Costs(1, 1, 1));
  // Boxes are the rectangles with an opacity: 3 actions per rank and microbatch.
  EXPECT_EQ(CountOf(svg, "fill-opacity"), 4u * 8 * 3);
  EXPECT_EQ(CountOf(svg, "rank "), 4u);
  EXPECT_NE(svg.find(">F forward<"), std::string::npos);
  EXPECT_NE(svg.find(">I input gradient<"), std::string::npos);
  EXPECT_EQ(svg.find(">B backward<"), std::string::npos);  // there is none in this order
  EXPECT_NE(svg.find("makespan 27, idle 11.11 % of it; F=1 B=2 I=1 W=1 latency=0 pair=sum"),
            std::string::npos);
}

TEST(Svg, DrawsPairsAsTwoHalvesOrOneAfterTheOther) {
  const PipelineSchedule schedule = Build("combined", Request(1, 3));
  TaskCosts costs = Costs(1, 1, 1);
  EXPECT_EQ(CountOf(Svg(schedule, costs), R"(height="11")"), 4u);
  costs.pair_cost = PairCost::kSerial;
  EXPECT_EQ(CountOf(Svg(schedule, costs), R"(height="11")"), 0u);
}

TEST(Svg, EscapesWhatAFileMayCallItself) {
  PipelineSchedule schedule = Build("1f1b", Request(1, 1));
  schedule.name = "<script>&\"\x01";
  const std::string svg = Svg(schedule, TaskCosts{});
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;&amp;&quot;: 1 ranks"), std::string::npos);
}

TEST(Svg, SurvivesAStepOfNoLength) {
  TaskCosts nothing;
  nothing.forward = nothing.backward = nothing.backward_input = nothing.backward_weight =
      Duration(0);
  const PipelineSchedule schedule = Build("1f1b", Request(2, 2));
  EXPECT_EQ(CountOf(Svg(schedule, nothing), "nan"), 0u);
  EXPECT_EQ(CountOf(Svg(schedule, nothing), "inf"), 0u);
  EXPECT_NE(Ascii(schedule, nothing, 80), "");
}

}  // namespace
}  // namespace quadrille::schedules
