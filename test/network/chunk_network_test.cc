// Chunks that queue at ports, against the fluids that they validate.
#include "sim/network/chunk_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace quadrille::network {
namespace {

constexpr BytesPerSecond kPort{100e9};
constexpr Bytes kWork{800'000'000};  // 8 ms at 100 GB/s

// n members, each with a port out and a port in; edge i goes from member i to the next.
std::vector<ChunkEdge> RingOf(std::uint32_t n, bool forwards) {
  std::vector<ChunkEdge> edges;
  for (std::uint32_t i = 0; i < n; ++i) {
    ChunkEdge edge;
    edge.after = forwards ? static_cast<std::int32_t>((i + n - 1) % n) : -1;
    edge.routes = {{{2 * i, 1.0}, {2 * ((i + 1) % n) + 1, 1.0}}};
    edges.push_back(edge);
  }
  return edges;
}

struct Job {
  std::vector<ChunkEdge> edges;
  std::int32_t steps = 1;
  BytesPerSecond cap = kPort;
  TimePoint start;
};

// When each job ends.
std::vector<TimePoint> RunJobs(const std::vector<BytesPerSecond>& ports,
                               const std::vector<Job>& jobs) {
  ChunkNetwork network(ports, jobs.size());
  std::vector<TimePoint> ends(jobs.size());
  std::vector<std::size_t> waiting;
  for (std::size_t j = 0; j < jobs.size(); ++j) waiting.push_back(j);
  std::vector<FlowIndex> finished;
  while (true) {
    TimePoint now(Duration::max());
    for (std::size_t j : waiting) now = std::min(now, jobs[j].start);
    if (const auto next = network.Next()) now = std::min(now, *next);
    if (now == TimePoint(Duration::max())) return ends;
    std::erase_if(waiting, [&](std::size_t j) {
      if (jobs[j].start != now) return false;
      network.Start(static_cast<FlowIndex>(j), jobs[j].edges, jobs[j].steps, kWork, jobs[j].cap,
                    now);
      return true;
    });
    finished.clear();
    if (network.Next() == now) network.Advance(now, finished);
    for (FlowIndex flow : finished) ends[flow] = now;
  }
}

double Seconds(TimePoint time) { return ToSeconds(time); }

TEST(ChunkNetwork, AMessageTakesItsBytesOverThePortAndOneChunkMorePerPort) {
  Job job;
  job.edges = {{1.0, -1, {{{0, 1.0}, {1, 1.0}, {2, 1.0}}}}};
  const auto ends = RunJobs({kPort, kPort, kPort}, {job});
  EXPECT_NEAR(Seconds(ends[0]), 8e-3 * (1.0 + 2.0 / ChunkNetwork::kChunksPerEdge), 1e-9);
}

TEST(ChunkNetwork, ARingIsWithinFourPercentOfTheFluid) {
  for (std::uint32_t n : {2u, 3u, 4u, 8u, 16u, 64u}) {
    for (std::int32_t rounds : {1, 2}) {
      Job job;
      job.edges = RingOf(n, true);
      job.steps = rounds * static_cast<std::int32_t>(n - 1);
      const auto ends = RunJobs(std::vector<BytesPerSecond>(2 * n, kPort), {job});
      // Every edge moves all of X; the fluid takes X / B.
      EXPECT_GE(Seconds(ends[0]), 8e-3) << n;
      EXPECT_LE(Seconds(ends[0]), 8e-3 * 1.04) << n;
    }
  }
}

TEST(ChunkNetwork, TheCapHoldsWherePortsAreWider) {
  Job job;
  job.edges = RingOf(8, true);
  job.steps = 7;
  job.cap = BytesPerSecond(50e9);
  const auto ends = RunJobs(std::vector<BytesPerSecond>(16, kPort), {job});
  EXPECT_GE(Seconds(ends[0]), 15.7e-3);  // the last chunk leaves its port at full speed
  EXPECT_LE(Seconds(ends[0]), 16e-3 * 1.04);
}

TEST(ChunkNetwork, TheNarrowestPortThrottlesTheWholeRing) {
  Job job;
  job.edges = RingOf(8, true);
  job.steps = 7;
  std::vector<BytesPerSecond> ports(16, kPort);
  ports[5] = BytesPerSecond(25e9);
  EXPECT_NEAR(Seconds(RunJobs(ports, {job})[0]), 32e-3, 32e-3 * 0.04);
}

TEST(ChunkNetwork, TwoEqualRingsOnOneSetOfPortsTakeTwiceAsLong) {
  Job job;
  job.edges = RingOf(8, true);
  job.steps = 7;
  const auto ends = RunJobs(std::vector<BytesPerSecond>(16, kPort), {job, job});
  EXPECT_NEAR(Seconds(ends[0]), 16e-3, 16e-3 * 0.04);
  EXPECT_NEAR(Seconds(ends[1]), 16e-3, 16e-3 * 0.04);
}

TEST(ChunkNetwork, ASecondRingThatComesHalfwayDelaysTheFirstByHalf) {
  Job first;
  first.edges = RingOf(4, true);
  first.steps = 3;
  Job second = first;
  second.start = TimePoint(FromSeconds(4e-3));
  const auto ends = RunJobs(std::vector<BytesPerSecond>(8, kPort), {first, second});
  EXPECT_NEAR(Seconds(ends[0]), 12e-3, 12e-3 * 0.05);
  EXPECT_NEAR(Seconds(ends[1]), 16e-3, 16e-3 * 0.05);
}

TEST(ChunkNetwork, ChunksOfOneEdgeSpreadOverItsWays) {
  // Two ways of half the capacity each carry what one of the whole does.
  Job job;
  job.edges = {{1.0, -1, {{{0, 1.0}, {1, 1.0}}, {{0, 1.0}, {2, 1.0}}}}};
  const auto ends = RunJobs({kPort, BytesPerSecond(50e9), BytesPerSecond(50e9)}, {job});
  EXPECT_NEAR(Seconds(ends[0]), 8e-3, 8e-3 * 0.04);
}

TEST(ChunkNetwork, AFlowCanStartAgain) {
  ChunkNetwork network({kPort, kPort}, 1);
  const std::vector<ChunkEdge> edges = {{1.0, -1, {{{0, 1.0}, {1, 1.0}}}}};
  TimePoint now;
  std::vector<Duration> took;
  for (int round = 0; round < 3; ++round) {
    const TimePoint begin = now;
    network.Start(0, edges, 1, kWork, kPort, now);
    std::vector<FlowIndex> finished;
    while (const auto next = network.Next()) {
      now = *next;
      network.Advance(now, finished);
    }
    EXPECT_EQ(finished, std::vector<FlowIndex>{0});
    took.push_back(now - begin);
  }
  EXPECT_EQ(took[0], took[1]);
  EXPECT_EQ(took[0], took[2]);
}

TEST(ChunkNetwork, ATransferOverOtherEdgesThanTheLastTakesAsLongAsTheFirstOfItsFlow) {
  const std::vector<ChunkEdge> rings[] = {RingOf(4, true), RingOf(2, true), RingOf(8, true),
                                          RingOf(4, true)};
  ChunkNetwork network(std::vector<BytesPerSecond>(16, kPort), 1);
  TimePoint now;
  for (const std::vector<ChunkEdge>& edges : rings) {
    const auto steps = static_cast<std::int32_t>(edges.size() - 1);
    Job alone;
    alone.edges = edges;
    alone.steps = steps;
    const TimePoint begin = now;
    network.Start(0, edges, steps, kWork, kPort, now);
    std::vector<FlowIndex> finished;
    while (const auto next = network.Next()) {
      now = *next;
      network.Advance(now, finished);
    }
    EXPECT_EQ(finished, std::vector<FlowIndex>{0});
    EXPECT_EQ(TimePoint(now - begin), RunJobs(std::vector<BytesPerSecond>(16, kPort), {alone})[0])
        << edges.size();
  }
}

}  // namespace
}  // namespace quadrille::network
