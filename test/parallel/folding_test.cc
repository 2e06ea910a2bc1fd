#include "sim/parallel/folding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "sim/base/counter_rng.h"

namespace quadrille::parallel {
namespace {

using model::Axis;

std::vector<ProcessGroups> Partitions(const RankLayout& layout) {
  std::vector<ProcessGroups> partitions;
  for (Axis axis : {Axis::kTensor, Axis::kContext, Axis::kData, Axis::kExpert, Axis::kExpertTensor,
                    Axis::kExpertData, Axis::kDataReplica, Axis::kPipeline}) {
    partitions.push_back(layout.GroupsOf(axis));
  }
  return partitions;
}

std::vector<std::uint64_t> ByStage(const RankLayout& layout) {
  std::vector<std::uint64_t> colours;
  for (int r = 0; r < layout.world_size(); ++r) {
    colours.push_back(static_cast<std::uint64_t>(layout.CoordinatesOf(RankId(r)).pipeline));
  }
  return colours;
}

ParallelConfig Reference() {
  ParallelConfig config;
  config.tensor = 8;
  config.context = 2;
  config.data = 8;
  config.pipeline = 8;
  return config;
}

// The partition is equitable: ranks of one class have, on every axis, groups with equal multisets
// of classes; and it refines the initial colours.
void ExpectEquitable(const RankClasses& classes, const std::vector<std::uint64_t>& initial,
                     const std::vector<ProcessGroups>& partitions) {
  for (std::size_t r = 0; r < initial.size(); ++r) {
    const auto c = static_cast<std::size_t>(classes.class_of[r]);
    EXPECT_EQ(initial[r], initial[classes.representative[c].index()]);
  }
  for (const ProcessGroups& partition : partitions) {
    std::map<std::int32_t, std::vector<std::int32_t>> of_class;
    for (std::size_t r = 0; r < initial.size(); ++r) {
      std::vector<std::int32_t> members;
      for (RankId m : partition.groups[static_cast<std::size_t>(partition.group_of[r])]) {
        members.push_back(classes.class_of[m.index()]);
      }
      std::sort(members.begin(), members.end());
      const auto [it, inserted] = of_class.emplace(classes.class_of[r], members);
      if (!inserted) {
        EXPECT_EQ(it->second, members) << "rank " << r;
      }
    }
  }
}

void ExpectConsistent(const RankClasses& classes) {
  EXPECT_EQ(std::accumulate(classes.multiplicity.begin(), classes.multiplicity.end(), 0),
            static_cast<int>(classes.class_of.size()));
  EXPECT_TRUE(std::is_sorted(classes.representative.begin(), classes.representative.end()));
  for (std::int32_t c = 0; c < classes.count(); ++c) {
    const auto first = std::find(classes.class_of.begin(), classes.class_of.end(), c);
    EXPECT_EQ(classes.representative[static_cast<std::size_t>(c)].value(),
              first - classes.class_of.begin());
    EXPECT_EQ(std::count(classes.class_of.begin(), classes.class_of.end(), c),
              classes.multiplicity[static_cast<std::size_t>(c)]);
  }
}

TEST(FoldRanks, TheReferenceLayoutHasOneClassPerStage) {
  const RankLayout layout(Reference());
  const RankClasses classes = FoldRanks(ByStage(layout), Partitions(layout));
  EXPECT_EQ(classes.count(), 8);
  for (std::int32_t multiplicity : classes.multiplicity) EXPECT_EQ(multiplicity, 128);
  ExpectConsistent(classes);
}

TEST(FoldRanks, OneColourEverywhereIsOneClass) {
  const RankLayout layout(Reference());
  const std::vector<std::uint64_t> initial(1024, 7);
  EXPECT_EQ(FoldRanks(initial, Partitions(layout)).count(), 1);
}

TEST(FoldRanks, AStragglerSplitsExactlyWhatItTouches) {
  // Four data-parallel replicas of a two-stage pipeline, nothing else. Rank 0 is slow. Its stage
  // falls into the straggler and the three that wait for it; so does the other stage: the peer of
  // the straggler and the peers of the rest.
  ParallelConfig config;
  config.data = 4;
  config.pipeline = 2;
  const RankLayout layout(config);
  std::vector<std::uint64_t> initial = ByStage(layout);
  initial[0] = 99;
  const RankClasses classes = FoldRanks(initial, Partitions(layout));
  EXPECT_EQ(classes.class_of, (std::vector<std::int32_t>{0, 1, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(classes.multiplicity, (std::vector<std::int32_t>{1, 3, 1, 3}));
}

TEST(FoldRanks, AStragglerDoesNotSplitWhatItNeverMeets) {
  // Two tensor-parallel groups that share no other group.
  ProcessGroups tensor;
  tensor.groups = {{RankId(0), RankId(1), RankId(2)}, {RankId(3), RankId(4), RankId(5)}};
  tensor.group_of = {0, 0, 0, 1, 1, 1};
  const std::vector<std::uint64_t> initial = {1, 0, 0, 0, 0, 0};
  const std::vector<ProcessGroups> partitions = {tensor};
  const RankClasses classes = FoldRanks(initial, partitions);
  EXPECT_EQ(classes.class_of, (std::vector<std::int32_t>{0, 1, 1, 2, 2, 2}));
}

TEST(FoldRanks, AStragglerInTheReferenceLayoutGivesSixClassesPerStage) {
  // Relative to the straggler a rank has the same TP position or another one, and sits in its CP
  // pair as the same data position, as its CP peer, or in another pair: 2 x 3 in every stage.
  const RankLayout layout(Reference());
  std::vector<std::uint64_t> initial = ByStage(layout);
  initial[317] = 1000;
  const std::vector<ProcessGroups> partitions = Partitions(layout);
  const RankClasses classes = FoldRanks(initial, partitions);
  ExpectEquitable(classes, initial, partitions);
  EXPECT_EQ(classes.count(), 8 * 6);
  EXPECT_EQ(classes.multiplicity[static_cast<std::size_t>(classes.class_of[317])], 1);
}

TEST(FoldRanks, IsEquitableAndConsistentOnRandomLayouts) {
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const auto pick = [&](std::uint64_t key, int most) {
      return 1 + static_cast<int>(Hash(trial, key) % static_cast<std::uint64_t>(most));
    };
    ParallelConfig config;
    config.tensor = pick(1, 4);
    config.context = pick(2, 2);
    config.data = pick(3, 6);
    config.pipeline = pick(4, 4);
    const int stage = config.tensor * config.context * config.data;
    config.expert = pick(5, 6);
    while (stage % config.expert != 0) --config.expert;
    const RankLayout layout(config);
    std::vector<std::uint64_t> initial = ByStage(layout);
    for (int slow = 0; slow < pick(9, 3); ++slow) {
      initial[Hash(trial, 10, slow) % initial.size()] += 100;
    }
    const std::vector<ProcessGroups> partitions = Partitions(layout);
    const RankClasses classes = FoldRanks(initial, partitions);
    ExpectEquitable(classes, initial, partitions);
    ExpectConsistent(classes);
  }
}

TEST(FoldRanks, ValuesOfColoursDoNotMatterOnlyWhichAreEqual) {
  const RankLayout layout(Reference());
  std::vector<std::uint64_t> initial = ByStage(layout);
  initial[40] = 11;
  std::vector<std::uint64_t> renamed;
  for (std::uint64_t colour : initial) renamed.push_back(Mix(colour + 5));
  EXPECT_EQ(FoldRanks(initial, Partitions(layout)).class_of,
            FoldRanks(renamed, Partitions(layout)).class_of);
}

TEST(DoNotFold, GivesEveryRankItsOwnClass) {
  const RankClasses classes = DoNotFold(5);
  EXPECT_EQ(classes.count(), 5);
  EXPECT_EQ(classes.class_of, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  ExpectConsistent(classes);
}

}  // namespace
}  // namespace quadrille::parallel
