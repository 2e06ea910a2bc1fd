#include "tools/validate/kernel_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/base/time.h"
#include "sim/scenario/names.h"

namespace quadrille::tools {
namespace {

// A constant of a struct T: a number, a time or a rate.
template <typename T>
struct Field {
  const char* key;
  double T::*number;
  Duration T::*time;
  double lower;
  double upper;
  bool logarithmic = false;
};

using compute::GemmConstants;
constexpr Field<GemmConstants> kGemmFields[] = {
    {"peak_share", &GemmConstants::peak_share, nullptr, 0.3, 0.9},
    {"tile_overhead", &GemmConstants::tile_overhead, nullptr, 0.0, 2.0},
    {"prologue_k", &GemmConstants::prologue_k, nullptr, 0.0, 1000.0},
    {"partial_wave", &GemmConstants::partial_wave, nullptr, 0.0, 1.0},
    {"launch", nullptr, &GemmConstants::launch, 1.0, 8.0},
    {"bandwidth_share", &GemmConstants::bandwidth_share, nullptr, 0.2, 0.95},
    {"sustained_droop", &GemmConstants::sustained_droop, nullptr, 0.0, 0.6},
    {"droop_onset", nullptr, &GemmConstants::droop_onset, 300.0, 20'000.0, true},
    {"burst_dip", &GemmConstants::burst_dip, nullptr, 0.0, 0.19},
    {"burst_dip_at", nullptr, &GemmConstants::burst_dip_at, 50.0, 1000.0, true},
    {"operand_cast_launch", nullptr, &GemmConstants::operand_cast_launch, 0.0, 20.0},
    {"operand_cast_bytes", &GemmConstants::operand_cast_bytes, nullptr, 0.0, 12.0},
};

using compute::AttentionConstants;
constexpr Field<AttentionConstants> kAttentionFields[] = {
    {"half_length", &AttentionConstants::half_length, nullptr, 0.0, 2000.0},
    {"tail", &AttentionConstants::tail, nullptr, 0.0, 1.0},
    {"launch", nullptr, &AttentionConstants::launch, 0.0, 40.0},
    {"cache_write_share", &AttentionConstants::cache_write_share, nullptr, 0.05, 1.0},
};

using compute::MeasuredMemoryBound;
constexpr Field<MeasuredMemoryBound> kMemoryFields[] = {
    {"launch", nullptr, &MeasuredMemoryBound::launch, 0.0, 60.0},
    {"bandwidth_share", &MeasuredMemoryBound::bandwidth_share, nullptr, 0.05, 3.0, true},
    {"cached_share", &MeasuredMemoryBound::cached_share, nullptr, 0.05, 5.0, true},
    {"reread", &MeasuredMemoryBound::reread, nullptr, 0.0, 3.0},
};

// Rows that determine a section's level and little more, and all of its constants.
constexpr std::size_t kSomeRows = 8;
constexpr std::size_t kManyRows = 30;
constexpr std::size_t kAttentionRows = 12;  // an entry has five constants

double Microseconds(Duration time) { return ToSeconds(time) * 1e6; }

// `part` finds the struct that holds the field.
template <typename T, typename Part>
KernelConstant ConstantOf(const Field<T>& field, Part part) {
  KernelConstant constant{.key = field.key,
                          .unit = field.time != nullptr ? "us" : "",
                          .lower = field.lower,
                          .upper = field.upper,
                          .logarithmic = field.logarithmic};
  constant.read = [field, part](const compute::GpuEfficiency& efficiency) {
    // Reading changes nothing; one accessor serves both.
    const T& holder = part(const_cast<compute::GpuEfficiency&>(efficiency));
    return field.time != nullptr ? Microseconds(holder.*field.time) : holder.*field.number;
  };
  constant.write = [field, part](double value, compute::GpuEfficiency* efficiency) {
    T& holder = part(*efficiency);
    if (field.time != nullptr) {
      holder.*field.time = FromSeconds(value * 1e-6);
    } else {
      holder.*field.number = value;
    }
  };
  return constant;
}

const char* KeyOf(GemmSection section) {
  switch (section) {
    case GemmSection::k16Bit: break;
    case GemmSection::kFp8: return "gemm_fp8";
    case GemmSection::kFp8Block: return "gemm_fp8_block";
    case GemmSection::kFp4: return "gemm_fp4";
  }
  return "gemm_16bit";
}

// Why a constant of GEMMs is not fitted to these rows.
std::string HeldOfGemm(const std::string& key, GemmSection section,
                       const std::vector<const MeasuredKernel*>& rows,
                       const FreedConstants& freed) {
  const auto with_cast = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const MeasuredKernel* row) {
        return std::get<GemmQuestion>(row->question).conditions.includes_operand_cast;
      }));
  const std::set<std::string> level = {"peak_share", "prologue_k", "bandwidth_share", "launch"};
  if (key == "sustained_droop" && !freed.sustained_droop) return kFollowsSteps;
  if (rows.size() < kManyRows && !level.contains(key)) return kFewRows;
  if (key == "burst_dip_at" && section != GemmSection::k16Bit) return "the chip's: that of 16 bits";
  if (key.rfind("operand_cast", 0) == 0 && with_cast == 0) return "no row includes the cast";
  // A few rows without it, as best ones of a search are, do not tell the two apart.
  if (key == "launch" && with_cast > 0 && rows.size() - with_cast < kSomeRows)
    return "measured with that of the cast only";
  return "";
}

KernelSection GemmSectionOf(GemmSection which, std::vector<const MeasuredKernel*> rows,
                            const FreedConstants& freed) {
  KernelSection section{.key = KeyOf(which), .name = KeyOf(which), .rows = std::move(rows)};
  for (const Field<GemmConstants>& field : kGemmFields) {
    KernelConstant constant =
        ConstantOf(field, [which](compute::GpuEfficiency& efficiency) -> GemmConstants& {
          return SectionOf(efficiency, which);
        });
    constant.held = HeldOfGemm(constant.key, which, section.rows, freed);
    section.constants.push_back(std::move(constant));
  }
  return section;
}

std::string NameOf(const compute::GpuEfficiency& efficiency, bool inference, std::size_t entry) {
  const AttentionConstants& c =
      inference ? efficiency.inference_attention[entry].constants : efficiency.attention[entry];
  std::string kernel = inference ? efficiency.inference_attention[entry].kernel : std::string();
  for (const auto& backend : scenario::kAttentionBackends) {
    if (!inference && backend.value == c.backend) kernel = backend.name;
  }
  return fmt::format("{} {} {}{}", kernel, c.head_dim, c.causal ? "causal" : "unmasked",
                     c.backward ? ", backward" : "");
}

void AddAttentionConstants(bool inference, std::size_t entry, bool named,
                           const compute::GpuEfficiency& efficiency, KernelSection* section) {
  const std::vector<const MeasuredKernel*>& rows = section->rows;
  const auto part = [inference, entry](compute::GpuEfficiency& e) -> AttentionConstants& {
    return inference ? e.inference_attention[entry].constants : e.attention[entry];
  };
  const std::string head = named ? NameOf(efficiency, inference, entry) + ": " : "";
  const auto of_entry = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const MeasuredKernel* row) {
        const auto& passes = std::get<AttentionQuestion>(row->question).passes;
        return passes.size() == 1 && passes[0].inference == inference && passes[0].entry == entry;
      }));
  const bool cache_write = std::any_of(rows.begin(), rows.end(), [](const MeasuredKernel* row) {
    return std::get<AttentionQuestion>(row->question).conditions.includes_cache_write;
  });
  std::set<std::int64_t> lengths;
  for (const MeasuredKernel* row : rows) {
    for (const auto& pass : std::get<AttentionQuestion>(row->question).passes) {
      if (pass.inference == inference && pass.entry == entry) {
        lengths.insert(pass.shape.query_length);
      }
    }
  }
  const double peak = rows.front()->hardware->gpu.peak_16bit.value() * 1e-12;
  KernelConstant rate{.key = head + "asymptote",
                      .unit = "TFLOP/s",
                      .lower = peak / 10.0,
                      .upper = peak,
                      .logarithmic = true};
  rate.read = [part](const compute::GpuEfficiency& e) {
    return part(const_cast<compute::GpuEfficiency&>(e)).asymptote.value() * 1e-12;
  };
  rate.write = [part](double value, compute::GpuEfficiency* e) {
    part(*e).asymptote = FlopsPerSecond(value * 1e12);
  };
  section->constants.push_back(std::move(rate));
  for (const Field<AttentionConstants>& field : kAttentionFields) {
    KernelConstant constant = ConstantOf(field, part);
    if (constant.key == "half_length") {
      if (lengths.size() < 3) constant.held = "too few lengths";
    } else if (of_entry < kAttentionRows) {
      constant.held = kFewRows;
    }
    if (constant.key == "cache_write_share" && !cache_write) continue;
    constant.key = head + constant.key;
    section->constants.push_back(std::move(constant));
  }
}

// Entries that one row needs together (forward and backward measured as one) are fitted together.
void AddAttentionSections(const std::vector<const MeasuredKernel*>& rows,
                          std::vector<KernelSection>* sections) {
  using Entry = std::pair<bool, std::size_t>;
  std::map<Entry, Entry> parent;
  const std::function<Entry(Entry)> root = [&](Entry entry) {
    const Entry up = parent.emplace(entry, entry).first->second;
    return up == entry ? entry : root(up);
  };
  for (const MeasuredKernel* row : rows) {
    const auto& passes = std::get<AttentionQuestion>(row->question).passes;
    const Entry first = root({passes.front().inference, passes.front().entry});
    for (const auto& pass : passes) parent[root({pass.inference, pass.entry})] = first;
  }
  std::map<Entry, std::vector<const MeasuredKernel*>> rows_of;
  for (const MeasuredKernel* row : rows) {
    const auto& pass = std::get<AttentionQuestion>(row->question).passes.front();
    rows_of[root({pass.inference, pass.entry})].push_back(row);
  }
  for (auto& [head, of_head] : rows_of) {
    const compute::GpuEfficiency& efficiency = of_head.front()->hardware->efficiency;
    KernelSection section{.key = head.first ? "inference_attention" : "attention",
                          .rows = std::move(of_head)};
    for (const auto& [entry, up] : parent) {
      if (root(entry) == head) section.entries.push_back(entry.second);
    }
    section.name = "attention";
    for (const std::size_t entry : section.entries) {
      section.name +=
          (section.name == "attention" ? " " : " and ") + NameOf(efficiency, head.first, entry);
      AddAttentionConstants(head.first, entry, section.entries.size() > 1, efficiency, &section);
    }
    sections->push_back(std::move(section));
  }
}

void AddMemorySections(const std::vector<const MeasuredKernel*>& rows,
                       std::vector<KernelSection>* sections) {
  std::map<std::size_t, std::vector<const MeasuredKernel*>> rows_of;
  for (const MeasuredKernel* row : rows) {
    rows_of[std::get<MemoryBoundQuestion>(row->question).entry].push_back(row);
  }
  for (auto& [entry, of_entry] : rows_of) {
    const MeasuredMemoryBound& kernel =
        of_entry.front()->hardware->efficiency.measured_memory_bound[entry];
    KernelSection section{.key = "measured_memory_bound",
                          .name = kernel.kernel,
                          .entries = {entry},
                          .rows = std::move(of_entry)};
    for (const Field<MeasuredMemoryBound>& field : kMemoryFields) {
      const std::string key = field.key;
      if (key == "cached_share" && kernel.cached_share <= 0.0) continue;
      if (key == "reread" && kernel.row_kept.value() <= 0) continue;
      section.constants.push_back(
          ConstantOf(field, [entry = entry](compute::GpuEfficiency& e) -> MeasuredMemoryBound& {
            return e.measured_memory_bound[entry];
          }));
    }
    sections->push_back(std::move(section));
  }
}

}  // namespace

std::vector<std::string> KernelConstantKeys() {
  std::set<std::string> keys = {"asymptote"};
  for (const auto& field : kGemmFields) keys.insert(field.key);
  for (const auto& field : kAttentionFields) keys.insert(field.key);
  for (const auto& field : kMemoryFields) keys.insert(field.key);
  return {keys.begin(), keys.end()};
}

std::vector<KernelSection> KernelSectionsOf(const std::vector<const MeasuredKernel*>& rows,
                                            const FreedConstants& freed) {
  std::map<GemmSection, std::vector<const MeasuredKernel*>> gemms;
  std::vector<const MeasuredKernel*> attention;
  std::vector<const MeasuredKernel*> memory;
  for (const MeasuredKernel* row : rows) {
    if (const auto* gemm = std::get_if<GemmQuestion>(&row->question)) {
      gemms[gemm->section].push_back(row);
    } else if (std::holds_alternative<AttentionQuestion>(row->question)) {
      attention.push_back(row);
    } else {
      memory.push_back(row);
    }
  }
  std::vector<KernelSection> sections;
  sections.reserve(gemms.size());
  for (auto& [which, of_section] : gemms) {
    sections.push_back(GemmSectionOf(which, std::move(of_section), freed));
  }
  if (!attention.empty()) AddAttentionSections(attention, &sections);
  AddMemorySections(memory, &sections);
  for (KernelSection& section : sections) {
    const std::size_t least = section.key == "attention" ? 3 : kSomeRows;
    if (section.rows.size() >= least) continue;
    for (KernelConstant& constant : section.constants) constant.held = kFewRows;
  }
  return sections;
}

}  // namespace quadrille::tools
