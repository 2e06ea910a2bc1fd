// Number formats and training precisions.
#pragma once

#include <cstdint>

namespace quadrille {

// What one matrix operand or tensor element is stored as.
enum class DataType : std::uint8_t { kFp32, kFp16, kBf16, kFp8, kFp4 };

// Bytes per element, without block scales. FP4 is half a byte, hence a ratio of bytes to elements.
[[nodiscard]] constexpr double BytesPerElement(DataType type) {
  switch (type) {
    case DataType::kFp32: return 4.0;
    case DataType::kFp16:
    case DataType::kBf16: return 2.0;
    case DataType::kFp8: return 1.0;
    case DataType::kFp4: return 0.5;
  }
  return 0.0;
}

// A training recipe: what the linear layers' GEMMs compute in, and how scales are found. Attention,
// norms, router, embedding and the LM head stay in 16 bits under every recipe (Transformer Engine's
// default).
enum class Recipe : std::uint8_t {
  kFp32,
  kFp16,
  kBf16,
  kFp8Delayed,  // per tensor, scale from the history of amax
  kFp8Current,  // per tensor, scale from this tensor's amax: one more pass over it
  kFp8Block,    // 1x128 activations, 128x128 weights
  kMxFp8,       // 1x32 blocks with shared exponent
  kNvFp4,       // 1x16 blocks
};

[[nodiscard]] constexpr DataType GemmDataType(Recipe recipe) {
  switch (recipe) {
    case Recipe::kFp32: return DataType::kFp32;
    case Recipe::kFp16: return DataType::kFp16;
    case Recipe::kBf16: return DataType::kBf16;
    case Recipe::kFp8Delayed:
    case Recipe::kFp8Current:
    case Recipe::kFp8Block:
    case Recipe::kMxFp8: return DataType::kFp8;
    case Recipe::kNvFp4: return DataType::kFp4;
  }
  return DataType::kBf16;
}

[[nodiscard]] constexpr bool IsLowPrecision(Recipe recipe) {
  return GemmDataType(recipe) == DataType::kFp8 || GemmDataType(recipe) == DataType::kFp4;
}

}  // namespace quadrille
