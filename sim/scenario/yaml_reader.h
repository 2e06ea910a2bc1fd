// Reads a map of a YAML tree key by key, strictly: whatever is not asked for, is missing or has the
// wrong form is a problem with a position, and reading goes on.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/findings.h"
#include "sim/scenario/quantity_text.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {

// A value of an enumeration and how it is written.
template <typename E>
struct Named {
  std::string_view name;
  E value;
};

template <typename E, std::size_t n>
[[nodiscard]] constexpr std::string_view NameOf(E value, const Named<E> (&table)[n]) {
  for (const Named<E>& row : table) {
    if (row.value == value) return row.name;
  }
  return "?";
}

template <typename T>
struct Range {
  T minimum = std::numeric_limits<T>::lowest();
  T maximum = std::numeric_limits<T>::max();
};
// What quantities are taken between: any machine, with room to spare on both sides. Beyond, a unit
// is wrong, and products of several would not fit what they are counted in.
inline constexpr Range<Bytes> kAnyBytes{Bytes(0), Bytes(1'000'000'000'000'000)};
inline constexpr Range<BytesPerSecond> kAnyBandwidth{BytesPerSecond(1e6), BytesPerSecond(1e15)};
inline constexpr Range<FlopsPerSecond> kAnyFlops{FlopsPerSecond(1e9), FlopsPerSecond(1e19)};
inline constexpr Range<Duration> kAnyDuration{Duration(0), std::chrono::hours(1)};
inline constexpr Range<Duration> kLatency{Duration(0), std::chrono::seconds(1)};
// From a kernel's launch by the host to the next one's.
inline constexpr Range<Duration> kLaunch{Duration(0), std::chrono::milliseconds(10)};
inline constexpr Range<Ratio> kAnyRatio{Ratio(0), Ratio(1e6)};
inline constexpr Range<ParameterCount> kAnyParameters{ParameterCount(0),
                                                      ParameterCount(1'000'000'000'000'000)};
inline constexpr Range<std::int32_t> kPositive{1, 1 << 30};
inline constexpr Range<std::int32_t> kNotNegative{0, 1 << 30};

// Asks for a duration of either sign.
struct Signed {};

// Whether zero is a legal amount of a quantity.
enum class Zero : std::uint8_t { kAllowed, kRefused };

class MapReader {
 public:
  // `value` may be null (the map is absent, and so are all its keys) and must outlive the reader. A
  // value that is not a map is reported here. `path` is the dotted path of the map, empty for the
  // root.
  MapReader(const YamlValue* value, std::string path, Findings* findings);

  // The value of `key`, or nullptr when absent or empty; an empty value (`key:`) is reported. Every
  // key that was asked for counts as known. REQUIRES: `key` has static storage, here and in all
  // functions below.
  [[nodiscard]] const YamlValue* Find(std::string_view key);
  [[nodiscard]] bool Has(std::string_view key) { return Find(key) != nullptr; }

  // Each reads `key` into `*out` and returns true; an absent or wrong value leaves `*out` alone and
  // returns false.
  bool Read(std::string_view key, bool* out);
  bool Read(std::string_view key, std::string* out);
  bool Read(std::string_view key, std::int32_t* out, Range<std::int32_t> range = {});
  bool Read(std::string_view key, std::uint64_t* out);
  bool Read(std::string_view key, double* out, Range<double> range = {});
  bool Read(std::string_view key, Bytes* out, Zero zero = Zero::kRefused);
  bool Read(std::string_view key, BytesPerSecond* out, Zero zero = Zero::kRefused);
  bool Read(std::string_view key, FlopsPerSecond* out, Zero zero = Zero::kRefused);
  bool Read(std::string_view key, Duration* out, Zero zero = Zero::kAllowed);
  bool Read(std::string_view key, Duration* out, Range<Duration> range);
  bool Read(std::string_view key, Duration* out, Signed);
  bool Read(std::string_view key, Ratio* out, Zero zero = Zero::kAllowed);
  bool Read(std::string_view key, ParameterCount* out, Zero zero = Zero::kRefused);
  bool Read(std::string_view key, TokenCount* out, Zero zero = Zero::kRefused);
  bool Read(std::string_view key, reliability::WallTime* out, Zero zero);
  bool Read(std::string_view key, std::vector<std::int32_t>* out, Range<std::int32_t> range);
  bool Read(std::string_view key, std::vector<BytesPerSecond>* out);
  bool Read(std::string_view key, std::vector<double>* out, Range<double> range);
  // `example` is a list as it may be written.
  bool Read(std::string_view key, std::vector<std::string>* out, std::string_view example);

  template <typename E, std::size_t n>
  bool ReadName(std::string_view key, E* out, const Named<E> (&table)[n]) {
    std::string_view names[n];
    for (std::size_t i = 0; i < n; ++i) names[i] = table[i].name;
    const int row = ReadChoice(key, names);
    if (row >= 0) *out = table[row].value;
    return row >= 0;
  }
  // The index of the written name, or -1.
  [[nodiscard]] int ReadChoice(std::string_view key, std::span<const std::string_view> names);

  // A map below this one. Absent: an empty reader.
  [[nodiscard]] MapReader Section(std::string_view key);

  // Reports each of `keys` that is absent, at the map's own position. An absent map lacks nothing.
  void Require(std::initializer_list<std::string_view> keys);

  // Reports keys that nobody asked for, each with the nearest that somebody did.
  void Finish();

  [[nodiscard]] bool present() const { return map_ != nullptr; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string PathOf(std::string_view key) const;
  [[nodiscard]] Findings& findings() { return *findings_; }
  void Error(std::string_view key, std::string_view message,
             ProblemKind kind = ProblemKind::kWrongInput);
  // What keeps the file that `key` names from being read.
  void FileError(std::string_view key, const Diagnostics& problems) {
    for (const Diagnostic& problem : problems) Error(key, ToString(problem), problem.kind);
  }

 private:
  // The scalar at `key`, when it is one of the wanted form.
  [[nodiscard]] const YamlValue* FindScalar(std::string_view key, bool plain);
  template <typename T, typename Parse>
  bool ReadParsed(std::string_view key, T* out, Parse parse, bool plain);
  template <typename T, typename Parse>
  bool ReadList(std::string_view key, std::vector<T>* out, std::string_view example, Parse parse);
  template <typename T>
  bool ReadQuantity(std::string_view key, T* out, Parsed<T> (*parse)(std::string_view), Zero zero,
                    Range<T> range);

  const YamlValue* map_ = nullptr;
  std::string path_;
  Findings* findings_;
  std::vector<std::string_view> known_;
};

// Checks a name against the accepted ones: its index, or -1 and `*message` says what was expected.
[[nodiscard]] int FindChoice(std::string_view text, std::span<const std::string_view> names,
                             std::string* message);

}  // namespace quadrille::scenario
