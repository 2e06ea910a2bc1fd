#include "sim/simulate/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "schedules/registry.h"
#include "sim/simulate/layout_choice.h"

namespace quadrille::simulate {
namespace {

using scenario::Scenario;

// How far the search goes where the call does not say, guesses all three: a rank of a context group
// keeps a sequence worth splitting, and microbatches and chunks stay within what published runs
// use.
constexpr std::int32_t kFewestTokensPerRank = 4096;
constexpr std::int32_t kMostSequences = 4;  // of a microbatch
constexpr std::int32_t kMostVirtualStages = 16;

struct Layout {
  std::int32_t tensor = 1;
  std::int32_t pipeline = 1;
  std::int32_t virtual_stages = 1;
  std::int32_t context = 1;
  std::int32_t expert = 1;
  std::int32_t data = 1;
  std::int32_t micro_batch = 1;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Those of `stated`, else powers of two up to `most`, and `own`; ascending.
std::vector<std::int32_t> Choices(const std::vector<std::int32_t>& stated, std::int32_t most,
                                  std::int32_t own) {
  std::vector<std::int32_t> choices = stated;
  if (choices.empty()) {
    for (std::int32_t value = 1; value <= most; value *= 2) choices.push_back(value);
    choices.push_back(own);
  }
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  return choices;
}

Layout LayoutOf(const Scenario& run) {
  const parallel::ParallelConfig& own = run.parallel;
  return {own.tensor, own.pipeline, own.virtual_stages,       own.context,
          own.expert, own.data,     run.execution.micro_batch};
}

std::int32_t LargestTensor(const Scenario& run) {
  return run.cluster.nvlink.domain_gpus > 0 ? run.cluster.nvlink.domain_gpus
                                            : run.cluster.gpus_per_node;
}

// Every combination that deals the GPUs and the global batch out without a rest.
std::vector<Layout> LayoutsOf(const Scenario& run, const LayoutSpace& space) {
  const Layout own = LayoutOf(run);
  const model::MixtureOfExperts& experts = run.model.experts;
  const std::int64_t world = run.parallel.world_size();
  const std::int32_t layers = run.model.layers + run.model.multi_token_prediction_layers + 2;
  const std::int32_t contexts = run.execution.sequence_length / kFewestTokensPerRank;
  std::vector<Layout> layouts;
  Layout layout;
  const auto each = [](std::int32_t& degree, const std::vector<std::int32_t>& choices,
                       const auto& inner) {
    for (const std::int32_t choice : choices) {
      degree = choice;
      inner();
    }
  };
  const auto add = [&] {
    const std::int64_t sequences = std::int64_t{layout.data} * layout.micro_batch;
    if (run.global_batch % sequences == 0) layouts.push_back(layout);
  };
  const auto deal = [&] {
    const std::int64_t stages = std::int64_t{layout.pipeline} * layout.virtual_stages;
    if (stages > layers || (layout.pipeline == 1 && stages > 1)) return;
    const std::int64_t replica = std::int64_t{layout.tensor} * layout.pipeline;
    if (replica > world || world % (replica * layout.context) != 0) return;
    layout.data = static_cast<std::int32_t>(world / (replica * layout.context));
    const std::int64_t stage = world / layout.pipeline;  // its GPUs hold one copy of all experts
    each(layout.expert, Choices(space.expert, experts.experts, own.expert), [&] {
      if (stage % (std::int64_t{layout.expert} * run.parallel.expert_tensor) != 0) return;
      each(layout.micro_batch, Choices(space.micro_batch, kMostSequences, own.micro_batch), add);
    });
  };
  each(layout.tensor, Choices(space.tensor, LargestTensor(run), own.tensor), [&] {
    each(layout.pipeline, Choices(space.pipeline, layers, own.pipeline), [&] {
      each(layout.virtual_stages,
           Choices(space.virtual_stages, kMostVirtualStages, own.virtual_stages),
           [&] { each(layout.context, Choices(space.context, contexts, own.context), deal); });
    });
  });
  return layouts;
}

// The schedule for a layout: the run's own where it takes the sizes; plain and interleaved 1F1B
// stand in for each other.
std::optional<std::string> ScheduleFor(const Scenario& run, const Layout& layout) {
  schedules::ScheduleRequest request = run.schedule.request;
  request.pipeline = layout.pipeline;
  request.virtual_stages = layout.virtual_stages;
  request.microbatches = run.global_batch / (layout.data * layout.micro_batch);
  request.group = 0;
  const auto takes = [&](const std::string& name) {
    const auto built = schedules::BuildSchedule(name, request);
    return built && built->virtual_stages == layout.virtual_stages;
  };
  const std::string& own = run.schedule.name;
  if (takes(own)) return own;
  const std::string other = layout.virtual_stages == 1 ? "1f1b" : "interleaved";
  if ((own == "1f1b" || own == "interleaved") && takes(other)) return other;
  return std::nullopt;
}

std::string LayoutOverride(const program::LayoutOptions& options) {
  if (!options.pipeline_layout.empty()) {
    return fmt::format("layout={{pipeline_layout: \"{}\"}}", options.pipeline_layout);
  }
  return fmt::format("layout={{embedding_counts_as_layer: {}, loss_counts_as_layer: {}}}",
                     options.embedding_counts_as_layer, options.loss_counts_as_layer);
}

std::vector<std::string> OverridesFor(const Scenario& run, const Layout& layout,
                                      const std::string& schedule) {
  std::vector<std::string> overrides = {
      fmt::format("parallel.tensor={}", layout.tensor),
      fmt::format("parallel.pipeline={}", layout.pipeline),
      fmt::format("parallel.virtual_stages={}", layout.virtual_stages),
      fmt::format("parallel.context={}", layout.context),
      fmt::format("parallel.data={}", layout.data),
      fmt::format("training.micro_batch={}", layout.micro_batch),
      "training.microbatches=",
      fmt::format("training.global_batch={}", run.global_batch),
      fmt::format("schedule.name={}", schedule),
      "schedule.microbatch_group=",
  };
  if (run.model.experts.enabled()) {
    overrides.push_back(fmt::format("parallel.expert={}", layout.expert));
  }
  if (layout.tensor == 1) {
    overrides.emplace_back("parallel.sequence=false");
    overrides.emplace_back("overlap.tensor_parallel=");
  } else if (run.parallel.tensor == 1) {
    overrides.emplace_back("parallel.sequence=true");
  }
  return overrides;
}

// The trial of a layout; none where no schedule takes it or too few layers fill it.
std::optional<Trial> TrialOf(const Scenario& run, const Layout& layout) {
  Trial trial;
  trial.own = layout == LayoutOf(run);
  for (const std::int32_t value :
       {layout.tensor, layout.pipeline, layout.virtual_stages, layout.context}) {
    trial.values.push_back(fmt::format("{}", value));
  }
  if (run.model.experts.enabled()) trial.values.push_back(fmt::format("{}", layout.expert));
  trial.values.push_back(fmt::format("{}", layout.data));
  trial.values.push_back(fmt::format("{}", layout.micro_batch));
  if (trial.own) return trial;
  const std::optional<std::string> schedule = ScheduleFor(run, layout);
  if (!schedule) return std::nullopt;
  const schedules::ScheduleEntry* entry = schedules::FindSchedule(*schedule);
  const bool two_copies = entry->placement == schedules::Placement::kBidirectional;
  const Result<LayoutChoice> choice =
      ChooseLayout(run, layout.pipeline, two_copies ? 1 : layout.virtual_stages);
  if (!choice) return std::nullopt;
  trial.overrides = OverridesFor(run, layout, *schedule);
  if (*schedule != run.schedule.name) trial.remark = *schedule;
  if (!choice->difference.empty()) {
    trial.overrides.push_back(LayoutOverride(choice->options));
    trial.remark += trial.remark.empty() ? "layers dealt anew" : ", layers dealt anew";
  }
  return trial;
}

}  // namespace

LayoutColumns ColumnsOf(const Scenario& run) {
  LayoutColumns columns = {
      {"parallel.tensor", "parallel.pipeline", "parallel.virtual_stages", "parallel.context"},
      {"TP", "PP", "v", "CP"}};
  if (run.model.experts.enabled()) {
    columns.keys.emplace_back("parallel.expert");
    columns.titles.emplace_back("EP");
  }
  for (const char* key : {"parallel.data", "training.micro_batch"}) columns.keys.emplace_back(key);
  for (const char* title : {"DP", "micro batch"}) columns.titles.emplace_back(title);
  return columns;
}

Result<std::vector<Trial>> LayoutTrials(const Scenario& run, const LayoutSpace& space) {
  if (run.schedule.order) {
    return Error("the run's schedule is an order file, which is for one number of stages only");
  }
  if (!run.model.experts.enabled() && !space.expert.empty()) {
    return Error("--expert: the model has no experts");
  }
  std::vector<Trial> trials;
  for (const Layout& layout : LayoutsOf(run, space)) {
    if (std::optional<Trial> trial = TrialOf(run, layout)) trials.push_back(std::move(*trial));
  }
  return trials;
}

}  // namespace quadrille::simulate
