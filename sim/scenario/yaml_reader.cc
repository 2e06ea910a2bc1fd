#include "sim/scenario/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/nearest.h"
#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {
namespace {

// Abbreviations that people try first, and the keys they mean.
struct Synonym {
  std::string_view tried;
  std::string_view meant;
};
constexpr Synonym kSynonyms[] = {
    {"tp", "tensor"},
    {"pp", "pipeline"},
    {"cp", "context"},
    {"ep", "expert"},
    {"etp", "expert_tensor"},
    {"dp", "data"},
    {"vp", "virtual_stages"},
    {"vpp", "virtual_stages"},
    {"sp", "sequence"},
    {"mbs", "micro_batch"},
    {"gbs", "global_batch"},
    {"seq_length", "sequence_length"},
    {"seq_len", "sequence_length"},
    {"vocab_size", "vocabulary"},
    {"num_layers", "layers"},
    {"hidden_size", "hidden"},
    {"num_attention_heads", "heads"},
    {"num_query_groups", "kv_heads"},
    {"ffn_hidden_size", "ffn_hidden"},
};

std::string_view KindName(YamlValue::Kind kind) {
  switch (kind) {
    case YamlValue::Kind::kNull: return "nothing";
    case YamlValue::Kind::kScalar: return "a single value";
    case YamlValue::Kind::kSequence: return "a list";
    case YamlValue::Kind::kMap: return "a map";
  }
  return "?";
}

std::string_view MeantBy(std::string_view tried, std::span<const std::string_view> known) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.tried == tried &&
        std::find(known.begin(), known.end(), synonym.meant) != known.end()) {
      return synonym.meant;
    }
  }
  return Nearest(tried, known);
}

// A bound as one would write it.
std::string BoundText(Bytes bytes) {
  return fmt::format("{:g} TB", static_cast<double>(bytes.value()) * 1e-12);
}
std::string BoundText(BytesPerSecond rate) {
  return rate.value() < 1e9 ? fmt::format("{:g} MB/s", rate.value() * 1e-6)
                            : fmt::format("{:g} TB/s", rate.value() * 1e-12);
}
std::string BoundText(FlopsPerSecond rate) {
  return rate.value() < 1e12 ? fmt::format("{:g} GFLOP/s", rate.value() * 1e-9)
                             : fmt::format("{:g} EFLOP/s", rate.value() * 1e-18);
}
std::string BoundText(Duration d) {
  return d < std::chrono::seconds(1) ? fmt::format("{:g} ms", ToSeconds(d) * 1e3)
                                     : fmt::format("{:g} s", ToSeconds(d));
}
std::string BoundText(Ratio ratio) { return fmt::format("{:g}", ratio.value()); }
std::string BoundText(ParameterCount count) {
  return fmt::format("{:g}T", static_cast<double>(count.value()) * 1e-12);
}
std::string BoundText(TokenCount count) {
  return fmt::format("{:g}T", static_cast<double>(count.value()) * 1e-12);
}
std::string BoundText(reliability::WallTime time) {
  return fmt::format("{:g} d", static_cast<double>(time.count()) / 86'400e6);
}

// As for the quantities of a machine: beyond, a unit is wrong.
constexpr Range<TokenCount> kAnyTokens{TokenCount(0), TokenCount(10'000'000'000'000'000)};
constexpr Range<reliability::WallTime> kAnyWallTime{reliability::WallTime(0),
                                                    std::chrono::hours(24 * 36'500)};

}  // namespace

MapReader::MapReader(const YamlValue* value, std::string path, Findings* findings)
    : path_(std::move(path)), findings_(findings) {
  if (value == nullptr) return;
  if (!findings_->Has(path_)) findings_->Place(path_, value->position);
  if (value->is_map()) {
    map_ = value;
    return;
  }
  // A name whose file could not be read has been reported.
  if (!findings_->Good({path_})) return;
  findings_->Fail(path_);
  findings_->Error(value->position,
                   fmt::format("{}expected a map of keys, got {}",
                               path_.empty() ? "" : path_ + ": ", KindName(value->kind)));
}

std::string MapReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void MapReader::Error(std::string_view key, std::string_view message, ProblemKind kind) {
  const std::string path = PathOf(key);
  findings_->Fail(path);
  findings_->ErrorAt(path, message, kind);
}

const YamlValue* MapReader::Find(std::string_view key) {
  const bool first = std::find(known_.begin(), known_.end(), key) == known_.end();
  if (first) known_.push_back(key);
  if (map_ == nullptr) return nullptr;
  const YamlEntry* entry = map_->Find(key);
  if (entry == nullptr) return nullptr;
  if (first) {
    // A map or list is named by its key, unless it came from another file.
    const bool elsewhere = entry->value.position.file != entry->position.file;
    findings_->Place(PathOf(key), entry->value.is_scalar() || elsewhere ? entry->value.position
                                                                        : entry->position);
  }
  if (!entry->value.is_null()) return &entry->value;
  if (entry->value.refused) {
    findings_->Fail(PathOf(key));
  } else if (first) {
    Error(key, "has no value");
  }
  return nullptr;
}

const YamlValue* MapReader::FindScalar(std::string_view key, bool plain) {
  const YamlValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_scalar()) {
    Error(key, fmt::format("expected a single value, got {}", KindName(value->kind)));
    return nullptr;
  }
  if (plain && value->quoted) {
    Error(key, fmt::format("the quotes make {} a string; write it without", Quoted(value->text)));
    return nullptr;
  }
  return value;
}

template <typename T, typename Parse>
bool MapReader::ReadParsed(std::string_view key, T* out, Parse parse, bool plain) {
  const YamlValue* value = FindScalar(key, plain);
  if (value == nullptr) return false;
  const auto parsed = parse(value->text);
  if (!parsed) {
    Error(key, parsed.error());
    return false;
  }
  *out = *parsed;
  return true;
}

bool MapReader::Read(std::string_view key, bool* out) {
  return ReadParsed(key, out, ParseBool, true);
}

bool MapReader::Read(std::string_view key, std::string* out) {
  const YamlValue* value = FindScalar(key, false);
  if (value == nullptr) return false;
  if (value->text.empty()) {
    Error(key, "is an empty string");
    return false;
  }
  *out = value->text;
  return true;
}

bool MapReader::Read(std::string_view key, std::int32_t* out, Range<std::int32_t> range) {
  std::int64_t value = 0;
  if (!ReadParsed(key, &value, ParseInteger, true)) return false;
  if (value < range.minimum || value > range.maximum) {
    Error(key, fmt::format("{} is not between {} and {}", value, range.minimum, range.maximum));
    return false;
  }
  *out = static_cast<std::int32_t>(value);
  return true;
}

bool MapReader::Read(std::string_view key, std::uint64_t* out) {
  return ReadParsed(key, out, ParseUnsigned, true);
}

bool MapReader::Read(std::string_view key, double* out, Range<double> range) {
  double value = 0;
  if (!ReadParsed(key, &value, ParseNumber, true)) return false;
  if (value < range.minimum || value > range.maximum) {
    Error(key, fmt::format("{} is not between {} and {}", value, range.minimum, range.maximum));
    return false;
  }
  *out = value;
  return true;
}

// A zero that is allowed means that there is none; everything else lies in the range.
template <typename T>
bool MapReader::ReadQuantity(std::string_view key, T* out, Parsed<T> (*parse)(std::string_view),
                             Zero zero, Range<T> range) {
  T value{};
  if (!ReadParsed(key, &value, parse, true)) return false;
  if (value == T{}) {
    if (zero == Zero::kRefused) {
      Error(key, "must not be zero");
      return false;
    }
  } else if (value < range.minimum || value > range.maximum) {
    Error(key, fmt::format("{} is not between {} and {}", Quoted(Find(key)->text),
                           BoundText(range.minimum), BoundText(range.maximum)));
    return false;
  }
  *out = value;
  return true;
}

bool MapReader::Read(std::string_view key, Bytes* out, Zero zero) {
  return ReadQuantity(key, out, ParseBytes, zero, kAnyBytes);
}
bool MapReader::Read(std::string_view key, BytesPerSecond* out, Zero zero) {
  return ReadQuantity(key, out, ParseBandwidth, zero, kAnyBandwidth);
}
bool MapReader::Read(std::string_view key, FlopsPerSecond* out, Zero zero) {
  return ReadQuantity(key, out, ParseFlopRate, zero, kAnyFlops);
}
bool MapReader::Read(std::string_view key, Duration* out, Zero zero) {
  return ReadQuantity(key, out, ParseDuration, zero, kAnyDuration);
}
bool MapReader::Read(std::string_view key, Duration* out, Range<Duration> range) {
  return ReadQuantity(key, out, ParseDuration, Zero::kAllowed, range);
}
bool MapReader::Read(std::string_view key, Duration* out, Signed) {
  return ReadQuantity(key, out, ParseSignedDuration, Zero::kAllowed,
                      {-kLatency.maximum, kLatency.maximum});
}
bool MapReader::Read(std::string_view key, Ratio* out, Zero zero) {
  return ReadQuantity(key, out, ParseRatio, zero, kAnyRatio);
}
bool MapReader::Read(std::string_view key, ParameterCount* out, Zero zero) {
  return ReadQuantity(key, out, ParseParameters, zero, kAnyParameters);
}
bool MapReader::Read(std::string_view key, TokenCount* out, Zero zero) {
  return ReadQuantity(key, out, ParseTokens, zero, kAnyTokens);
}

bool MapReader::Read(std::string_view key, reliability::WallTime* out, Zero zero) {
  return ReadQuantity(key, out, ParseWallTime, zero, kAnyWallTime);
}

template <typename T, typename Parse>
bool MapReader::ReadList(std::string_view key, std::vector<T>* out, std::string_view example,
                         Parse parse) {
  const YamlValue* list = Find(key);
  if (list == nullptr) return false;
  if (!list->is_sequence()) {
    Error(key, fmt::format("expected a list such as {}, got {}", example, KindName(list->kind)));
    return false;
  }
  std::vector<T> values;
  for (const YamlValue& item : list->items) {
    const Parsed<T> value = item.is_scalar() && !item.quoted
                                ? parse(item.text)
                                : tl::unexpected(fmt::format("expected a list such as {}, got {}",
                                                             example, KindName(item.kind)));
    if (!value) {
      findings_->Fail(PathOf(key));
      findings_->Error(item.position, fmt::format("{}: {}", PathOf(key), value.error()));
      return false;
    }
    values.push_back(*value);
  }
  *out = std::move(values);
  return true;
}

bool MapReader::Read(std::string_view key, std::vector<std::int32_t>* out,
                     Range<std::int32_t> range) {
  return ReadList(key, out, "[0, 1]", [&](std::string_view text) -> Parsed<std::int32_t> {
    const Parsed<std::int64_t> value = ParseInteger(text);
    if (!value) return tl::unexpected(value.error());
    if (*value < range.minimum || *value > range.maximum) {
      return tl::unexpected(
          fmt::format("{} is not between {} and {}", *value, range.minimum, range.maximum));
    }
    return static_cast<std::int32_t>(*value);
  });
}

bool MapReader::Read(std::string_view key, std::vector<BytesPerSecond>* out) {
  return ReadList(
      key, out, "[100 GB/s, 200 GB/s]", [](std::string_view text) -> Parsed<BytesPerSecond> {
        const Parsed<BytesPerSecond> value = ParseBandwidth(text);
        if (value && (*value < kAnyBandwidth.minimum || *value > kAnyBandwidth.maximum)) {
          return tl::unexpected(fmt::format("{} is not between {} and {}", Quoted(text),
                                            BoundText(kAnyBandwidth.minimum),
                                            BoundText(kAnyBandwidth.maximum)));
        }
        return value;
      });
}

bool MapReader::Read(std::string_view key, std::vector<double>* out, Range<double> range) {
  return ReadList(key, out, "[1.5, 0.5]", [&](std::string_view text) -> Parsed<double> {
    const Parsed<double> value = ParseNumber(text);
    if (value && (*value < range.minimum || *value > range.maximum)) {
      return tl::unexpected(
          fmt::format("{} is not between {} and {}", *value, range.minimum, range.maximum));
    }
    return value;
  });
}

bool MapReader::Read(std::string_view key, std::vector<std::string>* out,
                     std::string_view example) {
  return ReadList(key, out, example,
                  [](std::string_view text) -> Parsed<std::string> { return std::string(text); });
}

int FindChoice(std::string_view text, std::span<const std::string_view> names,
               std::string* message) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<int>(i);
  }
  const std::string_view nearest = Nearest(text, names);
  *message = nearest.empty()
                 ? fmt::format("unknown {}; accepted: {}", Quoted(text), fmt::join(names, ", "))
                 : fmt::format("unknown {}; did you mean '{}'? accepted: {}", Quoted(text), nearest,
                               fmt::join(names, ", "));
  return -1;
}

int MapReader::ReadChoice(std::string_view key, std::span<const std::string_view> names) {
  const YamlValue* value = FindScalar(key, false);
  if (value == nullptr) return -1;
  std::string message;
  const int row = FindChoice(value->text, names, &message);
  if (row < 0) Error(key, message);
  return row;
}

MapReader MapReader::Section(std::string_view key) {
  return MapReader(Find(key), PathOf(key), findings_);
}

void MapReader::Require(std::initializer_list<std::string_view> keys) {
  if (map_ == nullptr) return;
  for (std::string_view key : keys) {
    if (map_->Find(key) == nullptr) Error(key, "is missing");
  }
}

void MapReader::Finish() {
  if (map_ == nullptr) return;
  for (const YamlEntry& entry : map_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const std::string where = path_.empty() ? "" : fmt::format(" in {}", path_);
    const std::string_view meant = MeantBy(entry.key, known_);
    if (!meant.empty()) findings_->Fail(PathOf(meant));
    findings_->Error(entry.position, meant.empty()
                                         ? fmt::format("unknown key {}{}", Quoted(entry.key), where)
                                         : fmt::format("unknown key {}{}; did you mean '{}'?",
                                                       Quoted(entry.key), where, meant));
  }
}

}  // namespace quadrille::scenario
