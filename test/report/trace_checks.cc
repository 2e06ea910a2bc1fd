#include "trace_checks.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace quadrille::report {
namespace {

using nlohmann::json;

struct Slice {
  std::int64_t begin;  // nanoseconds
  std::int64_t end;
};

std::int64_t Nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000.0);
}

using Thread = std::pair<std::int64_t, std::int64_t>;
using Slices = std::map<Thread, std::vector<Slice>>;

void CheckNesting(Slices& slices, std::vector<std::string>& breaches) {
  for (auto& [thread, list] : slices) {
    std::sort(list.begin(), list.end(), [](const Slice& a, const Slice& b) {
      return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
    });
    std::vector<std::int64_t> open;
    for (const Slice& slice : list) {
      while (!open.empty() && open.back() <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back()) {
        breaches.push_back(fmt::format("slice at {} ns on pid {} tid {} overlaps partially",
                                       slice.begin, thread.first, thread.second));
      }
      open.push_back(slice.end);
    }
  }
}

}  // namespace

std::vector<std::string> CheckTrace(const json& trace) {
  std::vector<std::string> breaches;
  Slices slices;
  std::map<std::tuple<std::int64_t, std::string, std::string>, std::vector<const json*>> flows;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    const std::int64_t process = event.at("pid");
    const std::int64_t thread = event.at("tid");
    if (process < 1 || thread < 1)
      breaches.push_back("pid and tid must be at least 1: " + event.dump());
    if (phase == "X") {
      const std::int64_t begin = Nanoseconds(event.at("ts"));
      const std::int64_t duration = Nanoseconds(event.at("dur"));
      if (duration < 0) breaches.push_back("a slice of negative duration: " + event.dump());
      slices[{process, thread}].push_back({begin, begin + duration});
    } else if (phase == "s" || phase == "f") {
      flows[{event.at("id"), event.at("cat"), event.at("name")}].push_back(&event);
      if (phase == "f" && event.value("bp", "") != "e")
        breaches.push_back("a flow end without bp e");
    }
  }
  CheckNesting(slices, breaches);
  for (const auto& [key, ends] : flows) {
    if (ends.size() != 2 || ends[0]->at("ph") != "s" || ends[1]->at("ph") != "f") {
      breaches.push_back(fmt::format("flow {} has {} ends", std::get<0>(key), ends.size()));
      continue;
    }
    if (Nanoseconds(ends[0]->at("ts")) > Nanoseconds(ends[1]->at("ts")))
      breaches.push_back(fmt::format("flow {} goes back in time", std::get<0>(key)));
    for (const json* end : ends) {
      const std::int64_t at = Nanoseconds(end->at("ts"));
      const std::vector<Slice>& list = slices[{end->at("pid"), end->at("tid")}];
      const bool bound = std::any_of(list.begin(), list.end(),
                                     [&](const Slice& s) { return s.begin <= at && at < s.end; });
      if (!bound)
        breaches.push_back(fmt::format("flow {} binds to no slice at {} ns", std::get<0>(key), at));
    }
  }
  return breaches;
}

std::string ReadMaybeCompressed(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  std::string content;
  char block[4096];
  for (int read = gzread(file, block, sizeof block); read > 0;
       read = gzread(file, block, sizeof block)) {
    content.append(block, static_cast<std::size_t>(read));
  }
  gzclose(file);
  return content;
}

}  // namespace quadrille::report
