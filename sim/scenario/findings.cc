#include "sim/scenario/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace quadrille::scenario {
namespace {

// "a.b.c" -> "a.b"; "" when there is nothing above.
std::string_view Parent(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

void Findings::Error(SourcePosition position, std::string message, ProblemKind kind) {
  Error(Diagnostic{std::move(position), std::move(message), kind});
}

void Findings::Error(Diagnostic problem) { problems_.push_back(std::move(problem)); }

void Findings::ErrorAt(const std::string& path, std::string_view message, ProblemKind kind) {
  Error(Position(path), fmt::format("{}: {}", path, message), kind);
}

void Findings::WarnAt(const std::string& path, std::string_view message) {
  warnings_.push_back({Position(path), fmt::format("{}: {}", path, message)});
}

void Findings::Assume(std::string key, std::string value, std::string reason) {
  assumptions_.push_back({std::move(key), std::move(value), std::move(reason)});
}

void Findings::Place(const std::string& path, SourcePosition position) {
  places_.insert_or_assign(path, std::move(position));
}

void Findings::Fail(const std::string& path) { failed_.insert(path); }

SourcePosition Findings::Position(std::string_view path) const {
  for (;; path = Parent(path)) {
    if (const auto place = places_.find(path); place != places_.end()) return place->second;
    if (path.empty()) return {};
  }
}

bool Findings::Good(std::initializer_list<std::string_view> paths) const {
  for (std::string_view path : paths) {
    for (; !path.empty(); path = Parent(path)) {
      if (failed_.count(path) != 0) return false;
    }
  }
  return true;
}

Diagnostics Findings::TakeProblems() {
  std::vector<std::string> files;
  const auto rank = [&](const std::string& file) {
    const auto found = std::find(files.begin(), files.end(), file);
    if (found != files.end()) return found - files.begin();
    files.push_back(file);
    return static_cast<std::ptrdiff_t>(files.size()) - 1;
  };
  for (const Diagnostic& problem : problems_) (void)rank(problem.position.file);
  std::stable_sort(problems_.begin(), problems_.end(), [&](const auto& a, const auto& b) {
    return std::tuple(rank(a.position.file), a.position.line, a.position.column) <
           std::tuple(rank(b.position.file), b.position.line, b.position.column);
  });
  return std::move(problems_);
}

}  // namespace quadrille::scenario
