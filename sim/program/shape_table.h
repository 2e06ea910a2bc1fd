// The distinct transfers of a program.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/network/transfer.h"

namespace quadrille::program {

// Deduplicates transfer shapes over all ranks.
class ShapeTable {
 public:
  explicit ShapeTable(std::vector<network::TransferShape>& shapes) : shapes_(shapes) {}
  std::uint32_t IndexOf(const network::TransferShape& shape);

 private:
  using Key = std::tuple<int, int, std::int64_t, double, double, bool, std::int32_t, double>;
  std::vector<network::TransferShape>& shapes_;
  std::map<Key, std::uint32_t> index_;
};

}  // namespace quadrille::program
