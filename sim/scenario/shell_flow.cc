// 1. `flow_` says what becomes of the command that is being read: it runs, it does not, or that is
//    not known and it is noted in passed_over_.
// 2. `body_` is the flow of the innermost branch or body. `flow_` differs from it behind `&&` and
//    `||` alone.
// 3. An open construct is a frame that keeps the flow outside it. What runs within a frame is never
//    more than what runs outside.
// 4. Once a condition of an `if` or a pattern of a `case` is not known, none of its branches from
//    there on runs.
#include "sim/scenario/shell_flow.h"

#include <fmt/format.h>

#include <algorithm>

namespace quadrille::scenario {

void ShellFlow::Passed(const ShellFields& words) {
  if (!flow_.undecided) return;
  NoteFlags(words);
  list_.status = std::nullopt;
}

void ShellFlow::Separate(ShellSeparator separator, bool command, const SourcePosition& position) {
  if (command) list_.pending = false;
  switch (separator) {
    case ShellSeparator::kAnd: flow_ = FlowAfter(list_.status, "&&", position); break;
    case ShellSeparator::kOr: flow_ = FlowAfter(ShellNot(list_.status), "||", position); break;
    case ShellSeparator::kPipe: break;
    case ShellSeparator::kEnd:
      if (list_.pending) return;  // a line break behind an operator
      if (command) last_status_ = list_.status;
      list_ = {};
      flow_ = body_;
      return;
  }
  list_.pending = true;
}

ShellFlow::Flow ShellFlow::FlowAfter(ShellTruth truth, std::string_view joint,
                                     const SourcePosition& position) {
  if (!body_.runs) return body_;
  if (truth) return {*truth, std::nullopt};
  if (!list_.undecided) {
    list_.undecided = PassOver(position, fmt::format("what follows '{}'", joint));
  }
  return {false, list_.undecided};
}

ShellFlow::Frame& ShellFlow::Open(Construct construct, std::string_view keyword,
                                  const SourcePosition& position) {
  Frame frame;
  frame.construct = construct;
  frame.keyword = std::string(keyword);
  frame.position = position;
  frame.outer = flow_;
  frame.outer_body = body_;
  frame.outer_list = list_;
  frames_.push_back(std::move(frame));
  return frames_.back();
}

ShellFlow::Frame* ShellFlow::Top(Construct construct) {
  return Within(construct) ? &frames_.back() : nullptr;
}

void ShellFlow::Enter(Flow flow) {
  body_ = flow;
  flow_ = flow;
  list_ = {};
}

void ShellFlow::Leave() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  body_ = frame.outer_body;
  flow_ = frame.outer;
  list_ = frame.outer_list;
}

bool ShellFlow::Close(Construct construct) {
  if (!Within(construct)) return false;
  Leave();
  return true;
}

void ShellFlow::OpenCondition(std::string_view keyword, const SourcePosition& position) {
  const Construct construct = keyword == "if" ? Construct::kIf : Construct::kWhile;
  Open(construct, keyword, position).condition = true;
  Enter(flow_);
}

void ShellFlow::Then() {
  if (Frame* frame = Top(Construct::kIf); frame != nullptr && frame->condition) {
    frame->condition = false;
    EnterBranch(*frame, last_status_);
  }
}

void ShellFlow::Elif() {
  Frame* frame = Top(Construct::kIf);
  if (frame == nullptr) return;
  frame->condition = true;
  const bool open = !frame->taken && !frame->undecided;
  Enter(open ? frame->outer : Flow{false, std::nullopt});
}

void ShellFlow::Else() {
  if (Frame* frame = Top(Construct::kIf)) EnterBranch(*frame, true);
}

void ShellFlow::EnterBranch(Frame& frame, ShellTruth truth) {
  if (!frame.outer.runs) return Enter(frame.outer);
  if (!frame.undecided && !frame.taken && !truth) {
    frame.undecided = PassOver(frame.position, fmt::format("the body of '{}'", frame.keyword));
  }
  if (frame.undecided) return Enter({false, frame.undecided});
  const bool runs = !frame.taken && *truth;
  frame.taken = frame.taken || runs;
  Enter({runs, std::nullopt});
}

void ShellFlow::OpenFor(const SourcePosition& position, std::string variable, ShellFields values,
                        bool known) {
  Frame& frame = Open(Construct::kFor, "for", position);
  frame.variable = std::move(variable);
  frame.values = std::move(values);
  if (!known && frame.outer.runs) frame.undecided = PassOver(position, "the body of 'for'");
  Enter({false, std::nullopt});
}

void ShellFlow::Do(std::size_t body_start) {
  if (Frame* frame = Top(Construct::kFor)) {
    frame->body_start = body_start;
    NextTurn(*frame);
  } else if (Frame* loop = Top(Construct::kWhile); loop != nullptr && loop->condition) {
    loop->condition = false;
    const ShellTruth truth = loop->keyword == "until" ? ShellNot(last_status_) : last_status_;
    // A condition that holds may cease to hold: how often the body runs is not known.
    EnterBranch(*loop, truth && !*truth ? truth : std::nullopt);
  }
}

void ShellFlow::NextTurn(Frame& frame) {
  if (!frame.outer.runs) return Enter(frame.outer);
  if (frame.undecided) return Enter({false, frame.undecided});
  if (frame.next == frame.values.size() || ++turns_ > kMostTurns) {
    return Enter({false, std::nullopt});
  }
  turn_ = {frame.variable, frame.values[frame.next++]};
  Enter({true, std::nullopt});
}

std::optional<std::size_t> ShellFlow::Done() {
  if (Frame* frame = Top(Construct::kFor)) {
    const bool again = frame->outer.runs && !frame->undecided && frame->body_start > 0 &&
                       frame->next < frame->values.size();
    if (!again) return Leave(), std::nullopt;
    const std::size_t start = frame->body_start;
    NextTurn(*frame);
    return start;
  }
  (void)Close(Construct::kWhile);
  return std::nullopt;
}

void ShellFlow::LeaveLoop(bool all) {
  const auto loop = std::find_if(frames_.rbegin(), frames_.rend(), [](const Frame& frame) {
    return frame.construct == Construct::kFor;
  });
  if (loop == frames_.rend()) return;
  if (all) loop->next = loop->values.size();
  for (auto inner = frames_.rbegin(); inner != loop; ++inner) {
    inner->outer = inner->outer_body = {false, std::nullopt};
  }
  Enter({false, std::nullopt});
}

void ShellFlow::OpenCase(const SourcePosition& position, std::string subject) {
  Frame& frame = Open(Construct::kCase, "case", position);
  frame.subject = std::move(subject);
  frame.pattern = true;
  Enter({false, std::nullopt});
}

void ShellFlow::EnterCaseBranch(ShellTruth matches) {
  Frame& frame = frames_.back();
  frame.pattern = false;
  EnterBranch(frame, matches);
}

void ShellFlow::EndCaseBranch() {
  if (Frame* frame = Top(Construct::kCase)) frame->pattern = true;
}

void ShellFlow::OpenGroup(const SourcePosition& position,
                          const std::optional<std::string>& function) {
  const Flow outer = Open(Construct::kGroup, "{", position).outer;
  if (!function || !outer.runs) return Enter(outer);
  Enter({false, PassOver(position, fmt::format("the body of function '{}'", *function))});
}

std::size_t ShellFlow::PassOver(const SourcePosition& position, std::string what) {
  passed_over_.push_back({position, std::move(what), {}, {}});
  return passed_over_.size() - 1;
}

// False where there is none.
bool ShellFlow::NoteFlags(const ShellFields& fields) {
  bool any = false;
  for (const std::string& field : fields) {
    for (const std::string& word : SplitAtBlanks(field)) {
      if (word.size() < 3 || !word.starts_with("--") || word[2] == '-') continue;
      passed_over_[*flow_.undecided].flags.insert(word.substr(0, word.find('=')));
      any = true;
    }
  }
  return any;
}

void ShellFlow::Doubt(const std::string& variable, const ShellFields& value) {
  if (flow_.undecided && !NoteFlags(value)) doubtful_[variable] = *flow_.undecided;
}

void ShellFlow::Use(const std::set<std::string>& variables) {
  if (!flow_.runs) return;
  for (const std::string& name : variables) {
    const auto found = doubtful_.find(name);
    if (found != doubtful_.end()) passed_over_[found->second].variables.insert(name);
  }
}

std::vector<ShellPassedOver> ShellFlow::TakePassedOver() {
  std::erase_if(passed_over_, [](const ShellPassedOver& part) {
    return part.what.starts_with("what follows") && part.flags.empty() && part.variables.empty();
  });
  return std::move(passed_over_);
}

}  // namespace quadrille::scenario
