// Every file in malformed/ is wrong, and malformed/NAME.expected holds exactly what the loader says
// about it. After a change of wording, run with QUADRILLE_UPDATE_EXPECTED=1 and read the
// difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/scenario/scenario_test_support.h"
#include "test/support/case_names.h"

namespace quadrille::scenario {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> MalformedFiles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kTestDirectory + "/malformed")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string WithoutDirectories(std::string text) {
  for (const std::string& prefix : {kTestDirectory + "/malformed/", kTestDirectory + "/"}) {
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) {
      text.erase(at, prefix.size());
    }
  }
  return text;
}

class Malformed : public testing::TestWithParam<std::string> {};

TEST_P(Malformed, IsRefusedWithExactlyTheExpectedMessages) {
  const std::string base = kTestDirectory + "/malformed/" + GetParam();
  const auto scenario = LoadScenario(base + ".yaml", TestLibrary());
  ASSERT_FALSE(scenario) << "accepted";
  const std::string messages = WithoutDirectories(ToString(scenario.error())) + "\n";
  if (std::getenv("QUADRILLE_UPDATE_EXPECTED") != nullptr) {
    std::ofstream(base + ".expected", std::ios::binary) << messages;
  }
  EXPECT_EQ(messages, ReadFile(base + ".expected"));
  for (const Diagnostic& problem : scenario.error()) {
    EXPECT_FALSE(problem.position.file.empty()) << problem.message << " has no position";
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Malformed, testing::ValuesIn(MalformedFiles()), NameOfCase);

TEST(MalformedCorpus, HasAtLeastFortyFiles) { EXPECT_GE(MalformedFiles().size(), 40u); }

}  // namespace
}  // namespace quadrille::scenario
