// Rows that name a shipped model instead of its dimensions.
#pragma once

#include <vector>

#include "sim/scenario/scenario_loader.h"
#include "tools/validate/measured_step.h"

namespace quadrille::tools {

// Gives each row that states neither layers, hidden, heads nor vocabulary the dimensions of the
// model description that its `model` names, and sets its `shipped_model`. "Llama3-70B" and "llama 3
// 70b" are llama3-70b: case and what separates words do not matter. A name that is none keeps the
// row as it is, with the nearest known in `model_hint`.
void FillShippedModels(const scenario::LoadOptions& load, std::vector<MeasuredStep>* steps);

}  // namespace quadrille::tools
