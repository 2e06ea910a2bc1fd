// The model types of Hugging Face that can be read. A new one is a function and a row.
#pragma once

#include <span>
#include <string_view>

#include "sim/scenario/huggingface_translator.h"

namespace quadrille::scenario {

struct HuggingFaceModelType {
  std::string_view name;  // config.json's `model_type`
  void (*translate)(HuggingFaceTranslator&);
};

// In alphabetical order.
[[nodiscard]] std::span<const HuggingFaceModelType> HuggingFaceTypes();

}  // namespace quadrille::scenario
