// Numbers for the report page: typed arrays in one block of bytes, as text that a script can read
// back without parsing numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quadrille::report {

// Collects arrays of little-endian numbers. Each begins at a multiple of eight bytes, as
// JavaScript's typed arrays need it.
class TypedArrays {
 public:
  void Add(std::string_view name, const std::vector<double>& values);
  void Add(std::string_view name, const std::vector<std::uint32_t>& values);
  void Add(std::string_view name, const std::vector<std::int32_t>& values);
  void Add(std::string_view name, const std::vector<std::uint16_t>& values);
  void Add(std::string_view name, const std::vector<std::int16_t>& values);
  void Add(std::string_view name, const std::vector<std::uint8_t>& values);

  // `"arrays":{"name":["f64",offset,count],...},"encoding":"gzip","data":"base64"`, the members of
  // a JSON object. Compressed ("gzip") when that pays, else "raw".
  [[nodiscard]] std::string JsonMembers() const;

 private:
  template <typename T>
  void Append(std::string_view name, const char* type, const std::vector<T>& values);

  std::string index_;
  std::string bytes_;
};

// RFC 4648 with padding.
[[nodiscard]] std::string Base64(std::string_view bytes);

// A gzip member that holds `bytes`.
[[nodiscard]] std::string Gzipped(std::string_view bytes);

}  // namespace quadrille::report
