#include "sim/report/html_blob.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace quadrille::report {
namespace {

constexpr std::size_t kAlignment = 8;
// Below this, unpacking costs the reader more than it saves the file.
constexpr std::size_t kWorthCompressing = 64 * 1024;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip header
constexpr int kMemoryLevel = 8;
constexpr int kLevel = 6;

}  // namespace

template <typename T>
void TypedArrays::Append(std::string_view name, const char* type, const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little, "arrays are written as they lie");
  bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
  index_ += fmt::format("{}\"{}\":[\"{}\",{},{}]", index_.empty() ? "" : ",", name, type,
                        bytes_.size(), values.size());
  bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void TypedArrays::Add(std::string_view name, const std::vector<double>& values) {
  Append(name, "f64", values);
}
void TypedArrays::Add(std::string_view name, const std::vector<std::uint32_t>& values) {
  Append(name, "u32", values);
}
void TypedArrays::Add(std::string_view name, const std::vector<std::int32_t>& values) {
  Append(name, "i32", values);
}
void TypedArrays::Add(std::string_view name, const std::vector<std::uint16_t>& values) {
  Append(name, "u16", values);
}
void TypedArrays::Add(std::string_view name, const std::vector<std::int16_t>& values) {
  Append(name, "i16", values);
}
void TypedArrays::Add(std::string_view name, const std::vector<std::uint8_t>& values) {
  Append(name, "u8", values);
}

std::string TypedArrays::JsonMembers() const {
  const bool compressed = bytes_.size() >= kWorthCompressing;
  return fmt::format(R"("arrays":{{{}}},"encoding":"{}","data":"{}")", index_,
                     compressed ? "gzip" : "raw", Base64(compressed ? Gzipped(bytes_) : bytes_));
}

std::string Base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= have ? kAlphabet[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

std::string Gzipped(std::string_view bytes) {
  z_stream stream{};
  QUADRILLE_CHECK(deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                               Z_DEFAULT_STRATEGY) == Z_OK,
                  "deflate could not be set up");
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  // zlib does not write through next_in, it only lacks the const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  QUADRILLE_CHECK(status == Z_STREAM_END, "deflate returned {} on a buffer of its own bound",
                  status);
  return packed;
}

}  // namespace quadrille::report
