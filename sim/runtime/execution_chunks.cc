// Fidelity `chunk`: what a group's transfers are as chunks that queue at ports.
//
// A ring of one domain is one channel; over several domains there is a channel for each member of a
// domain, which starts there, so that all NICs of the domain carry alike and every channel enters a
// domain on the rail on which it left the one before. What a port carries per byte is scaled to
// what the cost law says, so that algorithms which are no rings (in-switch reduction, trees) load
// ports as they do under the other fidelities.
#include <algorithm>
#include <map>

#include "sim/base/check.h"
#include "sim/runtime/execution.h"

namespace quadrille::runtime {
namespace {

using model::CollectiveKind;
using network::ChunkRoute;
using program::LaneKind;

// Ways between two GPUs that chunks alternate over. A guess: enough to spread a pair over the
// spines, few enough that each way still gets several of an edge's chunks (kChunksPerEdge).
constexpr std::int32_t kWays = 8;

}  // namespace

// Members of a group by domain, in the order in which ranks first name them.
std::vector<std::vector<std::uint32_t>> Executor::DomainsOf(std::uint32_t g) const {
  const program::Group& group = program_.groups[g];
  const auto size =
      std::max(1, program_.placements[static_cast<std::size_t>(group.placement)].ranks_per_node);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t m = 0; m < group.member_count; ++m) {
    ranks.push_back(program_.members[group.member_begin + m].rank);
  }
  std::sort(ranks.begin(), ranks.end());
  std::map<std::int32_t, std::size_t> place;
  std::vector<std::vector<std::uint32_t>> domains;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int32_t domain = machine_.chunk.domain_of
                                    ? machine_.chunk.domain_of(program_.ranks[ranks[i]].rank)
                                    : static_cast<std::int32_t>(i) / size;
    const auto [found, added] = place.emplace(domain, domains.size());
    if (added) domains.emplace_back();
    domains[found->second].push_back(ranks[i]);
  }
  return domains;
}

// The ports from one rank to another, on all ways. `nvlink` and `nic` scale what they carry.
std::vector<ChunkRoute> Executor::ChunkRoutes(std::uint32_t from, std::uint32_t to, bool near,
                                              double nvlink, double nic) const {
  std::vector<ChunkRoute> routes;
  if (near) {
    routes.push_back({{4 * from, nvlink}, {4 * to + 1, nvlink}});
    return routes;
  }
  const auto links = static_cast<network::PortIndex>(4 * ranks_.size());
  for (std::int32_t way = 0; way < (machine_.chunk.route ? kWays : 1); ++way) {
    ChunkRoute route = {{4 * from + 2, nic}};
    if (machine_.chunk.route) {
      for (std::uint32_t link :
           machine_.chunk.route(program_.ranks[from].rank, program_.ranks[to].rank, way)) {
        route.push_back({links + link, 1.0});
      }
    }
    route.push_back({4 * to + 3, nic});
    routes.push_back(std::move(route));
  }
  return routes;
}

Executor::ChunkPlan Executor::PlanChunks(std::uint32_t g, CollectiveKind kind) const {
  const program::Group& group = program_.groups[g];
  const network::TransferCost& cost = *groups_[g].cost;
  ChunkPlan plan;
  plan.kind = kind;
  plan.nvlink_load = cost.nvlink_load;
  plan.nic_load = cost.nic_load;
  const std::vector<std::vector<std::uint32_t>> domains = DomainsOf(g);
  const bool near = domains.size() == 1;
  const LaneKind lane = ranks_[program_.members[group.member_begin].rank]
                            .program->lanes[program_.members[group.member_begin].lane]
                            .kind;
  if (lane >= LaneKind::kSendForward) {
    std::uint32_t ends[2] = {0, 0};
    for (std::uint32_t m = 0; m < group.member_count; ++m) {
      const program::GroupMember& member = program_.members[group.member_begin + m];
      const LaneKind side = ranks_[member.rank].program->lanes[member.lane].kind;
      ends[program::IsReceive(side) ? 1 : 0] = member.rank;
    }
    plan.edges.push_back(
        {1.0, -1, ChunkRoutes(ends[0], ends[1], near, cost.nvlink_load, cost.nic_load)});
    return plan;
  }
  const auto n = static_cast<std::int32_t>(group.member_count);
  if (kind == CollectiveKind::kAllToAll) {
    std::vector<std::pair<std::uint32_t, std::size_t>> members;
    std::size_t largest = 1;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      for (std::uint32_t rank : domains[d]) members.emplace_back(rank, d);
      largest = std::max(largest, domains[d].size());
    }
    const double outside = static_cast<double>(members.size() - largest);
    const double nic = outside > 0.0 ? cost.nic_load * (n - 1) / outside : 0.0;
    for (const auto& [from, a] : members) {
      for (const auto& [to, b] : members) {
        if (from == to) continue;
        plan.edges.push_back({1.0 / (n - 1), -1, ChunkRoutes(from, to, a == b, 1.0, nic)});
      }
    }
    return plan;
  }
  if (kind == CollectiveKind::kAllReduce) {
    plan.steps = 2 * (n - 1);
  } else if (kind != CollectiveKind::kSendReceive) {
    plan.steps = n - 1;
  }
  std::size_t channels = domains.front().size();
  for (const auto& domain : domains) channels = std::min(channels, domain.size());
  if (near) channels = 1;
  for (std::size_t c = 0; c < channels; ++c) AppendRing(domains, c, channels, cost, plan);
  return plan;
}

void Executor::AppendRing(const std::vector<std::vector<std::uint32_t>>& domains,
                          std::size_t channel, std::size_t channels,
                          const network::TransferCost& cost, ChunkPlan& plan) const {
  std::vector<std::pair<std::uint32_t, std::size_t>> ring;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const std::vector<std::uint32_t>& local = domains[d];
    const std::size_t start = (channel + d * (local.size() - 1)) % local.size();
    for (std::size_t i = 0; i < local.size(); ++i) {
      ring.emplace_back(local[(start + i) % local.size()], d);
    }
  }
  const auto first = static_cast<std::int32_t>(plan.edges.size());
  const auto n = static_cast<std::int32_t>(ring.size());
  const double share = 1.0 / static_cast<double>(channels);
  const double nic = cost.nic_load * static_cast<double>(channels);
  for (std::int32_t i = 0; i < n; ++i) {
    const auto& [from, a] = ring[static_cast<std::size_t>(i)];
    const auto& [to, b] = ring[static_cast<std::size_t>((i + 1) % n)];
    plan.edges.push_back({share, plan.steps > 1 ? first + (i + n - 1) % n : -1,
                          ChunkRoutes(from, to, a == b, cost.nvlink_load, nic)});
  }
}

// The shape of a group's transfer under way, from where its price stands.
std::size_t Executor::ShapeOf(std::uint32_t g) const {
  const GroupRun& group = groups_[g];
  const network::TransferCost* price = group.nominal ? group.cost : hardships_[g].nominal_cost;
  return static_cast<std::size_t>(price - group.prices) / program_.placements.size();
}

void Executor::BeginChunks(std::uint32_t g) {
  const network::TransferCost& cost = *groups_[g].cost;
  const CollectiveKind kind = program_.shapes[ShapeOf(g)].collective.kind;
  ChunkPlan& plan = chunk_plans_[g];
  // Lanes carry several kinds of collective, and those of one kind load ports by their size; most
  // transfers are like the one before.
  if (plan.edges.empty() || plan.kind != kind || plan.nvlink_load != cost.nvlink_load ||
      plan.nic_load != cost.nic_load) {
    plan = PlanChunks(g, kind);
  }
  chunks_.Start(g, plan.edges, plan.steps, cost.work, cost.cap, now_);
  AwaitChunks();
}

// One event is pending for the next thing that happens to a chunk; earlier ones supersede it.
void Executor::AwaitChunks() {
  const std::optional<TimePoint> next = chunks_.Next();
  if (!next || (chunk_event_ && *chunk_event_ <= *next)) return;
  chunk_event_ = next;
  Push(engine::Phase::kSample, 0, *next, 0);
}

void Executor::AdvanceChunks() {
  if (!chunk_event_ || *chunk_event_ != now_) return;
  chunk_event_.reset();
  finished_chunks_.clear();
  chunks_.Advance(now_, finished_chunks_);
  std::sort(finished_chunks_.begin(), finished_chunks_.end());
  for (network::FlowIndex flow : finished_chunks_) FinishTransfer(flow);
  AwaitChunks();
}

}  // namespace quadrille::runtime
