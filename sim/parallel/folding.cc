#include "sim/parallel/folding.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/counter_rng.h"

namespace quadrille::parallel {
namespace {

// Renames colours to 0, 1, ... by first appearance; returns how many there are.
std::int32_t Canonicalise(std::vector<std::uint64_t>& colours) {
  std::map<std::uint64_t, std::uint64_t> names;
  for (std::uint64_t& colour : colours) {
    colour = names.emplace(colour, names.size()).first->second;
  }
  return static_cast<std::int32_t>(names.size());
}

// A hash of the multiset of member colours. Sorting makes it independent of the order of members.
std::uint64_t GroupColour(const std::vector<RankId>& members,
                          const std::vector<std::uint64_t>& colours,
                          std::vector<std::uint64_t>& scratch) {
  scratch.clear();
  for (RankId member : members) scratch.push_back(colours[member.index()]);
  std::sort(scratch.begin(), scratch.end());
  std::uint64_t h = members.size();
  for (std::uint64_t colour : scratch) h = Hash(h, colour);
  return h;
}

}  // namespace

RankClasses FoldRanks(std::span<const std::uint64_t> initial,
                      std::span<const ProcessGroups> partitions) {
  std::vector<std::uint64_t> colours(initial.begin(), initial.end());
  std::int32_t count = Canonicalise(colours);
  std::vector<std::uint64_t> scratch;
  while (true) {
    std::vector<std::uint64_t> refined = colours;
    for (const ProcessGroups& partition : partitions) {
      std::vector<std::uint64_t> group_colours(partition.groups.size());
      for (std::size_t g = 0; g < partition.groups.size(); ++g) {
        group_colours[g] = GroupColour(partition.groups[g], colours, scratch);
      }
      for (std::size_t rank = 0; rank < refined.size(); ++rank) {
        const auto group = static_cast<std::size_t>(partition.group_of[rank]);
        refined[rank] = Hash(refined[rank], group_colours[group]);
      }
    }
    const std::int32_t refined_count = Canonicalise(refined);
    colours = std::move(refined);
    if (refined_count == count) break;
    count = refined_count;
  }
  RankClasses classes;
  classes.class_of.resize(colours.size());
  classes.representative.resize(static_cast<std::size_t>(count), RankId(-1));
  classes.multiplicity.resize(static_cast<std::size_t>(count), 0);
  for (std::size_t rank = 0; rank < colours.size(); ++rank) {
    const auto c = static_cast<std::size_t>(colours[rank]);
    classes.class_of[rank] = static_cast<std::int32_t>(c);
    if (classes.multiplicity[c]++ == 0) {
      classes.representative[c] = RankId(static_cast<std::int32_t>(rank));
    }
  }
  return classes;
}

RankClasses DoNotFold(std::int32_t world_size) {
  RankClasses classes;
  classes.class_of.resize(static_cast<std::size_t>(world_size));
  std::iota(classes.class_of.begin(), classes.class_of.end(), 0);
  classes.multiplicity.assign(static_cast<std::size_t>(world_size), 1);
  for (std::int32_t rank = 0; rank < world_size; ++rank) {
    classes.representative.push_back(RankId(rank));
  }
  return classes;
}

}  // namespace quadrille::parallel
