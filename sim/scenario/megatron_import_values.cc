#include "sim/scenario/megatron_import_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/scenario/text_checks.h"

namespace quadrille::scenario {

bool MegatronFlagValues::Has(const std::string& name) {
  read_.insert(name);
  return last_.count(name) != 0;
}

std::optional<std::string> MegatronFlagValues::Text(const std::string& name) {
  read_.insert(name);
  const auto found = last_.find(name);
  if (found == last_.end()) return std::nullopt;
  const MegatronFlag& flag = *found->second;
  if (flag.values.size() != 1) {
    Error(flag, fmt::format("needs one value, has {}", flag.values.size()));
    return std::nullopt;
  }
  if (IsUnevaluated(flag.values.front())) {
    Error(flag,
          fmt::format("{} is not known without running the script", Quoted(flag.values.front())));
    return std::nullopt;
  }
  return flag.values.front();
}

std::vector<std::string> MegatronFlagValues::List(const std::string& name) {
  read_.insert(name);
  const auto found = last_.find(name);
  return found == last_.end() ? std::vector<std::string>{} : found->second->values;
}

std::optional<std::int64_t> MegatronFlagValues::Whole(const std::string& name) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && rest == end && number >= 0 && number <= 1'000'000'000) {
    return number;
  }
  Error(*last_.at(name), fmt::format("expected a whole number, got {}", Quoted(*text)));
  return std::nullopt;
}

std::optional<double> MegatronFlagValues::Number(const std::string& name) {
  const std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  double number = 0.0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && rest == end) return number;
  Error(*last_.at(name), fmt::format("expected a number, got {}", Quoted(*text)));
  return std::nullopt;
}

std::int64_t MegatronFlagValues::Require(const std::string& name, const std::string& file) {
  if (!Has(name)) {
    problems_.push_back({{file, 0, 0}, fmt::format("--{} is missing", name)});
    return 1;
  }
  return std::max<std::int64_t>(Whole(name).value_or(1), 1);
}

void MegatronFlagValues::Error(const std::string& name, const std::string& message) {
  Error(*last_.at(name), message);
}

void MegatronFlagValues::Refuse(const std::string& name, const std::string& instead) {
  refused_.push_back(
      {last_.at(name)->position,
       fmt::format("--{} {}: {}", name, fmt::join(last_.at(name)->values, " "), instead)});
}

void MegatronFlagValues::Error(const MegatronFlag& flag, const std::string& message) {
  problems_.push_back({flag.position, fmt::format("--{}: {}", flag.name, message)});
}

}  // namespace quadrille::scenario
