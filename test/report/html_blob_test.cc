#include "sim/report/html_blob.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace quadrille::report {
namespace {

std::string Inflated(const std::string& packed, std::size_t size) {
  std::string bytes(size, '\0');
  z_stream stream{};
  inflateInit2(&stream, 15 + 16);
  std::string input = packed;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

TEST(HtmlBlobTest, Base64IsThatOfTheStandard) {
  // RFC 4648, section 10.
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(HtmlBlobTest, GzippedBytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(i % 251 * (i % 251) % 251);
  const std::string packed = Gzipped(bytes);
  EXPECT_LT(packed.size(), bytes.size());
  EXPECT_EQ(Inflated(packed, bytes.size()), bytes);
}

TEST(HtmlBlobTest, ArraysStartAtMultiplesOfEightAndKeepTheirValues) {
  TypedArrays arrays;
  arrays.Add("bytes", std::vector<std::uint8_t>{1, 2, 3});
  arrays.Add("times", std::vector<double>{0.5, -2.0});
  arrays.Add("layers", std::vector<std::int16_t>{-1, 7});
  arrays.Add("none", std::vector<std::uint32_t>{});
  const auto json = nlohmann::json::parse("{" + arrays.JsonMembers() + "}");
  EXPECT_EQ(json.at("encoding"), "raw");
  EXPECT_EQ(json.at("arrays").at("bytes"), nlohmann::json::array({"u8", 0, 3}));
  EXPECT_EQ(json.at("arrays").at("times"), nlohmann::json::array({"f64", 8, 2}));
  EXPECT_EQ(json.at("arrays").at("layers"), nlohmann::json::array({"i16", 24, 2}));
  EXPECT_EQ(json.at("arrays").at("none"), nlohmann::json::array({"u32", 32, 0}));
  std::string expected = std::string("\1\2\3\0\0\0\0\0", 8);
  for (double value : {0.5, -2.0}) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    expected.append(raw, sizeof value);
  }
  expected += std::string("\xff\xff\x07\x00\0\0\0\0", 8);
  EXPECT_EQ(json.at("data"), Base64(expected));
}

TEST(HtmlBlobTest, LargeArraysAreCompressed) {
  TypedArrays arrays;
  arrays.Add("zeros", std::vector<double>(100'000, 0.0));
  const std::string members = arrays.JsonMembers();
  EXPECT_LT(members.size(), 20'000u);
  EXPECT_NE(members.find("\"encoding\":\"gzip\""), std::string::npos);
}

}  // namespace
}  // namespace quadrille::report
