// Files that are whole or absent: written to a temporary beside the target, renamed when complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace quadrille::report {

// Whether a file keeps its descriptor, or opens one for each write: for a thousand files at a time.
enum class Descriptor : std::uint8_t { kKept, kPerWrite };

// A file being written. Until Commit the target keeps its old content; without Commit the temporary
// is removed. The first error is kept and reported by Commit, so that a writer may stream without
// looking at every call; after it nothing more is written.
//
// A symbolic link is followed. A target that exists and is no regular file (a pipe, /dev/null) is
// written in place. A new file gets the permissions that the umask leaves, a replaced one keeps its
// own.
class OutputFile {
 public:
  // Errors: the directory does not exist, no permission, ...: "cannot write PATH: REASON".
  [[nodiscard]] static Result<OutputFile> Create(const std::filesystem::path& path,
                                                 Descriptor descriptor = Descriptor::kKept);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void Write(std::string_view data);
  [[nodiscard]] bool failed() const { return !error_.empty(); }
  [[nodiscard]] std::int64_t bytes_written() const { return bytes_written_; }
  // Closes and renames. REQUIRES: called at most once. Errors: of any write before, of closing, of
  // renaming.
  [[nodiscard]] Result<void> Commit();

 private:
  OutputFile() = default;
  void Fail(int error_number);
  void Discard();
  // Where the descriptor is not kept.
  void Reopen();
  void Suspend();

  bool per_write_ = false;  // REQUIRES: a temporary
  int descriptor_ = -1;
  std::filesystem::path path_;       // as the user wrote it, for messages
  std::filesystem::path target_;     // links resolved
  std::filesystem::path temporary_;  // empty: written in place
  std::string error_;
  std::int64_t bytes_written_ = 0;
};

// Writes `content` to `path` as above.
[[nodiscard]] Result<void> WriteFile(const std::filesystem::path& path, std::string_view content);

}  // namespace quadrille::report
