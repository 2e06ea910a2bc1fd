// Idea. Between two interruptions a run repeats one cycle, K steps and a checkpoint, so that
// stretch is one division; only interruptions are events. A failure throws away the steps since the
// last checkpoint; detection, perhaps a wait for a node, and a restart follow, and a failure during
// those begins them anew. A planned interruption waits for the end of a step, takes a checkpoint
// and loses nothing else.
//
// Invariants: (1) states sum to the wall-clock time; (2) steps never count twice: those of kLost
// are not in `steps`; (3) the times of interruptions are a function of the seed alone.
#include "sim/reliability/run_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/counter_rng.h"
#include "sim/reliability/exponential.h"

namespace quadrille::reliability {
namespace {

constexpr std::uint64_t kFailures = 1;
constexpr std::uint64_t kComponents = 2;
constexpr std::uint64_t kPlans = 3;
constexpr double kNever = 4e18;

// The next of a Poisson process after `last`.
WallTime NextAfter(WallTime last, double rate, std::uint64_t hash) {
  if (rate <= 0.0) return WallTime(static_cast<std::int64_t>(kNever));
  const double gap = Exponential(hash) / rate;
  const double at = static_cast<double>(last.count()) + gap;
  return WallTime(static_cast<std::int64_t>(std::min(at, kNever)));
}

class Run {
 public:
  Run(const ReliabilitySpec& spec, const JobFacts& job, const RunPlan& plan, std::uint64_t seed)
      : spec_(spec),
        job_(job),
        plan_(plan),
        seed_(seed),
        rates_(FailureRates(spec.failures, job)),
        rate_(std::accumulate(rates_.begin(), rates_.end(), 0.0)),
        spares_(spec.spares) {
    outcome_.failures.resize(rates_.size(), 0);
    planned_rate_ = spec.failures.planned / static_cast<double>(spec.failures.duration.count());
    failure_ = NextAfter(now_, rate_, Hash(seed_, kFailures, 0));
    planned_ = NextAfter(now_, planned_rate_, Hash(seed_, kPlans, 0));
  }

  RunOutcome Simulate() {
    while (now_ < plan_.horizon && !Done()) {
      Train(std::min({failure_, planned_, plan_.horizon}));
      if (Done() || now_ >= plan_.horizon) break;
      if (failure_ <= planned_) {
        Lose();
        Recover();
      } else {
        Pause();
      }
    }
    outcome_.wall = now_;
    outcome_.steps = done_;
    outcome_.finished = Done();
    WallTime sum{0};
    for (WallTime state : outcome_.states) sum += state;
    QUADRILLE_CHECK(sum == outcome_.wall, "states sum to {} us of {}", sum.count(),
                    outcome_.wall.count());
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool Done() const { return plan_.steps > 0 && done_ >= plan_.steps; }
  WallTime& In(RunState state) { return outcome_.states[static_cast<std::size_t>(state)]; }

  // Moves on to `until` at the latest, all of it in `state`.
  void Spend(RunState state, WallTime until) {
    until = std::min(until, plan_.horizon);
    if (until <= now_) return;
    In(state) += until - now_;
    now_ = until;
  }

  // Steps and checkpoints until `stop` or the last step.
  void Train(WallTime stop) {
    while (now_ < stop && !Done()) {
      const std::int64_t cycle = plan_.steps_between_checkpoints;
      if (done_ == saved_ && partial_.count() == 0) TrainWholeCycles(stop);
      if (now_ >= stop || Done()) return;
      std::int64_t steps = cycle - (done_ - saved_);
      if (plan_.steps > 0) steps = std::min(steps, plan_.steps - done_);
      const WallTime needed = steps * job_.step - partial_;
      const WallTime from = now_;
      Spend(RunState::kTraining, std::min(stop, now_ + needed));
      const WallTime worked = partial_ + (now_ - from);
      const std::int64_t completed = std::min(steps, worked / job_.step);
      done_ += completed;
      partial_ = worked - completed * job_.step;
      if (Done() || done_ - saved_ < cycle || now_ >= stop) return;
      const WallTime end = now_ + job_.checkpoint_cost;
      Spend(RunState::kCheckpoint, std::min(stop, end));
      if (now_ < end) return;  // a checkpoint that is not whole saves nothing
      saved_ = done_;
    }
  }

  // As many whole cycles as fit, at once.
  void TrainWholeCycles(WallTime stop) {
    const std::int64_t cycle = plan_.steps_between_checkpoints;
    const WallTime length = cycle * job_.step + job_.checkpoint_cost;
    std::int64_t cycles = (stop - now_) / length;
    if (plan_.steps > 0) cycles = std::min(cycles, (plan_.steps - done_ - 1) / cycle);
    if (cycles <= 0) return;
    In(RunState::kTraining) += cycles * cycle * job_.step;
    In(RunState::kCheckpoint) += cycles * job_.checkpoint_cost;
    now_ += cycles * length;
    done_ += cycles * cycle;
    saved_ = done_;
  }

  // A failure: back to the last checkpoint.
  void Lose() {
    const WallTime lost = (done_ - saved_) * job_.step + partial_;
    In(RunState::kTraining) -= lost;
    In(RunState::kLost) += lost;
    done_ = saved_;
    partial_ = WallTime(0);
  }

  // Takes note of the failure that happens now; returns whether it takes a node away.
  bool Fail() {
    double at = Uniform(Hash(seed_, kComponents, count_)) * rate_;
    std::size_t component = 0;
    while (component + 1 < rates_.size() && at >= rates_[component]) at -= rates_[component++];
    ++outcome_.failures[component];
    ++count_;
    failure_ = NextAfter(failure_, rate_, Hash(seed_, kFailures, count_));
    return spec_.failures.components[component].replaces_node;
  }

  // From a failure to the next step, over further failures on the way.
  void Recover() {
    std::int64_t nodes_missing = 0;
    for (bool first = true; now_ < plan_.horizon; first = false) {
      if (!first) ++outcome_.during_recovery;
      if (Fail()) {
        ++nodes_missing;
        repairs_.push_back(now_ + spec_.repair);
      }
      if (!SpendUnlessFailing(RunState::kDetection, now_ + spec_.detection)) continue;
      bool failed = false;
      while (nodes_missing > 0 && !failed) {
        CollectRepaired();
        if (spares_ > 0) {
          --spares_;
          --nodes_missing;
        } else {
          failed = !SpendUnlessFailing(RunState::kNoSpare, repairs_.front());
        }
      }
      if (failed) continue;
      if (SpendUnlessFailing(RunState::kRestart, now_ + spec_.restart)) return;
    }
  }

  // Spends until `until`; false when a failure comes before.
  bool SpendUnlessFailing(RunState state, WallTime until) {
    Spend(state, std::min(until, failure_));
    return now_ >= until && failure_ >= until;
  }

  // Nodes fail one after the other and are repaired in the same time, so the first is ready first.
  void CollectRepaired() {
    while (!repairs_.empty() && repairs_.front() <= now_) {
      repairs_.erase(repairs_.begin());
      ++spares_;
    }
  }

  // A planned interruption, at the end of the step under way.
  void Pause() {
    ++outcome_.planned;
    planned_ = NextAfter(planned_, planned_rate_, Hash(seed_, kPlans, outcome_.planned));
    if (partial_.count() > 0) {
      const WallTime from = now_;
      Spend(RunState::kTraining, std::min(failure_, now_ + (job_.step - partial_)));
      partial_ += now_ - from;
      if (partial_ < job_.step) return;  // the failure comes first, and the pause is forgone
      partial_ = WallTime(0);
      ++done_;
    }
    if (!SpendUnlessFailing(RunState::kCheckpoint, now_ + job_.checkpoint_cost)) return;
    saved_ = done_;
    (void)SpendUnlessFailing(RunState::kPlanned, now_ + spec_.planned);
  }

  const ReliabilitySpec& spec_;
  const JobFacts& job_;
  const RunPlan& plan_;
  std::uint64_t seed_;
  std::vector<double> rates_;  // by component, per microsecond
  double rate_;
  double planned_rate_ = 0.0;
  std::int64_t spares_;
  std::vector<WallTime> repairs_;  // when nodes come back, ascending
  WallTime now_{0};
  WallTime failure_{0};  // the next one
  WallTime planned_{0};
  std::uint64_t count_ = 0;  // failures so far
  std::int64_t done_ = 0;    // steps
  std::int64_t saved_ = 0;   // of them, in the last checkpoint
  WallTime partial_{0};      // of the step under way
  RunOutcome outcome_;
};

}  // namespace

std::string_view NameOf(RunState state) {
  static constexpr std::array<std::string_view, kRunStates> kNames = {
      "training", "lost work", "checkpoint", "detection", "no spare", "restart", "planned"};
  return kNames[static_cast<std::size_t>(state)];
}

std::int64_t RunOutcome::unplanned() const {
  return std::accumulate(failures.begin(), failures.end(), std::int64_t{0});
}

double RunOutcome::goodput() const {
  if (wall.count() == 0) return 0.0;
  return static_cast<double>(states[static_cast<std::size_t>(RunState::kTraining)].count()) /
         static_cast<double>(wall.count());
}

std::vector<double> FailureRates(const FailureTable& table, const JobFacts& job) {
  std::vector<double> rates;
  const auto duration = static_cast<double>(table.duration.count());
  const double gpus = static_cast<double>(job.gpus) / table.gpus;
  for (const FailureComponent& component : table.components) {
    const double rate = component.count / duration;
    switch (component.per) {
      case FailureScope::kGpu: rates.push_back(rate * gpus); break;
      case FailureScope::kNode:
        rates.push_back(rate * gpus * table.gpus_per_node / job.gpus_per_node);
        break;
      case FailureScope::kRun: rates.push_back(rate); break;
    }
  }
  return rates;
}

RunOutcome SimulateRun(const ReliabilitySpec& spec, const JobFacts& job, const RunPlan& plan,
                       std::uint64_t seed) {
  QUADRILLE_CHECK(
      job.step.count() > 0 && plan.horizon.count() > 0 && plan.steps_between_checkpoints > 0,
      "a run of steps of {} us over {} us with {} steps between checkpoints", job.step.count(),
      plan.horizon.count(), plan.steps_between_checkpoints);
  return Run(spec, job, plan, seed).Simulate();
}

}  // namespace quadrille::reliability
