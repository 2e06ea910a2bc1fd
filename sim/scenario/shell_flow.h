// Which parts of a shell script run, as far as that is known without running it: if, case, loops,
// groups, functions, `&&` and `||`.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "sim/scenario/shell_conditions.h"
#include "sim/scenario/shell_words.h"

namespace quadrille::scenario {

// A part of a script that runs or does not, which is not known without running it.
struct ShellPassedOver {
  SourcePosition position;
  std::string what;                 // "the body of 'if'"
  std::set<std::string> flags;      // words of it that begin with two dashes, up to a `=`
  std::set<std::string> variables;  // that it assigns and that are asked for behind it
};

enum class ShellSeparator { kEnd, kPipe, kAnd, kOr };

// Told in the order of the text what opens and closes, it says of every command whether it runs.
class ShellFlow {
 public:
  enum class Construct { kIf, kWhile, kFor, kCase, kGroup };

  // Of the command that is being read.
  [[nodiscard]] bool runs() const { return flow_.runs; }
  // It stands in the condition of an if or a loop.
  [[nodiscard]] bool InCondition() const { return !frames_.empty() && frames_.back().condition; }
  [[nodiscard]] bool InCasePattern() const { return !frames_.empty() && frames_.back().pattern; }
  [[nodiscard]] bool Within(Construct construct) const {
    return !frames_.empty() && frames_.back().construct == construct;
  }

  // A command ended, with this status if it ran.
  void Ran(ShellTruth status) { list_.status = status; }
  void Passed(const ShellFields& words);
  // What stands between two commands; `command`: there was one before it.
  void Separate(ShellSeparator separator, bool command, const SourcePosition& position);

  // `if`, `while`, `until`; their condition comes next.
  void OpenCondition(std::string_view keyword, const SourcePosition& position);
  void Then();
  void Elif();
  void Else();
  // `known`: so are the values.
  void OpenFor(const SourcePosition& position, std::string variable, ShellFields values,
               bool known);
  // Of a loop, whose body starts at this offset of the text.
  void Do(std::size_t body_start);
  // Where to read on: the body's start, or nothing when the loop is over.
  [[nodiscard]] std::optional<std::size_t> Done();
  // The next turn's variable and value, once.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> TakeTurn() {
    return std::exchange(turn_, std::nullopt);
  }
  // The rest of the innermost `for` does not run; with `all`, nor do its other turns.
  void LeaveLoop(bool all);
  void OpenCase(const SourcePosition& position, std::string subject);
  [[nodiscard]] const std::string& CaseSubject() const { return frames_.back().subject; }
  void EnterCaseBranch(ShellTruth matches);
  void EndCaseBranch();
  // `{`, of a function where there is one.
  void OpenGroup(const SourcePosition& position, const std::optional<std::string>& function);
  // The innermost construct, where it is of this kind; true if so.
  bool Close(Construct construct);

  // An assignment that perhaps does not run, one that does, and variables that are asked for.
  void Doubt(const std::string& variable, const ShellFields& value);
  void Settle(const std::string& variable) { doubtful_.erase(variable); }
  void Use(const std::set<std::string>& variables);

  // More turns of loops than this are an error, told once.
  static constexpr int kMostTurns = 1000;
  [[nodiscard]] bool TooManyTurns() const { return turns_ > kMostTurns; }

  // Without those that hold nothing but what follows a test, such as `exit 1`.
  [[nodiscard]] std::vector<ShellPassedOver> TakePassedOver();

 private:
  struct Flow {
    bool runs = true;
    std::optional<std::size_t> undecided;  // index in passed_over_; only where it does not run
  };
  // Commands joined by `&&` and `||`.
  struct List {
    ShellTruth status = true;
    bool pending = false;  // an operator waits for its command
    std::optional<std::size_t> undecided;
  };
  struct Frame {
    Construct construct = Construct::kIf;
    std::string keyword;
    SourcePosition position;
    Flow outer;  // of the construct itself
    Flow outer_body;
    List outer_list;
    bool condition = false;  // its condition is being read
    bool taken = false;      // one of its branches ran
    std::optional<std::size_t> undecided;
    // Of `for`:
    std::string variable;
    ShellFields values;
    std::size_t next = 0;
    std::size_t body_start = 0;
    // Of `case`:
    std::string subject;
    bool pattern = false;  // a pattern comes next
  };

  Frame& Open(Construct construct, std::string_view keyword, const SourcePosition& position);
  Frame* Top(Construct construct);
  void Enter(Flow flow);
  void EnterBranch(Frame& frame, ShellTruth truth);
  void NextTurn(Frame& frame);
  void Leave();
  Flow FlowAfter(ShellTruth truth, std::string_view joint, const SourcePosition& position);
  std::size_t PassOver(const SourcePosition& position, std::string what);
  bool NoteFlags(const ShellFields& fields);

  Flow flow_;
  Flow body_;
  List list_;
  ShellTruth last_status_ = true;  // of the last list that ended
  std::vector<Frame> frames_;
  std::optional<std::pair<std::string, std::string>> turn_;
  int turns_ = 0;
  std::map<std::string, std::size_t> doubtful_;  // variables that a part passed over assigns
  std::vector<ShellPassedOver> passed_over_;
};

}  // namespace quadrille::scenario
