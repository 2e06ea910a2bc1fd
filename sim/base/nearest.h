// The nearest known name to a misspelt one, for error messages.
#pragma once

#include <span>
#include <string_view>

namespace quadrille {

// The candidate with the smallest edit distance to `word` if that is at most a third of its length
// (at least 2), else empty. Ties go to the earlier candidate.
[[nodiscard]] std::string_view Nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace quadrille
