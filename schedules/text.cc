// Reader and writer of order files. The reader collects problems with line and column and goes on
// with the next word; it never allocates by a number that the file states before it has compared
// that number with what may be.

#include "schedules/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "schedules/refusals.h"

namespace quadrille::schedules {
namespace {

constexpr std::size_t kMaxProblems = 50;
constexpr std::string_view kBlank = " \t\r";

void AppendAction(std::string& text, const Action& action, bool with_slice) {
  text += LetterOf(action.kind);
  fmt::format_to(std::back_inserter(text), "{}.{}", action.microbatch.value(),
                 action.chunk.value());
  if (with_slice) fmt::format_to(std::back_inserter(text), "s{}", action.slice);
}

std::string_view Name(Placement placement) {
  switch (placement) {
    case Placement::kLoop: return "loop";
    case Placement::kV: return "v";
    case Placement::kBidirectional: return "bidir";
  }
  return "?";
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<PipelineSchedule> Parse() {
    int line_number = 0;
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_number;
      const std::size_t first = line.find_first_not_of(kBlank);
      if (first == std::string_view::npos) continue;
      if (line[first] == '#') {
        if (!has_header_) ParseHeader(line, line_number);
      } else if (!has_header_) {
        Fail(line_number, 1,
             "expected a header `# schedule=NAME P=.. M=.. v=.. placement=loop|v|bidir` before the "
             "first order; `quadrille schedules print --header` writes one");
        break;
      } else {
        ParseOrder(line, line_number);
      }
      if (header_failed_) break;  // without P, M, v and placement no action can be judged
    }
    if (!has_header_ && problems_.empty()) {
      Fail(line_number, 1,
           "no header and no orders: the file is empty; `quadrille schedules print --header` "
           "writes both");
    }
    if (has_header_ && !header_failed_) CheckRankCount(line_number);
    if (schedule_.placement == Placement::kBidirectional) SplitDirections();
    if (more_ > 0) {
      problems_.push_back(
          Diagnostic{{file_, 0, 0}, fmt::format("... and {} more problems", more_)});
    }
    if (!problems_.empty()) return tl::unexpected<Diagnostics>(std::move(problems_));
    return std::move(schedule_);
  }

 private:
  void Fail(int line, std::size_t column, std::string message) {
    if (problems_.size() < kMaxProblems) {
      problems_.push_back(Diagnostic{{file_, line, static_cast<int>(column)}, std::move(message)});
    } else {
      ++more_;
    }
  }

  struct Word {
    std::string_view text;
    std::size_t column = 1;  // from 1
  };

  static std::vector<Word> Words(std::string_view line) {
    std::vector<Word> words;
    std::size_t at = 0;
    while ((at = line.find_first_not_of(kBlank, at)) != std::string_view::npos) {
      const std::size_t end = line.find_first_of(kBlank, at);
      words.push_back({line.substr(at, end - at), at + 1});
      at = end;
      if (at == std::string_view::npos) break;
    }
    return words;
  }

  // The number that makes up the whole of `text`; nullopt when it is none or does not fit.
  static std::optional<std::int32_t> Number(std::string_view text) {
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || text[0] == '-' || error != std::errc() ||
        end != text.data() + text.size()) {
      return std::nullopt;
    }
    return value;
  }

  void ParseHeader(std::string_view line, int line_number) {
    if (line.find("P=") == std::string_view::npos && line.find("M=") == std::string_view::npos) {
      return;  // a comment before the header
    }
    has_header_ = true;
    const std::size_t before = problems_.size();
    std::optional<std::int32_t> pipeline;
    std::optional<std::int32_t> microbatches;
    std::optional<std::int32_t> virtual_stages;
    std::optional<std::int32_t> slices;
    std::optional<Placement> placement;
    const auto number = [&](std::optional<std::int32_t>& into, std::string_view key,
                            std::string_view value, std::size_t column) {
      if (into) return Fail(line_number, column, fmt::format("{} is given twice", key));
      into = Number(value);
      if (!into || *into < 1) {
        into = 1;
        Fail(line_number, column,
             fmt::format("{} must be a whole number from 1, not '{}'", key, value));
      }
    };
    for (const Word& word : Words(line)) {
      const std::size_t equals = word.text.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = word.text.substr(0, equals);
      const std::string_view value = word.text.substr(equals + 1);
      if (key == "P") number(pipeline, key, value, word.column);
      if (key == "M") number(microbatches, key, value, word.column);
      if (key == "v") number(virtual_stages, key, value, word.column);
      if (key == "slices") number(slices, key, value, word.column);
      if (key == "schedule") schedule_.name = std::string(value);
      if (key == "lowered") lowered_ = std::string(value);
      if (key == "placement") placement = ParsePlacement(value, line_number, word.column);
    }
    if (lowered_ == "torch") {
      Fail(line_number, 1,
           "a program lowered by PyTorch (stages, sends, unshards), not an order; print the "
           "schedule's own order instead");
      header_failed_ = true;
      return;
    }
    if (!lowered_.empty()) {
      // A log of one library's step, whose placement goes without saying.
      const bool two_copies = lowered_ == "dualpipe";
      if (schedule_.name.empty()) schedule_.name = lowered_;
      if (!placement) placement = two_copies ? Placement::kBidirectional : Placement::kLoop;
      if (!virtual_stages && two_copies) virtual_stages = 1;
    }
    if (!pipeline) Fail(line_number, 1, "the header lacks P, the number of pipeline ranks");
    if (!microbatches) Fail(line_number, 1, "the header lacks M, the number of microbatches");
    if (!virtual_stages) Fail(line_number, 1, "the header lacks v, the virtual stages per rank");
    if (!placement) Fail(line_number, 1, "the header lacks placement=loop|v|bidir");
    if (!pipeline || !microbatches || !virtual_stages || !placement) {
      Fail(line_number, 1,
           "a header is `# schedule=NAME P=.. M=.. v=.. placement=loop|v|bidir`; `quadrille "
           "schedules print --header` writes one");
    }
    if (problems_.size() == before) {
      schedule_.pipeline = *pipeline;
      schedule_.microbatches = *microbatches;
      schedule_.virtual_stages = *virtual_stages;
      schedule_.slices = slices.value_or(1);
      schedule_.placement = *placement;
      CheckHeader(line_number);
    }
    header_failed_ = problems_.size() != before;
  }

  std::optional<Placement> ParsePlacement(std::string_view value, int line, std::size_t column) {
    for (const Placement placement : {Placement::kLoop, Placement::kV, Placement::kBidirectional}) {
      if (value == Name(placement)) return placement;
    }
    Fail(line, column, fmt::format("placement must be loop, v or bidir, not '{}'", value));
    return Placement::kLoop;
  }

  void CheckHeader(int line) {
    if (schedule_.placement == Placement::kBidirectional) {
      // One chunk per direction; files count v as the chunks of one replica.
      if (schedule_.virtual_stages > 2) {
        Fail(line, 1,
             fmt::format("a bidirectional schedule has v=1 per direction, not {}",
                         schedule_.virtual_stages));
      }
      schedule_.virtual_stages = 2;
    }
    const double actions = 3.0 * schedule_.pipeline * schedule_.microbatches *
                           schedule_.virtual_stages * schedule_.slices;
    if (actions > static_cast<double>(kMaxActions)) {
      Fail(line, 1,
           fmt::format("P x M x v x slices is too large: up to {:.0f} actions, limit {}", actions,
                       kMaxActions));
    }
  }

  void ParseOrder(std::string_view line, int line_number) {
    std::vector<Slot> order;
    for (const Word& word : Words(line)) {
      if (IsCall(word.text)) continue;
      const std::size_t amp = word.text.find('&');
      const auto first = ParseAction({word.text.substr(0, amp), word.column}, line_number);
      std::optional<Action> second;
      if (amp != std::string_view::npos) {
        second = ParseAction({word.text.substr(amp + 1), word.column + amp + 1}, line_number);
        if (!second) continue;
      }
      if (first) order.push_back(Slot{*first, second});
    }
    ++order_count_;
    if (schedule_.ranks.size() < static_cast<std::size_t>(schedule_.pipeline)) {
      schedule_.ranks.push_back(std::move(order));
    }
  }

  // A send or receive of a lowered log (`sf`, `rb2.0`, `sf|rb`): it orders nothing that the actions
  // do not order already.
  [[nodiscard]] bool IsCall(std::string_view word) const {
    if (lowered_.empty() || word.size() < 2) return false;
    return (word[0] == 's' || word[0] == 'r') && (word[1] == 'f' || word[1] == 'b');
  }

  std::optional<Action> ParseAction(const Word& word, int line) {
    const auto fail = [&](std::string message) {
      Fail(line, word.column, std::move(message));
      return std::nullopt;
    };
    const auto malformed = [&] {
      return fail(
          fmt::format("'{}' is not an action: expected F, B, I or W, a microbatch, a dot and a "
                      "chunk, as in F3.0",
                      word.text));
    };
    Action action;
    if (word.text.empty()) return malformed();
    bool known = false;
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward,
                                  ActionKind::kBackwardInput, ActionKind::kBackwardWeight}) {
      if (word.text[0] != LetterOf(kind)) continue;
      action.kind = kind;
      known = true;
    }
    const std::size_t dot = word.text.find('.');
    if (!known || dot == std::string_view::npos) return malformed();
    const std::size_t s = word.text.find('s', dot);
    const auto microbatch = Number(word.text.substr(1, dot - 1));
    const auto chunk =
        Number(word.text.substr(dot + 1, s == std::string_view::npos ? s : s - dot - 1));
    const auto slice = s == std::string_view::npos ? 0 : Number(word.text.substr(s + 1));
    if (!microbatch || !chunk || !slice) return malformed();
    if (*microbatch >= schedule_.microbatches) {
      return fail(fmt::format("microbatch {} of '{}' is out of range: there are {}", *microbatch,
                              word.text, schedule_.microbatches));
    }
    if (*chunk >= schedule_.virtual_stages) {
      return fail(fmt::format("chunk {} of '{}' is out of range: there are {}", *chunk, word.text,
                              schedule_.virtual_stages));
    }
    if (*slice >= schedule_.slices) {
      return fail(fmt::format("slice {} of '{}' is out of range: there are {}", *slice, word.text,
                              schedule_.slices));
    }
    action.microbatch = MicrobatchId(*microbatch);
    action.chunk = ChunkId(*chunk);
    action.slice = *slice;
    return action;
  }

  // The two directions share M. They may differ in number; what the file's indices say is taken
  // where it adds up to M.
  void SplitDirections() {
    std::array<std::int32_t, 2> counts{};
    for (const std::vector<Slot>& order : schedule_.ranks) {
      for (const Slot& slot : order) {
        CountDirection(slot.first, counts);
        if (slot.second) CountDirection(*slot.second, counts);
      }
    }
    if (counts[0] + std::int64_t{counts[1]} == schedule_.microbatches) {
      schedule_.microbatches_down = counts[0];
    }
  }
  static void CountDirection(const Action& action, std::array<std::int32_t, 2>& counts) {
    std::int32_t& count = counts[action.chunk.index()];
    count = std::max(count, action.microbatch.value() + 1);
  }

  void CheckRankCount(int last_line) {
    if (order_count_ == static_cast<std::size_t>(schedule_.pipeline)) return;
    Fail(last_line, 1,
         fmt::format("the header states P={}, but there are orders for {} rank{}",
                     schedule_.pipeline, order_count_, order_count_ == 1 ? "" : "s"));
  }

  std::string_view text_;
  const std::string& file_;
  PipelineSchedule schedule_;
  std::size_t order_count_ = 0;
  std::string lowered_;  // the library whose lowered step this is a log of
  bool has_header_ = false;
  bool header_failed_ = false;
  Diagnostics problems_;
  std::size_t more_ = 0;
};

}  // namespace

std::string PrintSchedule(const PipelineSchedule& schedule, bool header) {
  std::string text;
  if (header) {
    const bool bidirectional = schedule.placement == Placement::kBidirectional;
    text = fmt::format("# schedule={} P={} M={} v={} placement={}", schedule.name,
                       schedule.pipeline, schedule.microbatches,
                       bidirectional ? 1 : schedule.virtual_stages, Name(schedule.placement));
    if (schedule.slices > 1) text += fmt::format(" slices={}", schedule.slices);
    text += '\n';
  }
  for (const std::vector<Slot>& order : schedule.ranks) {
    bool first = true;
    for (const Slot& slot : order) {
      if (!first) text += ' ';
      first = false;
      AppendAction(text, slot.first, schedule.slices > 1);
      if (slot.second) {
        text += '&';
        AppendAction(text, *slot.second, schedule.slices > 1);
      }
    }
    text += '\n';
  }
  return text;
}

Result<PipelineSchedule> ParseSchedule(std::string_view text, const std::string& file) {
  return Parser(text, file).Parse();
}

char LetterOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward: return 'F';
    case ActionKind::kBackward: return 'B';
    case ActionKind::kBackwardInput: return 'I';
    case ActionKind::kBackwardWeight: return 'W';
  }
  return '?';
}

std::string ToString(const Action& action, bool with_slice) {
  std::string text;
  AppendAction(text, action, with_slice);
  return text;
}

}  // namespace quadrille::schedules
