#include "sim/base/fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace quadrille {
namespace {

struct Completion {
  std::int64_t picoseconds;
  std::uint64_t entity;
  std::uint64_t position;
};

std::uint64_t Digest(const std::vector<Completion>& completions) {
  Fingerprint fingerprint;
  for (const Completion& c : completions) {
    fingerprint.Add(TimePoint(Duration(c.picoseconds)), c.entity, c.position);
  }
  return fingerprint.value();
}

std::vector<Completion> SomeRun() {
  std::vector<Completion> run;
  for (std::uint64_t entity = 0; entity < 16; ++entity) {
    for (std::uint64_t position = 0; position < 32; ++position) {
      run.push_back({static_cast<std::int64_t>(1000 * position + entity % 4), entity, position});
    }
  }
  return run;
}

TEST(Fingerprint, DoesNotDependOnTheOrderOfCompletions) {
  std::vector<Completion> run = SomeRun();
  const std::uint64_t digest = Digest(run);
  std::mt19937_64 shuffle(1);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(run.begin(), run.end(), shuffle);
    EXPECT_EQ(Digest(run), digest);
  }
}

TEST(Fingerprint, ChangesWithAnyTimeEntityOrPosition) {
  const std::vector<Completion> run = SomeRun();
  std::set<std::uint64_t> digests = {Digest(run)};
  for (std::size_t i = 0; i < run.size(); ++i) {
    std::vector<Completion> changed = run;
    changed[i].picoseconds += 1;
    digests.insert(Digest(changed));
    changed = run;
    changed[i].entity += 100;
    digests.insert(Digest(changed));
    changed = run;
    changed[i].position += 100;
    digests.insert(Digest(changed));
  }
  EXPECT_EQ(digests.size(), 1 + 3 * run.size());
}

// Two operations that swap their times are told from the original although the times are the same.
TEST(Fingerprint, SeesSwappedTimes) {
  EXPECT_NE(Digest({{10, 0, 0}, {20, 1, 0}}), Digest({{20, 0, 0}, {10, 1, 0}}));
  EXPECT_NE(Digest({{10, 0, 1}, {10, 1, 0}}), Digest({{10, 0, 0}, {10, 1, 1}}));
}

TEST(Fingerprint, CountsRepeatedCompletions) {
  EXPECT_NE(Digest({{10, 0, 0}, {10, 0, 0}}), Digest({{10, 0, 0}}));
  EXPECT_NE(Digest({{10, 0, 0}, {10, 0, 0}}), Digest({}));
}

TEST(Fingerprint, PartsJoinToTheWhole) {
  Fingerprint odd;
  Fingerprint even;
  for (const Completion& c : SomeRun()) {
    (c.position % 2 == 0 ? even : odd)
        .Add(TimePoint(Duration(c.picoseconds)), c.entity, c.position);
  }
  odd.Join(even);
  EXPECT_EQ(odd.value(), Digest(SomeRun()));
}

// Reports of the past carry fingerprints, so the function is pinned.
TEST(Fingerprint, IsTheSameOnEveryMachine) {
  EXPECT_EQ(Digest({}), 0u);
  EXPECT_EQ(Digest(SomeRun()), 1872864663949479199u);
}

}  // namespace
}  // namespace quadrille
