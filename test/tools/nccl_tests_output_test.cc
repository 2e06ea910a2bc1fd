#include "tools/validate/nccl_tests_output.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/validate/measured_collective.h"

namespace quadrille::tools {
namespace {

using model::CollectiveKind;

// As nccl-tests 2.13 prints it: no line names the collective.
std::string Output(const std::string& ranks, const std::string& rows) {
  return "# nThread 1 nGpus 2 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5\n"
         "#\n# Using devices\n" +
         ranks +
         "#\n"
         "#                                                              out-of-place        "
         "               in-place          \n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong"
         "     time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
         "     (us)  (GB/s)  (GB/s)       \n" +
         rows + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 26.4 \n#\n";
}

constexpr const char* kFourRanks =
    "#  Rank  0 Group  0 Pid  4711 on  node-a device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  4711 on  node-a device  1 [0x43] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid   812 on  node-b device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid   812 on  node-b device  1 [0x43] NVIDIA H100 80GB HBM3\n";
constexpr const char* kReduced =
    "     1048576        262144     float     sum      -1    35.25   29.75   44.62      0    "
    "34.90   30.05   45.07      0\n"
    "    33554432       8388608     float     sum      -1    300.5  111.66  167.49      0    "
    "299.1  112.18  168.27      0\n";

TEST(NcclTestsOutput, GivesARowPerSizeOfTheGpusAndHostsThatItLists) {
  const std::string text = Output(kFourRanks, kReduced);
  ASSERT_TRUE(IsNcclTestsOutput(text));
  const auto rows = ReadNcclTestsOutput(text, "out.txt");
  ASSERT_TRUE(rows) << ToString(rows.error());
  ASSERT_EQ(rows->size(), 2U);
  const MeasuredCollective& row = (*rows)[1];
  EXPECT_EQ(row.system, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(row.gpus, 4);
  EXPECT_EQ(row.nodes, 2);
  EXPECT_EQ(row.bytes, Bytes(33554432));
  EXPECT_DOUBLE_EQ(row.measured_s, 300.5e-6) << "the out-of-place time";
  EXPECT_EQ(row.line, 13);
  EXPECT_EQ(row.kind, CollectiveKind::kAllReduce) << "its bus bandwidth is 1.5 of its rate";
}

TEST(NcclTestsOutput, NamesTheCollectiveByItsHeaderElseByItsFile) {
  const std::string gathered =
      "     1048576         65536     float    none      -1    35.25   29.75   22.31      0    "
      "34.90   30.05   22.54      0\n";
  const std::string text = Output(kFourRanks, gathered);
  EXPECT_EQ(ReadNcclTestsOutput(text, "dir/all_gather_4.txt")->front().kind,
            CollectiveKind::kAllGather);
  const std::string stated = "# Collective test starting: alltoall_perf\n" + text;
  EXPECT_EQ(ReadNcclTestsOutput(stated, "all_gather.txt")->front().kind, CollectiveKind::kAllToAll);
  const auto neither = ReadNcclTestsOutput(text, "out.txt");
  ASSERT_FALSE(neither);
  EXPECT_NE(neither.error()[0].message.find("name the file after it"), std::string::npos);
}

// mpirun --tag-output and srun --label put the rank before every line; NCCL_DEBUG talks between.
TEST(NcclTestsOutput, LooksThroughWhatALauncherAndNcclWriteAround) {
  std::string text =
      Output(kFourRanks, std::string("node-a:4711:4711 [0] NCCL INFO cudaDriver\n") + kReduced);
  const auto plain = ReadNcclTestsOutput(text, "out.txt");
  for (const char* label : {"[1,0]<stdout>:", "0: "}) {
    std::string labelled;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      labelled += label + text.substr(at, end - at);
      at = end;
    }
    ASSERT_TRUE(IsNcclTestsOutput(labelled)) << label;
    const auto rows = ReadNcclTestsOutput(labelled, "out.txt");
    ASSERT_TRUE(rows) << ToString(rows.error());
    ASSERT_EQ(rows->size(), plain->size()) << label;
    EXPECT_EQ(rows->back().measured_s, plain->back().measured_s);
    EXPECT_EQ(rows->back().system, plain->back().system);
  }
}

TEST(NcclTestsOutput, ARackOfSeveralHostsIsOneNvlinkDomain) {
  std::string ranks;
  for (int i = 0; i < 144; ++i) {
    ranks += "#  Rank " + std::to_string(i) + " Group 0 Pid 1 on tray-" + std::to_string(i / 4) +
             " device 0 [0x01] NVIDIA GB200\n";
  }
  const auto rows = ReadNcclTestsOutput(Output(ranks, kReduced), "out.txt");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().gpus, 144);
  EXPECT_EQ(rows->front().nodes, 2);
}

TEST(NcclTestsOutput, SaysWhatIsMissingAndWhere) {
  const auto first = [](const std::string& text) {
    const auto rows = ReadNcclTestsOutput(text, "f.txt");
    return rows ? std::string("none") : ToString({rows.error()[0]});
  };
  EXPECT_NE(first(Output("", kReduced)).find("Rank ... on HOST"), std::string::npos);
  EXPECT_NE(first(Output(kFourRanks, "")).find("no sizes were measured"), std::string::npos);
  const std::string broken = first(Output(kFourRanks, "  1048576  262144  float  sum  -1  35.2\n"));
  EXPECT_NE(broken.find("f.txt:12"), std::string::npos) << broken;
  EXPECT_NE(broken.find("a size without its time"), std::string::npos) << broken;
}

TEST(NcclTestsOutput, IsToldFromATable) {
  EXPECT_FALSE(IsNcclTestsOutput("system,gpus,nodes,collective,bytes,time_us\nH100,8,1,x,1,2\n"));
  EXPECT_FALSE(IsNcclTestsOutput(""));
  const auto rows = ReadCollectives(Output(kFourRanks, kReduced), "f.txt", "meta-roce-24k");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().cluster, "meta-roce-24k");
  const auto table = ReadCollectives(
      "system,gpus,nodes,collective,bytes,time_us,cluster\nmine,8,1,all_reduce,8,9,\nmine,8,1,"
      "all_reduce,8,9,dgx-h100-superpod\n",
      "t.csv", "meta-roce-24k");
  ASSERT_TRUE(table);
  EXPECT_EQ((*table)[0].cluster, "meta-roce-24k");
  EXPECT_EQ((*table)[1].cluster, "dgx-h100-superpod") << "a row's own cluster";
}

}  // namespace
}  // namespace quadrille::tools
