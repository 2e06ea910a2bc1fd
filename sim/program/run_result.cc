#include "sim/program/run_result.h"

#include <algorithm>

namespace quadrille::program {

std::string_view NameOf(RankState state) {
  static constexpr std::array<std::string_view, kRankStates> kNames = {"compute",
                                                                       "optimizer",
                                                                       "exposed tensor parallel",
                                                                       "exposed context parallel",
                                                                       "exposed expert",
                                                                       "exposed pipeline",
                                                                       "exposed data parallel",
                                                                       "skew",
                                                                       "bubble: warm-up",
                                                                       "bubble: steady",
                                                                       "bubble: cool-down",
                                                                       "bubble: barrier",
                                                                       "host launch",
                                                                       "other"};
  return kNames[static_cast<std::size_t>(state)];
}

Duration RunResult::step() const {
  Duration longest{0};
  for (const RankResult& rank : ranks) longest = std::max(longest, rank.end - rank.begin);
  return longest;
}

}  // namespace quadrille::program
