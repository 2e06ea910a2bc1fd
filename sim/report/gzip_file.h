// An output file, compressed on the way where its name says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "sim/base/result.h"
#include "sim/report/file_output.h"

struct z_stream_s;

namespace quadrille::report {

// As OutputFile; gzip (RFC 1952, no time stamp, so that equal content gives equal bytes) when the
// name ends in ".gz".
class GzipFile {
 public:
  [[nodiscard]] static Result<GzipFile> Create(const std::filesystem::path& path,
                                               Descriptor descriptor = Descriptor::kKept);

  void Write(std::string_view data);
  [[nodiscard]] bool failed() const { return file_.failed(); }
  // Of the content, before compression.
  [[nodiscard]] std::int64_t raw_bytes() const { return raw_bytes_; }
  // Flushes, closes and renames. REQUIRES: called at most once.
  [[nodiscard]] Result<void> Commit();

 private:
  struct EndDeflate {
    void operator()(z_stream_s* stream) const;
  };
  using Stream = std::unique_ptr<z_stream_s, EndDeflate>;

  GzipFile(OutputFile file, Stream stream) : file_(std::move(file)), stream_(std::move(stream)) {}
  void Deflate(std::string_view data, int flush);

  OutputFile file_;
  Stream stream_;  // empty: not compressed
  std::int64_t raw_bytes_ = 0;
};

}  // namespace quadrille::report
