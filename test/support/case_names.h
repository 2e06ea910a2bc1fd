// Names of parameterised tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace quadrille {

// The parameter itself, a file's or a run's name, with '_' for what GoogleTest takes in no name.
inline std::string NameOfCase(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace quadrille
