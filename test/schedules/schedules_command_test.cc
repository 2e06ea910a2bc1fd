// `quadrille schedules` as a user calls it: what it prints, where, and with which exit status.

#include "tools/schedules_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace quadrille::tools {
namespace {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

Outcome Call(const std::string& arguments) {
  CLI::App app;
  app.require_subcommand(1);
  Outcome outcome;
  AddSchedulesCommand(app, outcome.status);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse("schedules " + arguments);
  } catch (const CLI::ParseError& error) {
    outcome.status = error.get_exit_code() == 0 ? 0 : 2;
  }
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

class SchedulesCommand : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("quadrille_schedules_" + std::to_string(getpid()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::filesystem::path directory_;
};

TEST_F(SchedulesCommand, AloneListsTheSchedulesAsListDoes) {
  const Outcome alone = Call("");
  EXPECT_EQ(alone.status, 0);
  EXPECT_EQ(alone.out, Call("list").out);
  EXPECT_NE(alone.out.find("interleaved"), std::string::npos);
}

TEST_F(SchedulesCommand, PrintsAnOrder) {
  const Outcome outcome = Call("print 1f1b --pp 2 --microbatches 2");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "F0.0 F1.0 B0.0 B1.0\nF0.0 B0.0 F1.0 B1.0\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Call("print interleaved --pp 4 --microbatches 3 --vp 2 --group auto").status, 0);
}

TEST_F(SchedulesCommand, WhatPrintWritesCheckReads) {
  const std::string path =
      Write("order.txt", Call("print dualpipe --pp 4 --microbatches 8 --header").out);
  const Outcome outcome = Call("check " + path + " --pair 2.5 --latency 0.1 --format json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["valid"], true);
  EXPECT_GT(json["makespan"], 20.0);
  EXPECT_EQ(json["peak_activations"], nlohmann::json({5, 5, 5, 5}));
  EXPECT_EQ(json["peak_activations_release_at_input_gradient"].size(), 4u);
  EXPECT_EQ(json["idle_inside_span"].size(), 4u);
  EXPECT_EQ(json["messages"], 48);
  for (const char* bubble : {"of_makespan", "of_ideal", "of_span"}) {
    EXPECT_TRUE(json["bubble"].contains(bubble));
  }
}

TEST_F(SchedulesCommand, ChecksInThreeFormats) {
  const std::string path =
      Write("order.txt", "# schedule=own P=2 M=1 v=1 placement=loop\nF0.0 B0.0\nF0.0 B0.0\n");
  const Outcome csv = Call("check " + path + " --costs F=1,B=2 --latency 0.5 --format csv");
  EXPECT_EQ(csv.out,
            "makespan,bubble_of_makespan,bubble_of_ideal,bubble_of_span,idle_inside_span,"
            "peak_activations,peak_activations_release_at_input_gradient,messages\n"
            "7,0.571429,1.33333,0.571429,4|0,1|1,1|1,2\n");
  const Outcome table = Call("check " + path + " --timeline");
  EXPECT_NE(table.out.find("bubble of makespan    50.00 %"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("rank 1 ...F0 B0"), std::string::npos) << table.out;
}

TEST_F(SchedulesCommand, CheckSaysWhichSendsItAssumesAndWhatOthersWouldDo) {
  const std::string own = Write("own.txt", Call("print 1f1b --pp 4 --microbatches 8 --header").out);
  const Outcome batched = Call("check " + own);
  EXPECT_NE(batched.out.find("no deadlock with eager sends"), std::string::npos) << batched.out;
  EXPECT_NE(batched.out.find("posted ahead        runs\n"), std::string::npos) << batched.out;
  EXPECT_NE(batched.out.find("blocking            runs in Megatron-LM's batches, makespan 33"),
            std::string::npos)
      << batched.out;
  const std::string swapped = Write(
      "swapped.txt", "# P=2 M=2 v=1 placement=loop\nF0.0 F1.0 B1.0 B0.0\nF1.0 F0.0 B1.0 B0.0\n");
  const Outcome outcome = Call("check " + swapped + " --format json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto sends = nlohmann::json::parse(outcome.out)["sends"];
  EXPECT_EQ(sends["assumed"], "eager");
  EXPECT_EQ(sends["posted_ahead"]["runs"], false);
  EXPECT_EQ(sends["posted_ahead"]["reason"],
            "rank 1 runs F1.0 before F0.0 and waits for its input first, but rank 0 sends that of "
            "F0.0 before that of F1.0");
  EXPECT_EQ(sends["blocking"]["runs"], false);
  EXPECT_EQ(sends["blocking"]["calls"], "one per message");
}

TEST_F(SchedulesCommand, AnInvalidOrderIsExitOneWithEveryReason) {
  const std::string path = Write("order.txt", "# P=2 M=1 v=1 placement=loop\nB0.0 F0.0\nF0.0\n");
  const Outcome outcome = Call("check " + path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, path + ": rank 0: B0.0 does not come after F0.0\n" + path +
                             ": rank 1: B0.0 is missing\n");
  const auto json = nlohmann::json::parse(Call("check " + path + " --format json").out);
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["problems"].size(), 2u);
}

TEST_F(SchedulesCommand, ADeadlockIsExitOne) {
  const std::string path = Write("order.txt",
                                 "# P=2 M=2 v=1 placement=loop\nF0.0 B0.0 F1.0 B1.0\n"
                                 "F0.0 F1.0 B0.0 B1.0\n");
  const Outcome outcome = Call("check " + path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("deadlock: rank 0 stands before B0.0"), std::string::npos);
}

TEST_F(SchedulesCommand, WrongTextAndWrongCallsAreExitTwo) {
  const std::string path = Write("order.txt", "# P=1 M=1 v=1 placement=loop\nF0.0 X\n");
  const Outcome text = Call("check " + path);
  EXPECT_EQ(text.status, 2);
  EXPECT_EQ(text.err.rfind(path + ":2:6: 'X' is not an action", 0), 0u) << text.err;
  const Outcome flags =
      Call("print interleaved --pp 0 --microbatches 8 --group x --vp -1 --costs F=q --pair r");
  EXPECT_EQ(flags.status, 2);
  EXPECT_EQ(flags.err,
            "quadrille: --costs F: 'q' is not a number\n"
            "quadrille: --pair: 'r' is not a number\n"
            "quadrille: --group: expected a whole number from 1 or auto, not 'x'\n"
            "quadrille: --pp must be at least 1, not 0\n"
            "quadrille: --vp must be at least 1, not -1\n");
  const Outcome refused = Call("print dualpipe --pp 3 --microbatches 8");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "quadrille: dualpipe: needs an even number of pipeline ranks, not 3\n");
  EXPECT_EQ(Call("print").status, 2);
  EXPECT_EQ(Call("check").status, 2);
  EXPECT_EQ(Call("list --format yaml").status, 2);
  EXPECT_EQ(Call("draw").status, 2);
  EXPECT_EQ(Call("draw 1f1b").status, 2);
}

TEST_F(SchedulesCommand, FilesThatCannotBeReadOrWrittenAreExitThree) {
  const Outcome missing = Call("check " + (directory_ / "none.txt").string());
  EXPECT_EQ(missing.status, 3);
  EXPECT_NE(missing.err.find(": No such file"), std::string::npos);
  EXPECT_EQ(Call("check " + directory_.string()).status, 3);
  const Outcome unwritable =
      Call("draw 1f1b --pp 2 --microbatches 2 -o " + (directory_ / "no" / "x.svg").string());
  EXPECT_EQ(unwritable.status, 3);
}

TEST_F(SchedulesCommand, DrawsASvgFileWholeOrNotAtAll) {
  const auto path = directory_ / "picture.svg";
  EXPECT_EQ(Call("draw zbv --pp 4 --microbatches 8 --output " + path.string()).status, 0);
  const std::string svg = Read(path);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("</svg>\n"), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);  // no leftovers
  const std::string order =
      Write("order.txt", Call("print 1f1b --pp 2 --microbatches 2 --header").out);
  EXPECT_EQ(Call("draw --file " + order).out.rfind("<svg ", 0), 0u);
  EXPECT_EQ(Call("draw 1f1b --pp 2 --microbatches 2 --timeline").out.rfind("rank 0 F0 F1", 0), 0u);
}

TEST_F(SchedulesCommand, ListsEverySchedule) {
  const auto json = nlohmann::json::parse(Call("list --format json").out);
  ASSERT_GE(json.size(), 18u);
  EXPECT_EQ(json[0]["name"], "gpipe");
  const std::string csv = Call("list --format csv").out;
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), json.size() + 1);
  const std::string table = Call("list").out;
  for (const auto& entry : json) {
    EXPECT_NE(table.find(entry["name"].get<std::string>()), std::string::npos);
  }
}

TEST_F(SchedulesCommand, ChecksSixtyFourRanksTimesAThousandMicrobatchesAtOnce) {
  const std::string path =
      Write("order.txt", Call("print 1f1b --pp 64 --microbatches 1024 --header").out);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Call("check " + path + " --format csv").status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace quadrille::tools
