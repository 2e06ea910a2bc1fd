#include "sim/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/base/counter_rng.h"
#include "sim/report/number_text.h"

namespace quadrille::report {
namespace {

// Differences below these are not worth a word.
constexpr double kEqualTime = 0.0005;
constexpr std::int64_t kEqualBytes = 50'000'000;

// A value as a cell: an order of actions would fill pages.
std::string Shortened(const std::string& value) {
  constexpr std::size_t kMost = 60;
  if (value.size() <= kMost) return value;
  std::uint64_t hash = Mix(value.size());
  for (char c : value) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return fmt::format("{} bytes, hash {}", value.size(), HexText(hash));
}

// "of which 12.3 GB wait for weight gradients", or empty.
std::string WaitingText(const ComparedRun& run) {
  if (run.waiting_for_weight_gradient.value() < kEqualBytes) return "";
  return fmt::format("of the peak {} wait for weight gradients",
                     BytesText(run.waiting_for_weight_gradient));
}

std::string Slower(const ComparedRun& run, const ComparedRun& other) {
  const double ratio = ToSeconds(run.step.step_time) / ToSeconds(other.step.step_time);
  if (std::abs(ratio - 1.0) < kEqualTime) return fmt::format("as fast as {}", other.label);
  return fmt::format("{:.1f} % {} than {}", std::abs(ratio - 1.0) * 100.0,
                     ratio < 1.0 ? "faster" : "slower", other.label);
}

// "12.3 GB more", or empty when about equal.
std::string MemoryDifference(Bytes bytes, Bytes other) {
  const std::int64_t difference = bytes.value() - other.value();
  if (std::abs(difference) < kEqualBytes) return "";
  return fmt::format("{} {} at the peak", BytesText(Bytes(std::abs(difference))),
                     difference < 0 ? "less" : "more");
}

// What the run has for a key, written or not; empty where nothing is known.
DescribedValue ValueOf(const RunDescription& run, const std::string& key) {
  for (const auto* values : {&run.values, &run.implied}) {
    const auto found = std::find_if(values->begin(), values->end(),
                                    [&](const DescribedValue& value) { return value.key == key; });
    if (found != values->end()) return *found;
  }
  return {};
}

void Append(std::string& text, const std::string& part) {
  if (part.empty()) return;
  if (!text.empty()) text += ", ";
  text += part;
}

}  // namespace

void SortByStepTime(Comparison& comparison) {
  std::sort(comparison.runs.begin(), comparison.runs.end(),
            [](const ComparedRun& a, const ComparedRun& b) {
              return std::tie(a.step.step_time, a.label) < std::tie(b.step.step_time, b.label);
            });
}

std::string ReasonText(const Diagnostics& problems) {
  std::string text;
  for (const Diagnostic& problem : problems) {
    if (!text.empty()) text += "; ";
    text += problem.message;
  }
  return text;
}

std::vector<DifferingKey> DifferingKeys(const Comparison& comparison) {
  std::vector<DifferingKey> keys;
  std::set<std::string> seen;
  for (const ComparedRun& writer : comparison.runs) {
    for (const DescribedValue& written : writer.run.values) {
      if (!seen.insert(written.key).second) continue;
      DifferingKey key{written.key, {}};
      bool differs = false;
      for (const ComparedRun& run : comparison.runs) {
        const DescribedValue value = ValueOf(run.run, key.key);
        differs = differs || value.canonical != ValueOf(writer.run, key.key).canonical;
        key.values.push_back(Shortened(value.text));
      }
      if (differs) keys.push_back(std::move(key));
    }
  }
  return keys;
}

std::string TradeText(const Comparison& comparison, std::size_t index) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  if (runs.size() < 2) return "nothing to compare with";
  const ComparedRun& run = runs[index];
  const auto fits = [](const ComparedRun& r) { return !r.step.out_of_memory; };
  const auto fitting = std::find_if(runs.begin(), runs.end(), fits);
  const ComparedRun& best = fitting == runs.end() ? runs.front() : *fitting;
  std::string text;
  if (&run == &best) {
    const auto leanest =
        std::min_element(runs.begin(), runs.end(), [](const ComparedRun& a, const ComparedRun& b) {
          return a.step.peak_memory < b.step.peak_memory;
        });
    text = &best == &runs.front() ? "the fastest" : "the fastest that fits";
    const std::string more = MemoryDifference(run.step.peak_memory, leanest->step.peak_memory);
    Append(text, more.empty() ? "and none needs less memory"
                              : fmt::format("with {} than {}", more, leanest->label));
  } else {
    text = Slower(run, best);
    Append(text, MemoryDifference(run.step.peak_memory, best.step.peak_memory));
    Append(text, WaitingText(run));
    const double messages = run.messages_per_microbatch;
    if (std::abs(messages - best.messages_per_microbatch) >= 0.5) {
      Append(text, fmt::format("{:.4g} instead of {:.4g} messages per microbatch", messages,
                               best.messages_per_microbatch));
    }
    if (run.parameter_copies != best.parameter_copies) {
      Append(text, fmt::format("{} {} of the parameters", run.parameter_copies,
                               run.parameter_copies == 1 ? "copy" : "copies"));
    }
  }
  if (run.step.out_of_memory) {
    Append(text, fmt::format("does not fit {}", BytesText(run.step.memory_capacity)));
  }
  return text;
}

std::string SizesText(const ComparedRun& run) {
  std::string text = fmt::format("v {}", run.run.parallel.virtual_stages);
  if (run.run.microbatch_group > 0) text += fmt::format(", group {}", run.run.microbatch_group);
  return text;
}

}  // namespace quadrille::report
