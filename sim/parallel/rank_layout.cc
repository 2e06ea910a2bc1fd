#include "sim/parallel/rank_layout.h"

#include <algorithm>
#include <functional>

#include "sim/base/check.h"

namespace quadrille::parallel {
namespace {

// Collects ranks into groups by a key; keys must be dense from 0 to `groups` - 1. Members come in
// ascending rank order.
ProcessGroups GroupBy(model::Axis axis, std::int32_t world_size, std::int32_t groups,
                      const std::function<std::int32_t(RankId)>& key) {
  ProcessGroups result;
  result.axis = axis;
  result.groups.resize(static_cast<std::size_t>(groups));
  result.group_of.resize(static_cast<std::size_t>(world_size));
  for (std::int32_t rank = 0; rank < world_size; ++rank) {
    const std::int32_t group = key(RankId(rank));
    QUADRILLE_CHECK(group >= 0 && group < groups, "group {} of {}", group, groups);
    result.groups[static_cast<std::size_t>(group)].push_back(RankId(rank));
    result.group_of[static_cast<std::size_t>(rank)] = group;
  }
  return result;
}

}  // namespace

RankLayout::RankLayout(const ParallelConfig& config)
    : config_(config),
      world_size_(static_cast<std::int32_t>(config.world_size())),
      expert_data_(world_size_ / (config.pipeline * config.expert * config.expert_tensor)) {
  std::int32_t stride = 1;
  for (Dimension dimension : config.order) {
    switch (dimension) {
      case Dimension::kTensor:
        tensor_stride_ = stride;
        stride *= config.tensor;
        break;
      case Dimension::kContext:
        context_stride_ = stride;
        stride *= config.context;
        break;
      case Dimension::kData:
        data_stride_ = stride;
        stride *= config.data;
        break;
      case Dimension::kPipeline:
        pipeline_stride_ = stride;
        stride *= config.pipeline;
        break;
      case Dimension::kExpert: break;  // shares the ranks of the others
    }
  }
}

std::int32_t RankLayout::PositionInStage(RankId rank) const {
  const std::int32_t below = rank.value() % pipeline_stride_;
  const std::int32_t above = rank.value() / (pipeline_stride_ * config_.pipeline);
  return below + above * pipeline_stride_;
}

RankLayout::ExpertCoordinates RankLayout::ExpertCoordinatesOf(RankId rank) const {
  ExpertCoordinates at;
  std::int32_t rest = PositionInStage(rank);
  const auto digit = [&](std::int32_t radix) {
    const std::int32_t value = rest % radix;
    rest /= radix;
    return value;
  };
  for (Dimension dimension : config_.order) {
    switch (dimension) {
      case Dimension::kTensor: at.tensor = digit(config_.expert_tensor); break;
      case Dimension::kExpert: at.expert = digit(config_.expert); break;
      case Dimension::kData: at.data = digit(expert_data_); break;
      case Dimension::kContext:
      case Dimension::kPipeline: break;  // no context in the expert grid; the stage is given
    }
  }
  return at;
}

std::int32_t RankLayout::ShardPosition(const Coordinates& at) const {
  return data_stride_ < context_stride_ ? at.data + config_.data * at.context
                                        : at.context + config_.context * at.data;
}

Coordinates RankLayout::CoordinatesOf(RankId rank) const {
  const std::int32_t r = rank.value();
  return {.tensor = r / tensor_stride_ % config_.tensor,
          .context = r / context_stride_ % config_.context,
          .data = r / data_stride_ % config_.data,
          .pipeline = r / pipeline_stride_ % config_.pipeline};
}

RankId RankLayout::RankOf(const Coordinates& at) const {
  return RankId(at.tensor * tensor_stride_ + at.context * context_stride_ + at.data * data_stride_ +
                at.pipeline * pipeline_stride_);
}

RankId RankLayout::AtPipeline(RankId rank, std::int32_t pipeline) const {
  Coordinates at = CoordinatesOf(rank);
  at.pipeline = pipeline;
  return RankOf(at);
}

ProcessGroups RankLayout::GroupsOf(model::Axis axis) const {
  const std::int32_t tp = config_.tensor;
  const std::int32_t cp = config_.context;
  const std::int32_t dp = config_.data;
  const std::int32_t pp = config_.pipeline;
  const std::int32_t shards = dp * cp;
  const std::int32_t shard_group = config_.shard_group > 0 ? config_.shard_group : shards;
  const std::int32_t etp = config_.expert_tensor;
  const std::int32_t ep = config_.expert;
  const std::int32_t edp = expert_data_;
  const std::int32_t stage_size = tp * cp * dp;
  const auto by = [&](std::int32_t groups, auto key) {
    return GroupBy(axis, world_size_, groups, [&](RankId r) { return key(CoordinatesOf(r)); });
  };
  const auto by_expert = [&](std::int32_t groups_per_stage, auto key) {
    return GroupBy(axis, world_size_, groups_per_stage * pp, [&](RankId r) {
      return key(ExpertCoordinatesOf(r)) + groups_per_stage * CoordinatesOf(r).pipeline;
    });
  };
  const auto by_position = [&](std::int32_t groups, auto key) {
    return GroupBy(axis, world_size_, groups,
                   [&](RankId r) { return PositionInStage(r) + key(CoordinatesOf(r)); });
  };
  switch (axis) {
    case model::Axis::kTensor:
      return by(cp * dp * pp,
                [&](const Coordinates& c) { return c.context + cp * (c.data + dp * c.pipeline); });
    case model::Axis::kContext:
      return by(tp * dp * pp,
                [&](const Coordinates& c) { return c.tensor + tp * (c.data + dp * c.pipeline); });
    case model::Axis::kPipeline:
    case model::Axis::kEmbedding:
      return by_position(stage_size, [](const Coordinates&) { return 0; });
    case model::Axis::kData:
      return by(tp * pp * (shards / shard_group), [&](const Coordinates& c) {
        const std::int32_t shard = ShardPosition(c) / shard_group;
        return c.tensor + tp * (shard + shards / shard_group * c.pipeline);
      });
    case model::Axis::kDataReplica:
      return by(tp * pp * shard_group, [&](const Coordinates& c) {
        const std::int32_t position = ShardPosition(c) % shard_group;
        return c.tensor + tp * (position + shard_group * c.pipeline);
      });
    case model::Axis::kExpertTensor:
      return by_expert(ep * edp,
                       [&](const ExpertCoordinates& e) { return e.expert + ep * e.data; });
    case model::Axis::kExpert:
      return by_expert(etp * edp,
                       [&](const ExpertCoordinates& e) { return e.tensor + etp * e.data; });
    case model::Axis::kExpertData:
      return by_expert(etp * ep,
                       [&](const ExpertCoordinates& e) { return e.tensor + etp * e.expert; });
    case model::Axis::kBidirectional:
      // Pipeline rank r and P - 1 - r hold the two copies of each other's stage.
      return by_position(stage_size * ((pp + 1) / 2), [&](const Coordinates& c) {
        return stage_size * std::min(c.pipeline, pp - 1 - c.pipeline);
      });
    case model::Axis::kModel: return by(1, [](const Coordinates&) { return 0; });
  }
  QUADRILLE_CHECK(false, "axis {}", static_cast<int>(axis));
  return {};
}

}  // namespace quadrille::parallel
