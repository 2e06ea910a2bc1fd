#include "tools/validate/software_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "sim/base/nearest.h"
#include "sim/scenario/findings.h"
#include "sim/scenario/library.h"
#include "sim/scenario/yaml_reader.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::tools {
namespace fs = std::filesystem;
using scenario::MapReader;

Result<std::vector<SoftwareStack>> LoadStacks(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  if (error || files.empty()) return Error("no software stacks there", {directory, 0, 0});
  std::sort(files.begin(), files.end());
  std::vector<SoftwareStack> stacks;
  Diagnostics problems;
  for (const std::string& file : files) {
    const Result<std::string> text = scenario::ReadTextFile(file);
    if (!text) return tl::unexpected(text.error());
    scenario::Findings findings;
    const auto tree = scenario::ParseYaml(*text, file, findings.problems());
    SoftwareStack stack;
    if (tree) scenario::ReadStack(MapReader(&*tree, "", &findings), &stack);
    if (stack.name != scenario::Stem(file)) {
      findings.Error({file, 1, 0}, "name is not the name of the file");
    }
    stacks.push_back(std::move(stack));
    const Diagnostics found = findings.TakeProblems();
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return stacks;
}

const SoftwareStack* FindStack(const std::vector<SoftwareStack>& stacks, std::string_view name) {
  for (const SoftwareStack& stack : stacks) {
    if (stack.name == name) return &stack;
  }
  return nullptr;
}

std::string NearestStack(const std::vector<SoftwareStack>& stacks, std::string_view name) {
  std::vector<std::string_view> names;
  for (const SoftwareStack& stack : stacks) names.push_back(stack.name);
  const std::string_view nearest = Nearest(name, names);
  return nearest.empty() ? "" : fmt::format("; nearest: '{}'", nearest);
}

const SoftwareStack* StackOf(const std::vector<SoftwareStack>& stacks, std::string_view framework,
                             std::string_view release) {
  const double number = ReleaseNumber(release);
  const SoftwareStack* best = nullptr;
  std::size_t longest = 0;
  for (const SoftwareStack& stack : stacks) {
    for (const FrameworkMatch& match : stack.frameworks) {
      if (framework.substr(0, match.framework.size()) != match.framework) continue;
      if (match.since > 0.0 && number < match.since) continue;
      if (match.before > 0.0 && number >= match.before) continue;
      if (match.framework.size() <= longest) continue;
      longest = match.framework.size();
      best = &stack;
    }
  }
  return best;
}

double ReleaseNumber(std::string_view release) {
  const auto digit = [&](std::size_t i) {
    return i < release.size() && std::isdigit(static_cast<unsigned char>(release[i])) != 0;
  };
  std::size_t i = 0;
  while (i < release.size() && !digit(i)) ++i;
  double number = 0.0;
  for (; digit(i); ++i) number = number * 10.0 + (release[i] - '0');
  if (i >= release.size() || (release[i] != '.' && release[i] != '-')) return number;
  double unit = 0.1;
  for (++i; digit(i); ++i, unit /= 10.0) number += unit * (release[i] - '0');
  return number;
}

}  // namespace quadrille::tools
