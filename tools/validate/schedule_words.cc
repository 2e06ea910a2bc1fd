#include "tools/validate/schedule_words.h"

#include <algorithm>
#include <cctype>

#include "schedules/registry.h"

namespace quadrille::tools {
namespace {

using Kind = ScheduleWords::Kind;

// The first that the cell begins with counts.
struct Head {
  std::string_view text;
  Kind kind;
  std::string_view name;
};
constexpr Head kHeads[] = {
    {"none", Kind::kUnstated, ""},
    {"interleaved-1f1b", Kind::kMegatron, ""},
    {"modified interleaved 1f1b", Kind::kMegatron, ""},
    {"zb-1p", Kind::kNamed, "zb-h1"},  // of Qi et al.: the memory of 1F1B
    {"zb-2p", Kind::kNamed, "zb-h2"},  // twice that
};

}  // namespace

ScheduleWords ReadScheduleWords(std::string_view cell) {
  std::string text;
  for (const char c : cell) {
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (text.empty() || text == "?") return {};
  const std::string certain = text.back() == '?' ? text.substr(0, text.size() - 1) : text;
  if (certain == "1f1b" || certain == "1f1b-i" || certain == "interleaved") {
    return {Kind::kMegatron, ""};
  }
  if (schedules::FindSchedule(certain) != nullptr) return {Kind::kNamed, certain};
  const auto* head = std::find_if(std::begin(kHeads), std::end(kHeads), [&](const Head& entry) {
    return text.compare(0, entry.text.size(), entry.text) == 0;
  });
  if (head == std::end(kHeads)) return {Kind::kUnknown, ""};
  return {head->kind, std::string(head->name)};
}

}  // namespace quadrille::tools
