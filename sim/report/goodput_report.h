// A run of many days as text: table, JSON, CSV.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/reliability/goodput.h"
#include "sim/report/run_description.h"
#include "sim/report/text_table.h"

namespace quadrille::report {

// What the reports say beside the figures.
struct GoodputDescription {
  RunDescription run;
  reliability::ReliabilitySpec spec;
  TokenCount tokens_per_step;
  Bytes checkpoint_bytes;  // that are written, where the cost follows from them; else 0
};

// Every figure stands beside the assumption that it rests on.
[[nodiscard]] std::string RenderGoodputTable(const GoodputDescription& description,
                                             const reliability::GoodputReport& report,
                                             const TableStyle& style);
[[nodiscard]] std::string RenderGoodputJson(const GoodputDescription& description,
                                            const reliability::GoodputReport& report);
// table,row,column,value,unit
[[nodiscard]] std::string RenderGoodputCsv(const GoodputDescription& description,
                                           const reliability::GoodputReport& report);

}  // namespace quadrille::report
