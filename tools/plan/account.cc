#include "tools/plan/account.h"

#include <fmt/format.h>

#include "sim/report/number_text.h"

namespace quadrille::plan {
namespace {

// At most four significant digits, without trailing zeros: "16", "4.023", "0.03125".
std::string NumberText(double number) { return fmt::format("{:.4g}", number); }

struct TextOf {
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(std::int64_t count) const { return report::CountText(count); }
  std::string operator()(double number) const { return NumberText(number); }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(bool truth) const { return truth ? "yes" : "no"; }
  std::string operator()(Bytes bytes) const { return report::BytesText(bytes); }
  std::string operator()(Duration duration) const { return report::TimeText(duration); }
  std::string operator()(Ratio ratio) const { return report::PercentText(ratio); }
  std::string operator()(ParameterCount count) const { return report::ParametersText(count); }
  std::string operator()(FlopCount flops) const {
    return fmt::format("{:.3g} FLOP", flops.value());
  }
  std::string operator()(BytesPerSecond rate) const { return report::RateText(rate); }
};

}  // namespace

std::string ToText(const Amount& amount) { return std::visit(TextOf{}, amount); }

}  // namespace quadrille::plan
