#include "tests/rows/row_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "executor/rows/externals.h"

namespace mscclc {
namespace {

/// A number of some binary digits between -1 and 1: sums of a few are exact in f32.
double value_at(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t x = (a * 1000003 + b * 10007 + c) * 0x9e3779b97f4a7c15u;
  return static_cast<double>(static_cast<int64_t>(x >> 54) - 512) / 512;
}

double e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return bits >> 7 != 0 ? -size : size;
}

double f32_at(const uint8_t* bytes, uint64_t i) {
  float value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

constexpr double kEps = 0.001, kLeast = 0.0001, kScale = 0.03125;

/// Columns that share a scale.
uint32_t group_of(const std::string& function, uint32_t columns) {
  return function.ends_with("_per_group") ? 128 : function.ends_with("_mxfp8") ? 32 : columns;
}

std::vector<double> scales_of(const std::string& function, const std::vector<double>& row) {
  if (function.ends_with("_quantize")) return {kScale};
  const auto columns = static_cast<uint32_t>(row.size());
  const uint32_t group = group_of(function, columns);
  std::vector<double> scales;
  for (uint32_t first = 0; first < columns; first += group) {
    double largest = 0;
    for (uint32_t c = first; c < std::min(first + group, columns); ++c) {
      largest = std::max(largest, std::abs(row[c]));
    }
    scales.push_back(group == 32        ? std::exp2(std::ceil(std::log2(largest / 448)))
                     : group == columns ? std::max(largest / 448, kLeast)
                                        : largest / 448);
  }
  return scales;
}

}  // namespace

RowReference::RowReference(const Program& program, uint32_t rows, RowSteps steps)
    : program_(program),
      rows_(rows),
      steps_(steps),
      cluster_(program),
      outputs_(program.contract.ranks) {}

double RowReference::input(uint32_t rank, uint64_t element) const {
  return value_at(1, rank, element);
}

double RowReference::external(const std::string& name, uint32_t rank, uint64_t row,
                              uint32_t column) const {
  if (name == "eps") return kEps;
  if (name == "least") return kLeast;
  if (name == "scale") return kScale;
  const bool sharded = std::ranges::any_of(program_.externals, [&](const rows::External& e) {
    return e.name == name && e.holding != rows::Holding::local;
  });
  return value_at(name[0], name == "residual" ? row : 0, column) + (sharded ? 0.0 : 0.25 * rank);
}

/// Of the whole message: the rows of a reduce-scatter's output are those of its rank's part.
uint64_t RowReference::first_row(uint32_t rank) const {
  return program_.contract.kind == CollectiveKind::reducescatter
             ? uint64_t{rank} * (rows_ / program_.contract.ranks)
             : 0;
}

/// What the output (""), or an external that is written, holds of row `row` of a rank's output.
std::vector<double> RowReference::wanted(const std::string& name, uint32_t rank,
                                         uint64_t row) const {
  const std::string& function = program_.functions[program_.contract.then].name;
  const uint32_t n = columns();
  std::vector<double> x(n), norm(n);
  for (uint32_t c = 0; c < n; ++c) {
    for (uint32_t r = 0; r < program_.contract.ranks; ++r) {
      x[c] += input(r, (first_row(rank) + row) * n + c);
    }
  }
  const auto ex = [&](const char* of, uint32_t c) { return external(of, rank, row, c); };
  if (function == "add_bias") {
    for (uint32_t c = 0; c < n; ++c) x[c] += ex("bias", c);
    return x;
  }
  if (function == "layernorm") {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    double variance = 0;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    for (uint32_t c = 0; c < n; ++c) {
      x[c] = (x[c] - mean) / std::sqrt(variance + kEps) * ex("weight", c) + ex("bias", c);
    }
    return x;
  }
  double squares = 0;
  const double one = function == "add_gemma_rmsnorm" ? 1 : 0;
  for (uint32_t c = 0; c < n; ++c) {
    if (function != "rmsnorm") x[c] += ex("residual", c);
    squares += x[c] * x[c] / n;
  }
  for (uint32_t c = 0; c < n; ++c) {
    norm[c] = x[c] / std::sqrt(squares + kEps) * (one + ex("weight", c));
  }
  const bool gives_norm = function.ends_with("rmsnorm") || function.ends_with("_and_quantize");
  if (name == "residual" || (name.empty() && !gives_norm)) return x;
  if (name.empty()) return norm;
  const std::vector<double> scales = scales_of(function, norm);
  if (name == "scale") return scales;
  const uint32_t group = group_of(function, n);
  for (uint32_t c = 0; c < n; ++c) norm[c] = std::clamp(norm[c] / scales[c / group], -448.0, 448.0);
  return norm;
}

void RowReference::compare(const std::string& name, uint32_t rank, uint64_t row,
                           const uint8_t* got) {
  const std::string& function = program_.functions[program_.contract.then].name;
  const std::vector<double> all = wanted(name, rank, row);
  for (uint32_t c = 0; c < all.size() && wrong_.empty(); ++c) {
    const bool fp8 = name == "q";
    const bool power = name == "scale" && group_of(function, columns()) == 32;
    const double value = fp8     ? e4m3(got[c])
                         : power ? std::ldexp(1.0, got[c] - 127)
                                 : f32_at(got, c);
    // e4m3 has three digits after the first; below 2^-6 its steps are 2^-9.
    const double off = fp8 ? std::abs(all[c]) / 15.9 + 1.0 / 1024 : 1e-5 * (1 + std::abs(all[c]));
    if (std::abs(value - all[c]) <= off) continue;
    wrong_ = fmt::format("'{}' of rank {} holds {} in row {}, column {}; it should be {}", name,
                         rank, value, row, c, all[c]);
  }
}

void RowReference::before(uint32_t rank, uint64_t) {
  const auto put = [](uint8_t* to, uint64_t i, double value) {
    const auto number = static_cast<float>(value);
    std::memcpy(to + i * sizeof number, &number, sizeof number);
  };
  const uint64_t elements = cluster_.bytes(rank, kInput) / sizeof(float);
  for (uint64_t i = 0; i < elements; ++i) put(cluster_.data(rank, kInput), i, input(rank, i));
  for (size_t e = 0; e < program_.externals.size(); ++e) {
    const rows::External& external_of = program_.externals[e];
    const rows::ExternalLayout& layout = cluster_.states()[rank].external_layouts[e];
    if (!external_of.is_read()) continue;
    const uint64_t values = layout.row_bytes / sizeof(float);
    for (uint64_t row = 0; row < layout.rows; ++row) {
      for (uint32_t c = 0; c < values; ++c) {
        put(cluster_.externals(rank)[e], row * values + c,
            external(external_of.name, rank, layout.first_row + row, c));
      }
    }
  }
}

void RowReference::after(uint32_t rank, uint64_t) {
  const uint8_t* const output = cluster_.data(rank, kOutput);
  const bool fp8 = program_.contract.output_type == rows::Type::e4m3;
  const uint64_t bytes = cluster_.bytes(rank, kOutput),
                 row_bytes = columns() * (fp8 ? 1 : sizeof(float));
  outputs_[rank].assign(output, output + bytes);
  for (uint64_t row = 0; row < bytes / row_bytes; ++row) {
    compare(fp8 ? "q" : "", rank, row, output + row * row_bytes);
  }
  for (size_t e = 0; e < program_.externals.size(); ++e) {
    const rows::ExternalLayout& layout = cluster_.states()[rank].external_layouts[e];
    const std::string& name = program_.externals[e].name;
    if (!program_.externals[e].is_written()) continue;
    const uint8_t* const got = cluster_.externals(rank)[e];
    written_[name].resize(program_.contract.ranks);
    written_[name][rank].assign(got, got + layout.bytes());
    for (uint64_t row = 0; row < layout.rows; ++row) {
      compare(name, rank, layout.first_row + row, got + row * layout.row_bytes);
    }
  }
}

std::string RowReference::run() {
  Diagnostics diagnostics;
  const uint32_t granule = program_.granule(Dtype::f32);
  const bool parts = program_.contract.kind == CollectiveKind::reducescatter;
  const Call call{.part_bytes =
                      uint64_t{parts ? rows_ / program_.contract.ranks : rows_} * granule};
  if (!cluster_.build(diagnostics, steps_) || !cluster_.prepare(call, false, true, diagnostics) ||
      !cluster_.run(1, 0, *this, diagnostics)) {
    return diagnostics.all().empty() ? "it did not run" : diagnostics.all()[0].message;
  }
  return wrong_;
}

}  // namespace mscclc
