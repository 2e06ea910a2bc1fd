// What was published of a run, in its own file: figures to compare with, which change no result.
#include <fmt/format.h>

#include "sim/scenario/names.h"
#include "sim/scenario/run_sections.h"

namespace quadrille::scenario {
namespace {

using metrics::FigureKind;

// `value: 19.84 s`, `430 TFLOP/s`, `43 %` or a plain number, as the kind has it.
bool ReadValue(MapReader& reader, FigureKind kind, double* value) {
  switch (kind) {
    case FigureKind::kStepTime: {
      Duration time{0};
      if (!reader.Read("value", &time, Zero::kRefused)) return false;
      *value = ToSeconds(time);
      return true;
    }
    case FigureKind::kTflopsPerGpuCausal:
    case FigureKind::kTflopsPerGpuFull:
    case FigureKind::kTflopsPerGpuHardware: {
      FlopsPerSecond rate;
      if (!reader.Read("value", &rate)) return false;
      *value = rate.value() / 1e12;
      return true;
    }
    case FigureKind::kMfuCausal:
    case FigureKind::kMfuFull:
    case FigureKind::kHfu: {
      Ratio share;
      if (!reader.Read("value", &share, Zero::kRefused)) return false;
      *value = share.value();
      return true;
    }
    case FigureKind::kTokensPerSecondPerGpu:
    case FigureKind::kGpuHours:
    case FigureKind::kFlops: return reader.Read("value", value, {1e-9, 1e40});
  }
  return false;
}

void LoadFigure(MapReader reader, Scenario* scenario) {
  metrics::PublishedFigure figure;
  if (!reader.present()) return;
  reader.Require({"figure", "value", "source"});
  const bool known = reader.ReadName("figure", &figure.kind, kFigures);
  if (known) {
    ReadValue(reader, figure.kind, &figure.value);
  } else {
    (void)reader.Has("value");
  }
  const bool whole = figure.kind == FigureKind::kGpuHours || figure.kind == FigureKind::kFlops;
  if (!known || whole) reader.Read("tokens", &figure.tokens);
  if (known && whole) reader.Require({"tokens"});
  reader.Read("global_batch", &figure.global_batch, kPositive);
  reader.Read("source", &figure.source);
  reader.Read("note", &figure.note);
  reader.Finish();
  scenario->published.push_back(std::move(figure));
}

}  // namespace

void LoadPublished(MapReader& root, Scenario* scenario) {
  const YamlValue* list = root.Find("published");
  if (list == nullptr) return;
  if (!list->is_sequence()) return root.Error("published", "expected a list");
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    LoadFigure(MapReader(&list->items[i], fmt::format("published.{}", i), &root.findings()),
               scenario);
  }
}

}  // namespace quadrille::scenario
