// What tables of measurements call pipeline schedules.
#pragma once

#include <string>
#include <string_view>

namespace quadrille::tools {

// How a `schedule` cell is read.
struct ScheduleWords {
  enum class Kind {
    kUnstated,  // blank, "?", or "none" where there is no pipeline
    kMegatron,  // 1F1B in words, plain or interleaved: the virtual stages decide
    kNamed,     // `name` among the built-in schedules
    kUnknown,
  };
  Kind kind = Kind::kUnstated;
  std::string name;  // kNamed
};

// Reads names of this program ("zb-h1"), of Megatron's and the zero-bubble papers' tables
// ("1F1B-I", "ZB-1p"), in any case, with whatever follows in words.
[[nodiscard]] ScheduleWords ReadScheduleWords(std::string_view cell);

}  // namespace quadrille::tools
