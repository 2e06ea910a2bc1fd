#include "sim/report/constant_list.h"

#include <algorithm>

namespace quadrille::report {
namespace {

std::string KindText(compute::ConstantSource::Kind kind) {
  switch (kind) {
    case compute::ConstantSource::Kind::kMeasured: return "measured";
    case compute::ConstantSource::Kind::kFitted: return "fitted";
    case compute::ConstantSource::Kind::kPublished: return "published";
    case compute::ConstantSource::Kind::kAssumed: return "assumed";
  }
  return "assumed";
}

bool Certain(const std::string& kind) { return kind == "measured" || kind == "fitted"; }

int DoubtOf(const std::string& kind) { return kind == "published" ? 2 : kind == "default" ? 1 : 0; }

}  // namespace

std::vector<UncertainConstant> UncertainConstants(const RunDescription& run) {
  std::vector<UncertainConstant> constants;
  const auto add = [&](const char* group, const std::string& constant, const std::string& kind,
                       const std::string& source) {
    if (!Certain(kind)) constants.push_back({group, constant, kind, source});
  };
  for (const compute::ConstantSource& constant : run.compute_constants) {
    add("compute", constant.constant, KindText(constant.kind), constant.source);
  }
  for (const network::CollectiveConstants::Source& constant : run.collective_constants) {
    add("collectives", constant.constant, constant.kind, constant.source);
  }
  for (const ChosenValue& chosen : run.chosen) {
    add("scenario", chosen.key + ": " + chosen.value, "default", chosen.reason);
  }
  std::stable_sort(constants.begin(), constants.end(),
                   [](const UncertainConstant& a, const UncertainConstant& b) {
                     return DoubtOf(a.kind) < DoubtOf(b.kind);
                   });
  return constants;
}

}  // namespace quadrille::report
