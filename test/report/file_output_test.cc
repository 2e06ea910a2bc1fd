#include "sim/report/file_output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace quadrille::report {
namespace {

namespace fs = std::filesystem;

std::string Content(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

class FileOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("file_output_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  [[nodiscard]] std::ptrdiff_t Files() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }
  fs::path directory_;
};

TEST_F(FileOutputTest, WritesANewFileAndReplacesAnOldOne) {
  const fs::path path = directory_ / "out.json";
  ASSERT_TRUE(WriteFile(path, "one"));
  EXPECT_EQ(Content(path), "one");
  ASSERT_TRUE(WriteFile(path, "two"));
  EXPECT_EQ(Content(path), "two");
  EXPECT_EQ(Files(), 1) << "no temporary is left";
}

TEST_F(FileOutputTest, TheOldContentStaysUntilCommit) {
  const fs::path path = directory_ / "out.json";
  ASSERT_TRUE(WriteFile(path, "old"));
  {
    Result<OutputFile> file = OutputFile::Create(path);
    ASSERT_TRUE(file);
    file->Write("new");
    EXPECT_EQ(Content(path), "old");
  }
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(Files(), 1);
}

TEST_F(FileOutputTest, ErrorsNameTheFileAndTheReason) {
  const Result<void> result = WriteFile(directory_ / "missing/out.json", "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(ToString(result.error()), "cannot write " + (directory_ / "missing/out.json").string() +
                                          ": No such file or directory");
  const Result<void> directory = WriteFile(directory_, "x");
  ASSERT_FALSE(directory);
  EXPECT_NE(ToString(directory.error()).find("Is a directory"), std::string::npos);
}

TEST_F(FileOutputTest, AFullDeviceIsReported) {
  const Result<void> result = WriteFile("/dev/full", "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(ToString(result.error()), "cannot write /dev/full: No space left on device");
}

TEST_F(FileOutputTest, ADeviceIsWrittenInPlace) {
  ASSERT_TRUE(WriteFile("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// A limit on the size of files stands in for a disk that fills up on the way.
TEST_F(FileOutputTest, AWriteThatFailsHalfWayLeavesTheOldFileAndNoTemporary) {
  const fs::path path = directory_ / "out.json";
  ASSERT_TRUE(WriteFile(path, "old"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = WriteFile(path, std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(result);
  EXPECT_NE(ToString(result.error()).find("File too large"), std::string::npos);
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(Files(), 1);
}

TEST_F(FileOutputTest, MoreFilesAreUnderWayThanMayBeOpen) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 32;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<OutputFile> files;
  for (int i = 0; i < 100; ++i) {
    Result<OutputFile> file =
        OutputFile::Create(directory_ / std::to_string(i), Descriptor::kPerWrite);
    if (file) files.push_back(std::move(*file));
  }
  for (const char* part : {"one ", "two"}) {
    for (OutputFile& file : files) file.Write(part);
  }
  int whole = 0;
  for (OutputFile& file : files) whole += file.Commit() ? 1 : 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(whole, 100);
  EXPECT_EQ(Files(), 100);
  EXPECT_EQ(Content(directory_ / "99"), "one two");
}

TEST_F(FileOutputTest, ALinkIsFollowedAndStaysALink) {
  ASSERT_TRUE(WriteFile(directory_ / "target.json", "old"));
  fs::create_symlink("target.json", directory_ / "link.json");
  ASSERT_TRUE(WriteFile(directory_ / "link.json", "new"));
  EXPECT_TRUE(fs::is_symlink(directory_ / "link.json"));
  EXPECT_EQ(Content(directory_ / "target.json"), "new");
}

TEST_F(FileOutputTest, PermissionsFollowTheUmaskAndSurviveReplacement) {
  const fs::path path = directory_ / "out.json";
  const mode_t before = umask(027);
  ASSERT_TRUE(WriteFile(path, "x"));
  umask(before);
  EXPECT_EQ(static_cast<unsigned>(fs::status(path).permissions()), 0640u);
  fs::permissions(path, fs::perms(0604));
  ASSERT_TRUE(WriteFile(path, "y"));
  EXPECT_EQ(static_cast<unsigned>(fs::status(path).permissions()), 0604u);
}

}  // namespace
}  // namespace quadrille::report
