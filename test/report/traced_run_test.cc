// Traces of real runs: what the simulator does must come out under the rules of viewers, and sum to
// its accounts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/report/trace_writer.h"
#include "sim/scenario/scenario_loader.h"
#include "sim/simulate/describe_run.h"
#include "sim/simulate/simulate.h"
#include "trace_checks.h"

namespace quadrille::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct TracedRun {
  simulate::Simulation simulation;
  TraceSummary summary;
};

// The value, or an exception that fails the test with what was wrong.
template <typename T>
T Checked(Result<T> result) {
  if (!result) throw std::runtime_error(ToString(result.error()));
  return std::move(*result);
}

// As viewers read microseconds that keep nanoseconds.
double Nanoseconds(const json& microseconds) {
  return std::round(microseconds.get<double>() * 1e3);
}

class TracedRunTest : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("traced_run_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // A small relation of the reference job: 32 GPUs and eight microbatches.
  TracedRun Trace(const fs::path& path, const TraceOptions& options) {
    scenario::LoadOptions load;
    load.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
    load.overrides = {"nodes=4",         "parallel.pipeline=4",     "parallel.context=1",
                      "parallel.data=1", "training.global_batch=8", "training.microbatches=8"};
    for (const std::string& text : GetParam()) load.overrides.push_back(text);
    const scenario::Scenario scenario =
        Checked(scenario::LoadScenario("llama3-405b-teaching", load));
    simulate::SimulateOptions run;
    simulate::CompiledStep compiled = Checked(simulate::CompileStep(scenario, run.unfold));
    const std::unique_ptr<TraceWriter> writer =
        Checked(OpenTrace(path, compiled.program, simulate::DescribeRun(scenario), options));
    run.record_stages = true;
    run.critical_path = true;
    run.sink = writer.get();
    simulate::Simulation simulation = Checked(simulate::Run(scenario, std::move(compiled), run));
    writer->ShowPath(simulation.path);
    const TraceSummary summary =
        Checked(writer->Close(simulation.compiled.program, simulation.result, simulation.report));
    return {std::move(simulation), summary};
  }

  fs::path directory_;
};

TEST_P(TracedRunTest, KernelsSumToTheAccountsAndEveryMessageIsAnArrow) {
  const fs::path path = directory_ / "trace.json.gz";
  const TracedRun run = Trace(path, {.level = TraceLevel::kKernel});
  const json trace = json::parse(ReadMaybeCompressed(path.string()));
  EXPECT_EQ(CheckTrace(trace), std::vector<std::string>{});
  std::map<std::int64_t, double> compute;  // by process, in microseconds
  std::map<std::int64_t, std::int64_t> kernels;
  std::map<std::string, std::int64_t> actions;
  double path_end = 0.0;
  std::int64_t arrows = 0;
  std::int64_t sends = 0;
  for (const json& event : trace.at("traceEvents")) {
    const std::string category = event.value("cat", "");
    if (event.at("ph") == "s") ++arrows;
    if (event.at("ph") != "X") continue;
    if (category == "compute") {
      compute[event.at("pid")] += Nanoseconds(event.at("dur")) * 1e-3;
      ++kernels[event.at("pid")];
    }
    const std::string name = event.at("name");
    if (category == "critical_path") {
      // One unbroken track, on a process that is no rank's.
      EXPECT_EQ(event.at("pid"), run.simulation.compiled.program.world_size + 1);
      EXPECT_NEAR(event.at("ts").get<double>(), path_end, 1e-6) << event.dump();
      path_end = (Nanoseconds(event.at("ts")) + Nanoseconds(event.at("dur"))) * 1e-3;
    }
    if (category == "action") ++actions[name.substr(0, 1)];
    if (category == "pp") {
      sends += name.starts_with("send ") ? 1 : 0;
      EXPECT_TRUE(event.at("args").contains("microbatch")) << event.dump();
    }
  }
  for (const metrics::StageReport& stage : run.simulation.report.stages) {
    const auto state = [&](program::RankState s) {
      return ToSeconds(stage.states[static_cast<std::size_t>(s)]) * 1e6;
    };
    const std::int64_t process = stage.pipeline_rank * 8 + 1;
    // Each kernel is rounded by at most a nanosecond.
    EXPECT_NEAR(compute[process],
                state(program::RankState::kCompute) + state(program::RankState::kOptimizer),
                1e-3 * static_cast<double>(kernels[process]));
  }
  EXPECT_NEAR(path_end, ToSeconds(run.simulation.report.step_time) * 1e6, 1e-3);
  EXPECT_EQ(arrows, sends);
  EXPECT_GT(arrows, 0);
  std::map<std::string, std::int64_t> expected;
  for (const auto& rank : run.simulation.compiled.schedule.ranks) {
    for (const schedules::Slot& slot : rank)
      ++expected[std::string(1, "FBIW"[static_cast<std::size_t>(slot.first.kind)])];
  }
  EXPECT_EQ(actions, expected);
}

TEST_P(TracedRunTest, KinetoFilesHaveTheBusyTimeOfTheComputeLane) {
  TraceOptions options;
  options.layout = TraceLayout::kKineto;
  options.fractional_microseconds = true;
  const TracedRun run = Trace(directory_ / "kineto", options);
  EXPECT_EQ(run.summary.files, 4);
  for (const metrics::StageReport& stage : run.simulation.report.stages) {
    const std::string name = "rank-" + std::string(stage.pipeline_rank < 2 ? "0" : "") +
                             std::to_string(stage.pipeline_rank * 8) + ".json";
    const json trace = json::parse(ReadMaybeCompressed((directory_ / "kineto" / name).string()));
    EXPECT_EQ(CheckTrace(trace), std::vector<std::string>{});
    double compute = 0.0;
    double first = 1e18;
    double last = 0.0;
    std::int64_t kernels = 0;
    for (const json& event : trace.at("traceEvents")) {
      const double begin = event.at("ts");
      const double duration = event.at("dur");
      first = std::min(first, begin);
      last = std::max(last, begin + duration);
      if (event.at("args").at("stream") != 7) continue;
      compute += duration;
      ++kernels;
    }
    const auto state = [&](program::RankState s) {
      return ToSeconds(stage.states[static_cast<std::size_t>(s)]) * 1e6;
    };
    EXPECT_NEAR(compute,
                state(program::RankState::kCompute) + state(program::RankState::kOptimizer),
                1e-3 * static_cast<double>(kernels));
    EXPECT_EQ(first, 0.0) << "idle time at the edges must be visible";
    EXPECT_NEAR(last, ToSeconds(run.simulation.report.step_time) * 1e6, 1e-3);
  }
}

TEST_P(TracedRunTest, TheDefaultIsSmallerAndKeepsAllActions) {
  const fs::path path = directory_ / "trace.json";
  const std::int64_t all = Trace(path, {.level = TraceLevel::kKernel}).summary.slices;
  const std::int64_t some =
      Trace(path, {.first_microbatches = 1, .last_microbatches = 1}).summary.slices;
  const std::int64_t none = Trace(path, {.level = TraceLevel::kAction}).summary.slices;
  EXPECT_LT(none, some);
  EXPECT_LT(some, all);
}

std::vector<std::string> Choice(const char* schedule, int virtual_stages, const char* p2p) {
  std::vector<std::string> overrides = {std::string("schedule.name=") + schedule,
                                        std::string("overlap.p2p=") + p2p};
  if (virtual_stages > 1) {
    overrides.push_back("parallel.virtual_stages=" + std::to_string(virtual_stages));
  }
  return overrides;
}

INSTANTIATE_TEST_SUITE_P(Schedules, TracedRunTest,
                         ::testing::Values(Choice("interleaved", 8, "true"),
                                           Choice("1f1b", 1, "false"), Choice("zb-h1", 1, "eager"),
                                           Choice("dualpipev", 2, "eager")));

}  // namespace
}  // namespace quadrille::report
