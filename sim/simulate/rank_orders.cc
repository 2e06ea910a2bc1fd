#include "sim/simulate/rank_orders.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace quadrille::simulate {
namespace {

std::int32_t DegreeOf(parallel::Dimension dimension, const parallel::ParallelConfig& degrees) {
  using parallel::Dimension;
  switch (dimension) {
    case Dimension::kTensor: return degrees.tensor;
    case Dimension::kContext: return degrees.context;
    case Dimension::kExpert: return degrees.expert;
    case Dimension::kData: return degrees.data;
    case Dimension::kPipeline: return degrees.pipeline;
  }
  return 1;
}

// The order as written, and then those of degree 1 that it leaves out: where they stand changes
// nothing.
std::string Completed(const std::string& order, const parallel::ParallelConfig& degrees) {
  const std::array<std::pair<const char*, std::int32_t>, 5> dimensions = {
      {{"tp", degrees.tensor},
       {"cp", degrees.context},
       {"ep", degrees.expert},
       {"dp", degrees.data},
       {"pp", degrees.pipeline}}};
  std::string completed = order;
  for (const auto& [name, degree] : dimensions) {
    const bool present = ("-" + order + "-").find(fmt::format("-{}-", name)) != std::string::npos;
    if (!present && degree == 1) completed += fmt::format("-{}", name);
  }
  return completed;
}

// Whether both place ranks alike: dimensions of degree 1 do not count.
bool SameOrder(const std::array<parallel::Dimension, 5>& a,
               const std::array<parallel::Dimension, 5>& b,
               const parallel::ParallelConfig& degrees) {
  const auto counted = [&](const std::array<parallel::Dimension, 5>& order) {
    std::vector<parallel::Dimension> kept;
    for (const parallel::Dimension dimension : order) {
      if (DegreeOf(dimension, degrees) > 1) kept.push_back(dimension);
    }
    return kept;
  };
  return counted(a) == counted(b);
}

}  // namespace

Result<std::vector<ScheduleVariant>> RankOrderVariants(const scenario::Scenario& run,
                                                       const std::string& list) {
  std::vector<ScheduleVariant> variants;
  Diagnostics problems;
  for (const std::string& word : Split(list, ',')) {
    const auto order = parallel::ParseOrder(Completed(word, run.parallel));
    if (!order) {
      problems.push_back(
          {{},
           fmt::format("--rank-order: '{}' is not an order of this run's dimensions; "
                       "write tp, cp, ep, dp and pp once each, innermost first, "
                       "joined by '-', without those of degree 1 if you like",
                       word)});
      continue;
    }
    ScheduleVariant variant;
    variant.label = word;
    variant.own = SameOrder(*order, run.parallel.order, run.parallel);
    variant.scenario = run;
    variant.scenario.parallel.order = *order;
    std::vector<scenario::WrittenKey>& written = variant.scenario.written;
    std::erase_if(written, [](const auto& key) { return key.key == "parallel.order"; });
    written.push_back({"parallel.order", word, true});
    variants.push_back(std::move(variant));
  }
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  return variants;
}

}  // namespace quadrille::simulate
