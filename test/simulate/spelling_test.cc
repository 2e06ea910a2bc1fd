// Reports spell the values of a scenario as its files do, though neither module knows the other.
#include <gtest/gtest.h>

#include "sim/report/choice_text.h"
#include "sim/scenario/names.h"

namespace quadrille {
namespace {

// Of a value with several names, reports take the first.
template <typename E, std::size_t n>
void ExpectEqualNames(const scenario::Named<E> (&table)[n]) {
  for (const scenario::Named<E>& row : table) {
    EXPECT_EQ(report::NameOf(row.value), scenario::NameOf(row.value, table)) << row.name;
  }
}

TEST(Spelling, OfReportsIsThatOfScenarios) {
  ExpectEqualNames(scenario::kRecipes);
  ExpectEqualNames(scenario::kDataTypes);
  ExpectEqualNames(scenario::kRecomputations);
  ExpectEqualNames(scenario::kAttentionBackends);
  ExpectEqualNames(scenario::kContextAlgorithms);
  ExpectEqualNames(scenario::kShardings);
  ExpectEqualNames(scenario::kComputeFidelities);
  ExpectEqualNames(scenario::kNetworkFidelities);
  ExpectEqualNames(scenario::kExpertRoutings);
  ExpectEqualNames(scenario::kExpertDispatches);
  ExpectEqualNames(scenario::kPointToPoint);
}

}  // namespace
}  // namespace quadrille
