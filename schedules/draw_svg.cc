// Geometry in pixels: a left margin with rank names, a row per rank, below it the axis and the
// legend. One scale turns time into x. Fused pairs are two half-high boxes of the whole length,
// because both run for all of it.

#include "schedules/draw_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "schedules/task_costs_text.h"

namespace quadrille::schedules {
namespace {

constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kRowHeight = 22;
constexpr double kRowGap = 4;
constexpr double kDigitWidth = 6.2;  // of the numbers' font size, 10
constexpr double kLeastWidth = 640;

struct KindStyle {
  const char* letter;
  const char* name;
  const char* colour;  // Okabe and Ito's palette: told apart with every common colour blindness
};

const KindStyle& StyleOf(ActionKind kind) {
  static constexpr std::array<KindStyle, 4> kStyles = {{
      {"F", "forward", "#56b4e9"},
      {"B", "backward", "#009e73"},
      {"I", "input gradient", "#e69f00"},
      {"W", "weight gradient", "#cc79a7"},
  }};
  return kStyles[static_cast<std::size_t>(kind)];
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        // Control characters are not allowed in XML at all.
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

std::size_t Digits(std::int32_t value) { return fmt::formatted_size("{}", value); }

// 1, 2 or 5 times a power of ten, so that ticks are at least 56 pixels apart.
double TickStep(double pixels_per_unit) {
  double step = 1e-6;
  while (true) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (step * factor * pixels_per_unit >= 56) return step * factor;
    }
    step *= 10;
  }
}

class Picture {
 public:
  Picture(const PipelineSchedule& schedule, const ScheduleEvaluation& evaluation,
          const TaskCosts& costs, const SvgOptions& options)
      : schedule_(schedule), evaluation_(evaluation), costs_(costs), options_(options) {
    const double makespan = std::max(ToUnits(evaluation.makespan), 1e-9);
    double drawing = options.width - kLeft - kRight;
    if (options.width <= 0) {
      // A number fits into the shortest forward or backward, or the least width, whichever is more.
      const double label =
          kDigitWidth * static_cast<double>(Digits(schedule.microbatches_per_direction() - 1)) + 4;
      const double forward = ToUnits(costs.forward);
      drawing = forward > 0 ? makespan / forward * label : 0;
      drawing = std::clamp(drawing, kLeastWidth - kLeft - kRight, 20000.0);
    }
    scale_ = std::max(drawing, 1.0) / makespan;
    width_ = kLeft + kRight + std::max(drawing, 1.0);
    bottom_ = kTop + static_cast<double>(schedule.pipeline) * (kRowHeight + kRowGap);
  }

  std::string Draw() {
    const double height = bottom_ + 76;
    Add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
        R"(viewBox="0 0 {0:.0f} {1:.0f}" )"
        R"(font-family="Helvetica, Arial, sans-serif" font-size="10">)"
        "\n",
        width_, height);
    const std::string title = Title();
    Add("<title>{}</title>\n", Escaped(title));
    Add(R"(<rect width="{:.0f}" height="{:.0f}" fill="#ffffff"/>)"
        "\n",
        width_, height);
    Add(R"(<text x="{}" y="18" font-size="13" font-weight="bold">{}</text>)"
        "\n",
        kLeft, Escaped(title));
    for (std::int32_t r = 0; r < schedule_.pipeline; ++r) Row(r);
    Axis();
    Legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] double X(Duration time) const { return kLeft + ToUnits(time) * scale_; }

  [[nodiscard]] std::string Title() const {
    if (!options_.title.empty()) return options_.title;
    std::string title = fmt::format("{}: {} ranks, {} microbatches", schedule_.name,
                                    schedule_.pipeline, schedule_.microbatches);
    if (schedule_.virtual_stages > 1)
      title += fmt::format(", {} chunks per rank", schedule_.virtual_stages);
    if (schedule_.slices > 1) title += fmt::format(", {} slices", schedule_.slices);
    return title;
  }

  void Row(std::int32_t rank) {
    const auto r = static_cast<std::size_t>(rank);
    const double y = kTop + static_cast<double>(rank) * (kRowHeight + kRowGap);
    Add(R"(<text x="{:.0f}" y="{:.1f}" text-anchor="end">rank {}</text>)"
        "\n",
        kLeft - 8, y + kRowHeight / 2 + 3.5, rank);
    // What no box covers is idle.
    Add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.0f}" fill="#eeeeee"/>)"
        "\n",
        kLeft, y, ToUnits(evaluation_.makespan) * scale_, kRowHeight);
    for (std::size_t i = 0; i < schedule_.ranks[r].size(); ++i) {
      DrawSlot(schedule_.ranks[r][i], evaluation_.times[r][i], y);
    }
  }

  void DrawSlot(const Slot& slot, const SlotTime& time, double y) {
    if (!slot.second) {
      Box(slot.first, time.start, time.end, y, kRowHeight);
    } else if (costs_.pair_cost == PairCost::kSerial) {
      Box(slot.first, time.start, time.start + DurationOf(slot.first, costs_), y, kRowHeight);
      Box(*slot.second, time.second_start, time.end, y, kRowHeight);
    } else {
      Box(slot.first, time.start, time.end, y, kRowHeight / 2);
      Box(*slot.second, time.start, time.end, y + kRowHeight / 2, kRowHeight / 2);
    }
  }

  void Box(const Action& action, Duration start, Duration end, double y, double height) {
    const double width = ToUnits(end - start) * scale_;
    if (width <= 0) return;
    Add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.0f}" fill="{}" )"
        R"(fill-opacity="{:.2f}" stroke="#333333" stroke-width="0.5"/>)"
        "\n",
        X(start), y, width, height, StyleOf(action.kind).colour, Opacity(action.chunk));
    const std::size_t digits = Digits(action.microbatch.value());
    if (width < kDigitWidth * static_cast<double>(digits) + 1) return;
    Add(R"(<text x="{:.2f}" y="{:.1f}" text-anchor="middle" font-size="{}">{}</text>)"
        "\n",
        X(start) + width / 2, y + height / 2 + 3.4, height < kRowHeight ? 9 : 10,
        action.microbatch.value());
  }

  // Chunk 0 in full colour, the last one in the lightest shade.
  [[nodiscard]] double Opacity(ChunkId chunk) const {
    if (schedule_.virtual_stages < 2) return 1;
    return 1 - 0.6 * chunk.value() / (schedule_.virtual_stages - 1);
  }

  void Axis() {
    const double y = bottom_ + 4;
    const double end = X(evaluation_.makespan);
    Add(R"(<line x1="{0:.2f}" y1="{2:.1f}" x2="{1:.2f}" y2="{2:.1f}" stroke="#333333"/>)"
        "\n",
        kLeft, end, y);
    const double step = TickStep(scale_);
    const auto ticks = static_cast<int>(ToUnits(evaluation_.makespan) / step + 1e-9);
    for (int i = 0; i <= ticks; ++i) {
      const double x = kLeft + i * step * scale_;
      Add(R"(<line x1="{0:.2f}" y1="{1:.1f}" x2="{0:.2f}" y2="{2:.1f}" stroke="#333333"/>)"
          R"(<text x="{0:.2f}" y="{3:.1f}" text-anchor="middle">{4:.6g}</text>)"
          "\n",
          x, y, y + 4, y + 15, i * step);
    }
  }

  void Legend() {
    std::array<bool, 4> used{};
    for (const auto& order : schedule_.ranks) {
      for (const Slot& slot : order) {
        used[static_cast<std::size_t>(slot.first.kind)] = true;
        if (slot.second) used[static_cast<std::size_t>(slot.second->kind)] = true;
      }
    }
    double x = kLeft;
    const double y = bottom_ + 34;
    const auto item = [&](const char* colour, const std::string& label) {
      Add(R"(<rect x="{:.1f}" y="{:.1f}" width="12" height="12" fill="{}" stroke="#333333" )"
          R"(stroke-width="0.5"/><text x="{:.1f}" y="{:.1f}">{}</text>)"
          "\n",
          x, y - 10, colour, x + 16, y, label);
      x += 28 + 5.6 * static_cast<double>(label.size());
    };
    for (std::size_t k = 0; k < used.size(); ++k) {
      const KindStyle& style = StyleOf(static_cast<ActionKind>(k));
      if (used[k]) item(style.colour, fmt::format("{} {}", style.letter, style.name));
    }
    item("#eeeeee", "idle");
    Add(R"(<text x="{}" y="{:.1f}">{}</text>)"
        "\n",
        kLeft, y + 18, Escaped(Footnote()));
  }

  [[nodiscard]] std::string Footnote() const {
    std::string text =
        fmt::format("makespan {:.6g}, idle {:.2f} % of it; {}", ToUnits(evaluation_.makespan),
                    100 * evaluation_.bubble_of_makespan.value(), ToString(costs_));
    if (schedule_.placement == Placement::kBidirectional) {
      text += "; full colour: down, light: up";
    } else if (schedule_.virtual_stages > 1) {
      text += "; the lighter, the deeper the chunk";
    }
    return text;
  }

  const PipelineSchedule& schedule_;
  const ScheduleEvaluation& evaluation_;
  const TaskCosts& costs_;
  const SvgOptions& options_;
  double scale_ = 1;
  double width_ = 0;
  double bottom_ = 0;
  std::string text_;
};

}  // namespace

std::string DrawSvg(const PipelineSchedule& schedule, const ScheduleEvaluation& evaluation,
                    const TaskCosts& costs, const SvgOptions& options) {
  return Picture(schedule, evaluation, costs, options).Draw();
}

}  // namespace quadrille::schedules
