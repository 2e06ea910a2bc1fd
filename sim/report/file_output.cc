#include "sim/report/file_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace quadrille::report {
namespace {

constexpr mode_t kNewFileMode = 0666;  // the umask takes its share
constexpr int kAttempts = 100;

std::string ErrorText(const std::filesystem::path& path, int error_number) {
  return fmt::format("cannot write {}: {}", path.string(),
                     std::generic_category().message(error_number));
}

}  // namespace

Result<OutputFile> OutputFile::Create(const std::filesystem::path& path, Descriptor descriptor) {
  OutputFile file;
  file.path_ = path;
  std::error_code ignored;
  file.target_ = std::filesystem::weakly_canonical(path, ignored);
  if (file.target_.empty()) file.target_ = path;
  struct stat status {};
  const bool exists = ::stat(file.target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return Error(ErrorText(path, EISDIR));
  if (exists && !S_ISREG(status.st_mode)) {
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return Error(ErrorText(path, errno));
    return file;
  }
  // A file that may not be written must not be replaced either.
  if (exists && ::access(file.target_.c_str(), W_OK) != 0) return Error(ErrorText(path, errno));
  for (int attempt = 0; attempt < kAttempts && file.descriptor_ < 0; ++attempt) {
    file.temporary_ = file.target_;
    file.temporary_.replace_filename(
        fmt::format(".{}.{}-{}.part", file.target_.filename().string(), ::getpid(), attempt));
    file.descriptor_ =
        ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode);
    if (file.descriptor_ < 0 && errno != EEXIST) break;
  }
  if (file.descriptor_ < 0) {
    const int error_number = errno;
    file.temporary_.clear();
    return Error(ErrorText(path, error_number));
  }
  if (exists && ::fchmod(file.descriptor_, status.st_mode & 07777) != 0) file.Fail(errno);
  file.per_write_ = descriptor == Descriptor::kPerWrite;
  file.Suspend();
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : per_write_(other.per_write_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      error_(std::move(other.error_)),
      bytes_written_(other.bytes_written_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  Discard();
  per_write_ = other.per_write_;
  descriptor_ = std::exchange(other.descriptor_, -1);
  path_ = std::move(other.path_);
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, {});
  error_ = std::move(other.error_);
  bytes_written_ = other.bytes_written_;
  return *this;
}

OutputFile::~OutputFile() { Discard(); }

void OutputFile::Discard() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::Fail(int error_number) {
  if (error_.empty()) error_ = ErrorText(path_, error_number);
}

void OutputFile::Reopen() {
  if (!per_write_ || failed()) return;
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) Fail(errno);
}

void OutputFile::Suspend() {
  if (per_write_ && descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) Fail(errno);
}

void OutputFile::Write(std::string_view data) {
  if (data.empty()) return;
  Reopen();
  while (!data.empty() && !failed()) {
    const ssize_t written = ::write(descriptor_, data.data(), data.size());
    if (written < 0) {
      if (errno != EINTR) Fail(errno);
      continue;
    }
    bytes_written_ += written;
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  Suspend();
}

Result<void> OutputFile::Commit() {
  // A full disk may show only when the file is closed.
  if (descriptor_ >= 0 && ::close(std::exchange(descriptor_, -1)) != 0) Fail(errno);
  if (!failed() && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      Fail(errno);
    } else {
      temporary_.clear();
    }
  }
  Discard();
  if (failed()) return Error(error_);
  return {};
}

Result<void> WriteFile(const std::filesystem::path& path, std::string_view content) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return tl::unexpected(std::move(file).error());
  file->Write(content);
  return file->Commit();
}

}  // namespace quadrille::report
