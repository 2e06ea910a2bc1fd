#include "tools/validate/collective_constant_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quadrille::tools {
namespace {

using network::CollectiveConstants;
using network::Law;
using Unit = CollectiveConstant::Unit;

double Plain(Duration value) { return ToSeconds(value); }
double Plain(BytesPerSecond value) { return value.value(); }
double Plain(Bytes value) { return static_cast<double>(value.value()); }
double Plain(double value) { return value; }

void Assign(Duration* to, double value) { *to = FromSeconds(value); }
void Assign(BytesPerSecond* to, double value) { *to = BytesPerSecond(value); }
void Assign(Bytes* to, double value) { *to = Bytes(std::llround(value)); }
void Assign(double* to, double value) { *to = value; }

template <auto member>
constexpr CollectiveConstant Of(std::string_view key, Unit unit, double lower, double upper) {
  return {key,
          unit,
          lower,
          upper,
          [](const CollectiveConstants& c) { return Plain(c.*member); },
          [](CollectiveConstants* c, double value) { Assign(&(c->*member), value); }};
}

template <auto law, auto field>
constexpr CollectiveConstant Of(std::string_view key, Unit unit, double lower, double upper) {
  return {key,
          unit,
          lower,
          upper,
          [](const CollectiveConstants& c) { return Plain(c.*law.*field); },
          [](CollectiveConstants* c, double value) { Assign(&(c->*law.*field), value); }};
}

using C = CollectiveConstants;

// Bounds are what any published machine could have: a launch takes a microsecond and no collective
// more than milliseconds to begin; links carry from 1 GB/s to twice NVLink 5's 900 GB/s.
constexpr CollectiveConstant kConstants[] = {
    Of<&C::host_latency>("host_latency", Unit::kTime, -30e-6, 300e-6),
    Of<&C::network_latency>("network_latency", Unit::kTime, 0.0, 5e-3),
    Of<&C::ring_nic_efficiency>("ring_nic_efficiency", Unit::kShare, 0.05, 1.0),
    Of<&C::tree_nic_efficiency>("tree_nic_efficiency", Unit::kShare, 0.05, 1.0),
    Of<&C::network_gamma_per_sqrt_megabyte>("network_gamma_per_sqrt_megabyte", Unit::kTime, 0.0,
                                            300e-6),
    Of<&C::all_to_all_nic_efficiency>("all_to_all_nic_efficiency", Unit::kShare, 0.05, 1.0),
    Of<&C::network_send_receive, &Law::bandwidth>("network_send_receive.bandwidth",
                                                  Unit::kBandwidth, 1e9, 400e9),
    Of<&C::network_send_receive, &Law::alpha>("network_send_receive.alpha", Unit::kTime, 1e-6,
                                              5e-3),
    Of<&C::nvlink_all_reduce, &Law::bandwidth>("nvlink_all_reduce.bandwidth", Unit::kBandwidth, 1e9,
                                               1800e9),
    Of<&C::nvlink_all_reduce, &Law::alpha>("nvlink_all_reduce.alpha", Unit::kTime, 1e-6, 1e-3),
    Of<&C::nvlink_all_reduce, &Law::gamma_per_sqrt_megabyte>(
        "nvlink_all_reduce.gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 100e-6),
    Of<&C::nvlink_all_gather, &Law::bandwidth>("nvlink_all_gather.bandwidth", Unit::kBandwidth, 1e9,
                                               900e9),
    Of<&C::nvlink_all_gather, &Law::alpha>("nvlink_all_gather.alpha", Unit::kTime, 1e-6, 1e-3),
    Of<&C::nvlink_all_gather, &Law::gamma_per_sqrt_megabyte>(
        "nvlink_all_gather.gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 100e-6),
    Of<&C::nvlink_reduce_scatter, &Law::bandwidth>("nvlink_reduce_scatter.bandwidth",
                                                   Unit::kBandwidth, 1e9, 900e9),
    Of<&C::nvlink_reduce_scatter, &Law::alpha>("nvlink_reduce_scatter.alpha", Unit::kTime, 1e-6,
                                               1e-3),
    Of<&C::nvlink_reduce_scatter, &Law::gamma_per_sqrt_megabyte>(
        "nvlink_reduce_scatter.gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 100e-6),
    Of<&C::nvlink_all_to_all, &Law::bandwidth>("nvlink_all_to_all.bandwidth", Unit::kBandwidth, 1e9,
                                               900e9),
    Of<&C::nvlink_all_to_all, &Law::alpha>("nvlink_all_to_all.alpha", Unit::kTime, 1e-6, 1e-3),
    Of<&C::nvlink_all_to_all, &Law::gamma_per_sqrt_megabyte>(
        "nvlink_all_to_all.gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 100e-6),
    Of<&C::nvlink_send_receive, &Law::bandwidth>("nvlink_send_receive.bandwidth", Unit::kBandwidth,
                                                 1e9, 900e9),
    Of<&C::nvlink_send_receive, &Law::alpha>("nvlink_send_receive.alpha", Unit::kTime, 1e-6, 1e-3),
    Of<&C::nvlink_send_receive, &Law::gamma_per_sqrt_megabyte>(
        "nvlink_send_receive.gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 100e-6),
    Of<&C::nvlink_send_receive_slow>("nvlink_send_receive_slow", Unit::kBandwidth, 1e9, 900e9),
    Of<&C::tree_gamma_per_level>("tree_gamma_per_level", Unit::kTime, 0.0, 300e-6),
    Of<&C::ring_base>("ring_base", Unit::kTime, 0.0, 5e-3),
    Of<&C::ring_gamma_per_sqrt_megabyte>("ring_gamma_per_sqrt_megabyte", Unit::kTime, 0.0, 300e-6),
    Of<&C::network_minimum>("network_minimum", Unit::kTime, 0.0, 20e-3),
    Of<&C::all_to_all_peer>("all_to_all_peer", Unit::kTime, 0.0, 50e-6),
    Of<&C::ramp_ends_at>("ramp_ends_at", Unit::kBytes, 10e6, 10e9),
    Of<&C::domain_network_limit>("domain_network_limit", Unit::kBandwidth, 1e9, 10e12),
};

// Multiplicative steps for what lies over decades; a time that may be zero has none.
bool IsLogarithmic(const CollectiveConstant& constant) {
  return constant.unit == Unit::kBandwidth || constant.unit == Unit::kBytes;
}

}  // namespace

FitVariable CollectiveConstant::Variable(double value) const {
  FitVariable variable;
  variable.lower = lower;
  variable.upper = upper;
  variable.start = std::clamp(value, lower, upper);
  variable.logarithmic = IsLogarithmic(*this);
  switch (unit) {
    case Unit::kTime: variable.step = std::max(0.01 * upper, 0.2 * std::abs(variable.start)); break;
    case Unit::kBandwidth:
    case Unit::kBytes: variable.step = 0.1; break;
    case Unit::kShare: variable.step = 0.05; break;
  }
  return variable;
}

std::string CollectiveConstant::Text(double value) const {
  switch (unit) {
    case Unit::kTime: return fmt::format("{:.4g} us", std::round(value * 1e8) * 1e-2);
    case Unit::kBandwidth: return fmt::format("{:.4g} GB/s", value * 1e-9);
    case Unit::kBytes: return fmt::format("{:.4g} MB", value * 1e-6);
    case Unit::kShare: return fmt::format("{:.3f}", value);
  }
  return {};
}

std::span<const CollectiveConstant> AllCollectiveConstants() { return kConstants; }

bool Names(std::string_view name, const CollectiveConstant& constant) {
  return constant.key == name ||
         (constant.key.starts_with(name) && constant.key.substr(name.size()).starts_with('.'));
}

}  // namespace quadrille::tools
