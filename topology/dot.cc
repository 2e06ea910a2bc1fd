#include "topology/dot.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace quadrille::topology {
namespace {

constexpr std::int32_t kMaxGpusDrawn = 32;
constexpr std::int32_t kMaxNodesDrawn = 256;

const char* Style(VertexKind kind) {
  switch (kind) {
    case VertexKind::kGpu: return "shape=box, style=filled, fillcolor=\"#cfe8cf\"";
    case VertexKind::kNvSwitch:
    case VertexKind::kHost: return "shape=hexagon";
    case VertexKind::kNic: return "shape=box, style=rounded";
    case VertexKind::kLeaf: return "shape=ellipse, style=filled, fillcolor=\"#d5e3f5\"";
    case VertexKind::kSpine: return "shape=ellipse, style=filled, fillcolor=\"#f5e6c8\"";
    case VertexKind::kCore: return "shape=ellipse, style=filled, fillcolor=\"#f0cfcf\"";
  }
  return "";
}

// Inside double quotes; an edge list may name its switches as it likes.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

class DotWriter {
 public:
  DotWriter(const Cluster& cluster, DotDetail detail) : cluster_(cluster), detail_(detail) {
    if (detail_ != DotDetail::kAutomatic) return;
    detail_ = cluster.gpu_count() <= kMaxGpusDrawn     ? DotDetail::kGpus
              : cluster.node_count() <= kMaxNodesDrawn ? DotDetail::kNodes
                                                       : DotDetail::kSwitches;
  }

  void Write(std::ostream& out) {
    fmt::print(out, "graph {} {{\n  rankdir=BT;\n", Quoted(cluster_.spec().name));
    WriteVertices(out);
    WriteEdges(out);
    out << "}\n";
  }

 private:
  [[nodiscard]] bool IsInNode(VertexId vertex) const {
    return cluster_.kind(vertex) < VertexKind::kLeaf;
  }
  // What a vertex is drawn as; empty: not at all.
  [[nodiscard]] std::string DrawnAs(VertexId vertex) const {
    if (detail_ == DotDetail::kGpus || !IsInNode(vertex)) return cluster_.NameOf(vertex);
    if (detail_ == DotDetail::kSwitches) return "";
    const std::string name = cluster_.NameOf(vertex);
    return name.substr(0, name.find('/'));
  }

  void WriteVertices(std::ostream& out) {
    std::map<LeafId, std::int32_t> gpus_behind;
    if (detail_ == DotDetail::kSwitches && cluster_.has_nics()) {
      for (std::int32_t g = 0; g < cluster_.gpu_count(); ++g) {
        for (std::int32_t plane = 0; plane < cluster_.shape().planes; ++plane) {
          ++gpus_behind[cluster_.leaf_of(GpuId(g), plane)];
        }
      }
    }
    std::string last;
    for (std::int32_t v = 0; v < cluster_.vertex_count(); ++v) {
      const VertexId vertex(v);
      const std::string name = DrawnAs(vertex);
      if (name.empty() || name == last) continue;
      last = name;
      std::string label = name;
      if (detail_ == DotDetail::kNodes && IsInNode(vertex)) {
        if (cluster_.kind(vertex) == VertexKind::kNic) continue;  // drawn with its GPUs
        if (cluster_.kind(vertex) == VertexKind::kNvSwitch &&
            cluster_.domain_gpus() == cluster_.spec().gpus_per_node) {
          continue;
        }
        if (cluster_.kind(vertex) == VertexKind::kHost) continue;
        if (cluster_.kind(vertex) == VertexKind::kGpu) {
          label += fmt::format("\\n{} GPUs", cluster_.spec().gpus_per_node);
        }
      } else if (cluster_.multiplicity(vertex) > 1) {
        label += fmt::format(" x{}", cluster_.multiplicity(vertex));
      }
      if (cluster_.kind(vertex) == VertexKind::kLeaf && !gpus_behind.empty()) {
        label += fmt::format("\\n{} GPUs", gpus_behind[LeafId(cluster_.index_of(vertex))]);
      }
      fmt::print(out, "  {} [{}{}];\n", Quoted(name),
                 label == name ? "" : "label=\"" + label + "\", ", Style(cluster_.kind(vertex)));
    }
  }

  void WriteEdges(std::ostream& out) {
    struct Bundle {
      double capacity = 0.0;
      std::int32_t cables = 0;
    };
    std::map<std::pair<std::string, std::string>, std::size_t> index;
    std::vector<std::pair<std::pair<std::string, std::string>, Bundle>> bundles;
    for (std::size_t i = 0; i < cluster_.links().size(); i += 2) {
      const Link& link = cluster_.links()[i];
      std::pair<std::string, std::string> ends = {DrawnAs(link.from), DrawnAs(link.to)};
      if (ends.first.empty() || ends.second.empty() || ends.first == ends.second) continue;
      const auto [it, added] = index.emplace(ends, bundles.size());
      if (added) bundles.emplace_back(std::move(ends), Bundle{});
      bundles[it->second].second.capacity += link.capacity.value();
      bundles[it->second].second.cables += link.cables;
    }
    for (const auto& [ends, bundle] : bundles) {
      fmt::print(out, "  {} -- {} [label=\"{:.4g} GB/s{}\"];\n", Quoted(ends.first),
                 Quoted(ends.second), bundle.capacity / 1e9,
                 bundle.cables > 1 ? fmt::format(" x{}", bundle.cables) : "");
    }
  }

  const Cluster& cluster_;
  DotDetail detail_;
};

}  // namespace

void WriteDot(const Cluster& cluster, std::ostream& out, DotDetail detail) {
  DotWriter(cluster, detail).Write(out);
}

}  // namespace quadrille::topology
