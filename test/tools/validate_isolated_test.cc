#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/validate/csv_table.h"
#include "tools/validate/isolated_validation.h"
#include "tools/validate/render_scatter.h"

namespace quadrille::tools {
namespace {

scenario::LoadOptions Shipped() {
  scenario::LoadOptions options;
  options.shipped_directory = std::string(QUADRILLE_SOURCE_DIR) + "/scenarios";
  return options;
}

Result<std::vector<IsolatedRow>> Validated(const std::string& text) {
  const auto measured = ReadCollectives(text, "t.csv", "");
  if (!measured) return tl::unexpected(measured.error());
  return ValidateCollectives(*measured, Shipped());
}

// Two rows of ai-dynamo/aiconfigurator for one inference kernel: its heads of 64 have constants of
// their own.
TEST(ValidateKernels, ChoosesTheConstantsOfTheHeadDimension) {
  const std::string text =
      "gpu,impl,dtype,pass,causal,batch,seqlen,heads,kv_heads,qk_head_dim,v_head_dim,time_us,"
      "source\n"
      "B200-SXM,flashinfer trtllm-gen,bf16,fwd,1,4,12288,32,32,128,128,4100.29,context_attention\n"
      "B200-SXM,flashinfer trtllm-gen,bf16,fwd,1,1,10240,48,4,64,64,944.46,context_attention\n";
  const auto rows = ValidateKernels(CsvTable::Parse(text, "t.csv").value(), Shipped());
  ASSERT_TRUE(rows);
  for (const IsolatedRow& row : *rows) EXPECT_LT(std::abs(row.error()), 0.1) << row.what;
}

TEST(ValidateKernels, PredictsAShapeOfTheGpusTableWithoutItsRows) {
  const std::string root = testing::TempDir() + "own-table-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/gpus");
  std::ofstream(root + "/gpus/mine.yaml")
      << "name: mine\nbase: h100-sxm\nefficiency: {gemm_tables: [mine.csv]}\n";
  scenario::LoadOptions options = Shipped();
  options.scenario_path = {root};
  const std::string table =
      "gpu,dtype,m,n,k,time_us,layout\nmine,bfloat16,4096,4096,4096,300,TN\n"
      "mine,bfloat16,4096,4096,4096,300,NN\nmine,bfloat16,4096,5120,4096,300,TN\n";
  const auto rows = [&](int measured_us) {
    std::ofstream file(root + "/gpus/mine.csv");
    file << "dtype,m,n,k,time_us\nbf16,4096,4096,4096," << measured_us << '\n';
    for (const int n : {2048, 8192}) {
      for (const int m : {2048, 4096, 8192}) {
        file << "bf16," << m << ',' << n << ",4096," << 300.0 * m * n / 4096 / 4096 << '\n';
      }
    }
    file.close();
    return ValidateKernels(CsvTable::Parse(table, "t.csv").value(), options).value();
  };
  const auto before = rows(300);
  const auto after = rows(900);
  for (const std::size_t i : {0, 1}) {
    EXPECT_TRUE(before[i].left_out);
    EXPECT_EQ(before[i].predicted_s, after[i].predicted_s) << before[i].what;
  }
  EXPECT_FALSE(before[2].left_out);
  EXPECT_LT(before[2].predicted_s, after[2].predicted_s);
  const std::string text = RenderIsolatedTable(before, {});
  EXPECT_NE(text.find("2 rows are of shapes that the shipped table"), std::string::npos) << text;
  EXPECT_NE(RenderIsolatedCsv(before).find(",left_out\n"), std::string::npos);
  std::filesystem::remove_all(root);
}

// aws-samples/awsome-distributed-training, two p5.48xlarge.
TEST(ValidateCollectives, GivesASiteItsConstantsAndSaysWhatItsClassWouldPredict) {
  const std::string text =
      "system,gpus,nodes,nic,collective,bytes,time_us\n"
      "H100 AWS p5.48xlarge,16,2,32x100G EFA (3.2T),all_reduce,33554432,440\n"
      "H100 Azure NDv5,8,1,-,all_reduce,33554432,200\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  EXPECT_GT((*rows)[0].predicted_s, (*rows)[0].of_class_s);
  EXPECT_LT(std::abs((*rows)[0].error()), 0.2);
  EXPECT_EQ((*rows)[1].of_class_s, 0.0) << "a site of the class itself";
}

// GoogleCloudPlatform/cluster-toolkit and dstackai/dstack: TCPX takes a millisecond for little, and
// one of the two sites reaches a third less than the other.
TEST(ValidateCollectives, TellsSitesOfOneTransportApart) {
  const std::string text =
      "system,gpus,nodes,nic,collective,bytes,time_us\n"
      "H100 GCP A3-High (GKE),16,2,4x200G TCPX,all_gather,8388608,1007\n"
      "H100 GCP A3-High (GKE),16,2,4x200G TCPX,all_gather,536870912,7099\n"
      "H100 GCP A3-High,16,2,4x200G TCPX,all_gather,1073741824,20431\n"
      "H100 GCP A3-Mega,16,2,8x200G TCPXO,all_reduce,33554432,1060\n"
      "H100 AWS p5 (EKS NCCL 2.18.5),16,2,32x100G EFA (3.2T),all_reduce,536870912,3608\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  for (const IsolatedRow& row : *rows) EXPECT_LT(std::abs(row.error()), 0.06) << row.group;
  EXPECT_NEAR((*rows)[2].of_class_s, 0.69 * (*rows)[2].predicted_s, 0.02 * (*rows)[2].predicted_s)
      << "as at the other site";
}

TEST(ValidateCollectives, TakesTheClusterThatARowNamesAndTheAlgorithmThatItWasHeldTo) {
  const std::string text =
      "system,gpus,nodes,collective,bytes,time_us,cluster\n"
      "my pod,16,2,all_reduce,8589934592,40000,dgx-h100-superpod\n"
      "my pod,16,2,all_reduce[ring],8589934592,40000,dgx-h100-superpod\n"
      "my pod,16,2,all_reduce,8589934592,40000,h100-rings\n"
      "my pod,16,2,all_reduce,8589934592,40000,h100-ring\n"
      "my pod,16,2,all_reduce,8589934592,40000,\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  EXPECT_GT((*rows)[1].predicted_s, 1.1 * (*rows)[0].predicted_s);
  EXPECT_EQ((*rows)[1].predicted_s, (*rows)[2].predicted_s);
  EXPECT_EQ((*rows)[3].reason, "cluster h100-ring is missing");
  EXPECT_NE((*rows)[4].reason.find("names no GPU"), std::string::npos);
}

TEST(ReadCollectives, ReportsEveryMissingColumnAndMalformedCell) {
  const auto columns = ReadCollectives("system,gpus,collective\nH100,8,all_reduce\n", "t.csv", "");
  ASSERT_FALSE(columns);
  EXPECT_EQ(columns.error().size(), 3U) << ToString(columns.error());
  const auto cells = ReadCollectives(
      "system,gpus,nodes,collective,bytes,time_us\nH100,8,1,all_reduce,-1,5\nH100,many,1,"
      "all_reduce,8,soon\n",
      "t.csv", "");
  ASSERT_FALSE(cells);
  EXPECT_EQ(cells.error().size(), 3U) << ToString(cells.error());
  EXPECT_NE(ToString(cells.error()).find("t.csv:3"), std::string::npos);
}

TEST(ValidateCollectives, GivesTheOnlyGpuOfANodeAWholeNic) {
  const std::string text =
      "system,gpus,nodes,nic,collective,bytes,time_us\n"
      "H100,2,2,1x400G RoCE CX7,sendrecv,1073741824,30000\n"
      "H100,2,2,8x400G RoCE CX7,sendrecv,1073741824,30000\n"
      "H100,16,2,4x100G,all_gather,1073741824,30000\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[0].predicted_s, (*rows)[1].predicted_s);
  EXPECT_NEAR((*rows)[0].predicted_s, 1.0737 / 36, 1e-3);
  EXPECT_NEAR((*rows)[2].predicted_s, 1.0737 * 15 / 16 / (0.96 * 50), 1e-3) << "shared by eight";
}

TEST(ValidateCollectives, HoldsARingToTheRing) {
  const std::string text =
      "system,gpus,nodes,nic,collective,bytes,time_us\n"
      "H200 node,8,1,-,all_reduce,8589934592,32000\n"
      "H200 node,8,1,-,all_reduce[ring],8589934592,41000\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  EXPECT_GT((*rows)[1].predicted_s, 1.2 * (*rows)[0].predicted_s) << "no reduction in the switch";
}

TEST(RenderIsolatedHtml, HasAPointForEveryPredictedRowAndATableOfGroups) {
  const std::string text =
      "system,gpus,nodes,nic,collective,bytes,time_us\n"
      "H200 node,8,1,-,all_reduce,8589934592,32000\n"
      "H200 node,8,1,-,all_reduce,0,12\n"
      "a TPU <pod>,8,1,-,all_reduce,1024,32\n";
  const auto rows = Validated(text);
  ASSERT_TRUE(rows);
  const std::string page = RenderIsolatedHtml(*rows, "collective");
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<circle"), 1U) << "a row of no bytes takes no time, which has no logarithm";
  EXPECT_EQ(count("measured collective times"), 2U);
  EXPECT_EQ(count("<td>H200 node, 1 MB and more</td>"), 1U);
  EXPECT_EQ(count("rank correlation"), 0U);
  EXPECT_EQ(page.find("<pod>"), std::string::npos);
  EXPECT_NE(RenderIsolatedHtml({}, "kernel").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace quadrille::tools
