#include "schedules/task_costs_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace quadrille::schedules {
namespace {

// A unit is held as a second and a step must stay below 13 days; a hundredth of that leaves room
// for many actions.
constexpr double kLargest = 9000;

class CostsParser {
 public:
  std::optional<Duration> Number(std::string_view flag, std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() ||
        !std::isfinite(value)) {
      Fail(fmt::format("{}: '{}' is not a number", flag, text));
      return std::nullopt;
    }
    if (value < 0 || value > kLargest) {
      Fail(fmt::format("{}: {} is not between 0 and {}", flag, text, kLargest));
      return std::nullopt;
    }
    return FromSeconds(value);
  }

  void Costs(std::string_view text) {
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      Assignment(text.substr(0, comma));
      text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
  }

  TaskCosts Complete() {
    TaskCosts costs;
    const auto& [f, b, i, w] = given_;
    if (f) costs.forward = *f;
    if (b && (i || w)) {
      const Duration half = i ? *i : *w;
      if (!(i && w) && half > *b) Fail("--costs: I and W must not be longer than B");
      costs.backward = *b;
      costs.backward_input = i ? *i : *b - half;
      costs.backward_weight = w ? *w : *b - half;
    } else if (b) {
      costs.backward = *b;
      costs.backward_input = *b / 2;
      costs.backward_weight = *b - *b / 2;
    } else {
      if (i) costs.backward_input = *i;
      if (w) costs.backward_weight = *w;
      costs.backward = costs.backward_input + costs.backward_weight;
    }
    return costs;
  }

  void Fail(std::string message) { problems_.push_back(Diagnostic{{}, std::move(message)}); }
  [[nodiscard]] Diagnostics& problems() { return problems_; }

 private:
  void Assignment(std::string_view text) {
    constexpr std::string_view kNames = "FBIW";
    const std::size_t name = text.empty() ? std::string_view::npos : kNames.find(text[0]);
    if (name == std::string_view::npos || text.size() < 2 || text[1] != '=') {
      return Fail(fmt::format("--costs: expected F=, B=, I= or W= and a number, not '{}'", text));
    }
    if (given_[name]) return Fail(fmt::format("--costs: {} is given twice", text[0]));
    given_[name] = Number(fmt::format("--costs {}", text[0]), text.substr(2));
  }

  std::array<std::optional<Duration>, 4> given_;  // F, B, I, W
  Diagnostics problems_;
};

}  // namespace

Result<TaskCosts> ParseTaskCosts(std::string_view costs, std::string_view latency,
                                 std::string_view pair) {
  CostsParser parser;
  parser.Costs(costs);
  TaskCosts result = parser.Complete();
  if (!latency.empty()) {
    result.latency = parser.Number("--latency", latency).value_or(Duration(0));
  }
  if (pair == "serial") {
    result.pair_cost = PairCost::kSerial;
  } else if (!pair.empty() && pair != "sum") {
    result.pair_cost = PairCost::kGiven;
    result.pair = parser.Number("--pair", pair).value_or(Duration(0));
  }
  if (!parser.problems().empty()) return tl::unexpected<Diagnostics>(std::move(parser.problems()));
  return result;
}

std::string ToString(const TaskCosts& costs) {
  std::string pair = "sum";
  if (costs.pair_cost == PairCost::kSerial) pair = "serial";
  if (costs.pair_cost == PairCost::kGiven) pair = fmt::format("{:.6g}", ToUnits(costs.pair));
  return fmt::format("F={:.6g} B={:.6g} I={:.6g} W={:.6g} latency={:.6g} pair={}",
                     ToUnits(costs.forward), ToUnits(costs.backward), ToUnits(costs.backward_input),
                     ToUnits(costs.backward_weight), ToUnits(costs.latency), pair);
}

}  // namespace quadrille::schedules
