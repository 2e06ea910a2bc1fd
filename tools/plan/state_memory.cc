#include "tools/plan/state_memory.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/report/number_text.h"

namespace quadrille::plan {
namespace {

// One part of a name, such as "405b": its size, or nothing.
std::optional<ParameterCount> SizeOf(std::string_view part) {
  if (part.size() < 2) return std::nullopt;
  const char suffix = part.back();
  const double unit = suffix == 't' || suffix == 'T'   ? 1e12
                      : suffix == 'b' || suffix == 'B' ? 1e9
                      : suffix == 'm' || suffix == 'M' ? 1e6
                                                       : 0.0;
  double number = 0.0;
  const char* end = part.data() + part.size() - 1;
  const auto [read, error] = std::from_chars(part.data(), end, number, std::chars_format::fixed);
  if (unit == 0.0 || error != std::errc() || read != end || !(number > 0.0 && number < 1e6)) {
    return std::nullopt;
  }
  return ParameterCount(std::llround(number * unit));
}

AccountTable NeedTable(const StateBytes& bytes, ParameterCount parameters, Bytes capacity,
                       const std::string& key, const std::string& title) {
  AccountTable table;
  table.key = key;
  table.title = title;
  table.columns = {{"what", "what is held"},
                   {"bytes_per_parameter", "bytes/parameter"},
                   {"bytes", "total"},
                   {"gpus", "GPUs at least"}};
  const auto add = [&](const char* what, double per_parameter) {
    const Bytes total = StateOf(parameters, per_parameter);
    table.rows.push_back({std::string(what), per_parameter, total, GpusToHold(total, capacity)});
  };
  add("weights alone", bytes.weight);
  if (bytes.master > 0.0) add("fp32 master weights alone", bytes.master);
  if (bytes.total() > bytes.weight) add("all states", bytes.total());
  const double all = bytes.total() * (1.0 + kActivationReserve);
  add(bytes.total() > bytes.weight ? "all states and 30 % for activations"
                                   : "weights and 30 % for activations",
      all);
  const double needed =
      static_cast<double>(StateOf(parameters, all).value()) / static_cast<double>(capacity.value());
  table.formula = fmt::format(
      "parameters x bytes per parameter; GPUs = total / {} rounded up, of the last line {:.1f}",
      report::BytesText(capacity), needed);
  return table;
}

// What the bytes per parameter leave out or differ in.
std::string StateNote(const scenario::Scenario& scenario, const StateBytes& bytes) {
  std::string note;
  if (bytes.gradient > 2.0 && bytes.weight == 2.0) {
    note =
        "The usual 16 (ZeRO, arXiv 1910.02054) has 16-bit gradients; this run keeps and reduces "
        "them in fp32.";
  }
  const double narrow = model::NarrowBytesPerParameter(scenario.execution.recipe);
  if (narrow > 0.0) {
    note += fmt::format(
        "{}Weights in the GEMMs' own format, {:.3g} bytes each, are cast every step and no state; "
        "the simulated memory below counts them.",
        note.empty() ? "" : " ", narrow);
  }
  return note;
}

}  // namespace

StateBytes StatesOf(const scenario::Scenario& scenario) {
  StateBytes bytes = StateBytesOf(scenario.execution.recipe, scenario.optimizer.gradient_dtype,
                                  scenario.optimizer.moments_dtype);
  if (scenario.execution.forward_only) {
    bytes.gradient = bytes.master = bytes.first_moment = bytes.second_moment = 0.0;
  }
  return bytes;
}

StateBytes StateBytesOf(Recipe recipe, DataType gradient, DataType moments) {
  StateBytes bytes;
  bytes.gradient = BytesPerElement(gradient);
  bytes.first_moment = BytesPerElement(moments);
  bytes.second_moment = bytes.first_moment;
  if (recipe == Recipe::kFp32) {
    bytes.weight = 4.0;
    bytes.master = 0.0;
  }
  return bytes;
}

Bytes StateOf(ParameterCount parameters, double bytes_per_parameter) {
  return Bytes(std::llround(static_cast<double>(parameters.value()) * bytes_per_parameter));
}

std::int64_t GpusToHold(Bytes bytes, Bytes capacity) {
  QUADRILLE_CHECK(capacity > Bytes(0), "capacity {} bytes", capacity.value());
  return (bytes.value() + capacity.value() - 1) / capacity.value();
}

std::optional<ParameterCount> NominalParameters(std::string_view name) {
  std::optional<ParameterCount> size;
  while (!name.empty()) {
    const std::size_t dash = std::min(name.find('-'), name.size());
    // The first size is the whole model's: "qwen3-235b-a22b".
    if (!size) size = SizeOf(name.substr(0, dash));
    name.remove_prefix(std::min(dash + 1, name.size()));
  }
  return size;
}

Account DescribeStateMemory(const scenario::Scenario& scenario) {
  const model::ParameterTotals totals = model::CountParameters(scenario.model);
  const StateBytes bytes = StatesOf(scenario);
  const Bytes capacity = scenario.gpu.memory_capacity;
  const std::optional<ParameterCount> nominal = NominalParameters(scenario.model.name);

  Account account{
      .key = "states", .title = "Training states", .figures = {}, .tables = {}, .remarks = {}};
  account.figures.push_back({"parameters", "parameters", totals.total,
                             "every matrix, bias and norm of the model, vocabulary not padded",
                             fmt::format("exactly {}", report::CountText(totals.total.value()))});
  if (totals.active != totals.total) {
    account.figures.push_back(
        {"active_parameters", "active per token", totals.active,
         "top-k of the routed experts, shared experts, all else",
         fmt::format("{} without the embedding tables",
                     report::ParametersText(totals.active_without_embedding))});
  }
  if (totals.multi_token_prediction > ParameterCount(0)) {
    account.figures.push_back({"prediction_parameters", "prediction modules",
                               totals.multi_token_prediction,
                               "multi-token prediction, not in the total", ""});
  }
  account.figures.push_back(
      {"bytes_per_parameter", "bytes per parameter", bytes.total(),
       fmt::format("weight {:g} + gradient {:g} + master {:g} + Adam m {:g} + Adam v {:g}",
                   bytes.weight, bytes.gradient, bytes.master, bytes.first_moment,
                   bytes.second_moment),
       StateNote(scenario, bytes)});
  if (scenario.execution.forward_only) {
    account.remarks.emplace_back(
        "The run is a forward pass alone: no gradients, no optimizer states.");
  }
  account.tables.push_back(NeedTable(
      bytes, totals.total, capacity, "gpus_needed",
      fmt::format("GPUs that hold {}, {} each", scenario.model.name, report::BytesText(capacity))));
  if (nominal && !scenario.execution.forward_only) {
    StateBytes usual;
    account.tables.push_back(NeedTable(
        usual, *nominal, capacity, "gpus_needed_nominal",
        fmt::format("the same with the rounded size {:.4g}e9 of the model's name and 16 bytes",
                    static_cast<double>(nominal->value()) / 1e9)));
    account.remarks.push_back(fmt::format(
        "The two tables differ because the name rounds {:.2f}e9 parameters to {:.4g}e9{}.",
        static_cast<double>(totals.total.value()) / 1e9,
        static_cast<double>(nominal->value()) / 1e9,
        bytes.total() != 16.0 ? " and the run's gradients are wider" : ""));
  }
  return account;
}

}  // namespace quadrille::plan
