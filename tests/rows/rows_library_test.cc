// The row functions of the library against straightforward references: bits, written down again
// from their meaning, with roundings and sums of other code than the evaluator's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include "compiler/rows/library.h"
#include "executor/rows/evaluate.h"
#include "tests/rows/row_inputs.h"

namespace mscclc::rows {
namespace {

using Row = std::vector<float>;

// ---- numbers ----

/// A format of floats: bits of its mantissa, the least exponent of normal numbers, its largest
/// number, and whether what is beyond becomes infinity.
struct Format {
  int mantissa, least;
  double largest;
  bool infinity;
};
constexpr Format kF16 = {10, -14, 65504, true}, kE4m3 = {3, -6, 448, false};
const Format kBf16 = {7, -126, std::ldexp(255.0, 120), true};

/// To the nearest multiple of the format's step at x, ties to even.
float nearest_in(const Format& format, float x) {
  if (x == 0 || std::isnan(x)) return x;
  if (std::isinf(x))
    return format.infinity ? x : std::copysign(static_cast<float>(format.largest), x);
  const int exponent = std::max(std::ilogb(x), format.least);
  const double step = std::ldexp(1.0, exponent - format.mantissa);
  const double rounded = std::nearbyint(x / step) * step;
  if (std::fabs(rounded) <= format.largest) return static_cast<float>(rounded);
  const double beyond = format.infinity ? std::numeric_limits<double>::infinity() : format.largest;
  return static_cast<float>(std::copysign(beyond, x));
}

float to_t(Dtype t, float x) {
  return t == Dtype::bf16 ? nearest_in(kBf16, x) : t == Dtype::f16 ? nearest_in(kF16, x) : x;
}

/// The number of a code with an exponent field, by its meaning.
double decoded(uint32_t code, int exponent_bits, int mantissa, int bias) {
  const int exponent = static_cast<int>(code >> mantissa) & ((1 << exponent_bits) - 1);
  const auto fraction = static_cast<double>(code & ((1u << mantissa) - 1));
  const double sign = code >> (exponent_bits + mantissa) != 0 ? -1.0 : 1.0;
  const double whole = exponent == 0 ? fraction : fraction + std::ldexp(1.0, mantissa);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa);
}

/// The numbers in bytes. Only finite ones occur here.
Row numbers(Type type, Dtype t, const std::vector<uint8_t>& bytes) {
  const uint32_t size = bytes_of(type, t);
  Row row;
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint32_t code = 0;
    std::memcpy(&code, &bytes[at], size);
    const bool half = type == Type::T && t == Dtype::f16,
               brain = type == Type::T && t == Dtype::bf16;
    row.push_back(static_cast<float>(type == Type::e4m3 ? decoded(code, 4, 3, 7)
                                     : type == Type::e8m0
                                         ? std::ldexp(1.0, static_cast<int>(code) - 127)
                                     : half  ? decoded(code, 5, 10, 15)
                                     : brain ? decoded(code, 8, 7, 127)
                                             : decoded(code, 8, 23, 127)));
  }
  return row;
}

// ---- sums ----

using Pair = float (*)(float, float);
float plus(float a, float b) { return a + b; }

/// Over values[begin, begin + width), a power of two, as far as there are any.
float tree(const Row& values, size_t begin, size_t width, Pair pair) {
  if (width == 1) return values[begin];
  const float left = tree(values, begin, width / 2, pair);
  if (begin + width / 2 >= values.size()) return left;
  return pair(left, tree(values, begin + width / 2, width / 2, pair));
}

float over_row(const Row& values, Pair pair) {
  size_t width = 1;
  while (width < values.size()) width *= 2;
  return tree(values, 0, width, pair);
}

Row each(const Row& row, const std::function<float(float)>& f) {
  Row out;
  for (const float x : row) out.push_back(f(x));
  return out;
}

float mean(const Row& row, const std::function<float(float)>& f) {
  return over_row(each(row, f), plus) / static_cast<float>(row.size());
}

/// 1 / sqrt(mean of squares + eps)
float reciprocal_rms(const Row& row, float eps) {
  const float squares = mean(row, [](float x) { return x * x; });
  return 1.0f / std::sqrt(squares + eps);
}

float greatest(const Row& row, size_t begin, size_t end) {
  float most = 0;
  for (size_t i = begin; i < std::min(end, row.size()); ++i)
    most = std::max(most, std::fabs(row[i]));
  return most;
}

Row to_e4m3(const Row& row, const std::function<float(size_t)>& quotient) {
  Row out;
  for (size_t i = 0; i < row.size(); ++i) out.push_back(nearest_in(kE4m3, quotient(i)));
  return out;
}

// ---- the functions ----

/// What a reference is given: numbers of each parameter, T, and whether T(x) rounds.
struct RowArguments {
  std::vector<Row> in;
  Dtype t;
  bool chain;
  float scalar(size_t k) const { return in[k][0]; }
  float rounded(float x) const { return chain ? to_t(t, x) : x; }
  Row rounded(const Row& row) const {
    return each(row, [this](float x) { return rounded(x); });
  }
  Row stored(const Row& row) const {
    return each(row, [this](float x) { return to_t(t, x); });
  }
};
using Results = std::vector<Row>;

Row sum_of(const RowArguments& c) {
  Row out;
  for (size_t i = 0; i < c.in[0].size(); ++i) out.push_back(c.rounded(c.in[0][i]) + c.in[1][i]);
  return out;
}

/// `one`: 1 of Gemma's weights; `weight` empty: none.
Row normed(const Row& row, const Row& weight, float eps, float one) {
  const float r = reciprocal_rms(row, eps);
  Row out;
  for (size_t i = 0; i < row.size(); ++i) {
    out.push_back(weight.empty() ? row[i] * r : row[i] * r * (one + weight[i]));
  }
  return out;
}

Results layernorm(const RowArguments& c) {
  const Row v = c.rounded(c.in[0]);
  const float middle = mean(v, [](float x) { return x; });
  const Row centred = each(v, [&](float x) { return x - middle; });
  const float r = reciprocal_rms(centred, c.scalar(3));
  Row out;
  for (size_t i = 0; i < v.size(); ++i) out.push_back(centred[i] * r * c.in[1][i] + c.in[2][i]);
  return {c.stored(out)};
}

Results add_norm(const RowArguments& c, float one) {
  const Row stream = c.rounded(sum_of(c));
  return {c.stored(stream), c.stored(normed(stream, c.in[2], c.scalar(3), one))};
}

Row scaled(const Row& v, float scale) {
  return to_e4m3(v, [&v, by = 1.0f / scale](size_t i) { return v[i] * by; });
}

Results per_token(const Row& v, float least) {
  const float scale = std::max(greatest(v, 0, v.size()) / 448, least);
  return {to_e4m3(v, [&](size_t i) { return v[i] / scale; }), {scale}};
}

Results by_groups(const Row& v, size_t group, const std::function<float(float)>& scale_of) {
  Row scales;
  for (size_t begin = 0; begin < v.size(); begin += group) {
    scales.push_back(scale_of(greatest(v, begin, begin + group)));
  }
  return {to_e4m3(v, [&](size_t i) { return v[i] / scales[i / group]; }), scales};
}

/// The least power of two from 2^-127 on that is not below x.
float power_above(float x) {
  double power = std::ldexp(1.0, -127);
  while (power < x) power *= 2;
  return static_cast<float>(power);
}

Results by_128(const Row& v) {
  return by_groups(v, 128, [](float most) { return std::max(most, 1e-10f) / 448; });
}

Results by_powers(const Row& v) {
  return by_groups(v, 32, [](float most) { return power_above(most / 448); });
}

/// The residual stream, and what is made of its norm.
Results after_norm(const RowArguments& c, const std::function<Results(const Row&)>& made) {
  const Row stream = c.rounded(sum_of(c));
  Results results = made(c.rounded(normed(stream, c.in[2], c.scalar(3), 0)));
  results.insert(results.begin(), c.stored(stream));
  return results;
}

Results twice(const RowArguments& c) { return {c.in[0], c.in[0]}; }

struct Reference {
  const char* name;
  std::function<Results(const RowArguments&)> results;
};

const Reference kReferences[] = {
    {"add", [](const RowArguments& c) { return Results{c.stored(sum_of(c))}; }},
    {"add_bias", [](const RowArguments& c) { return Results{c.stored(sum_of(c))}; }},
    {"rmsnorm",
     [](const RowArguments& c) {
       return Results{c.stored(normed(c.rounded(c.in[0]), c.in[1], c.scalar(2), 0))};
     }},
    {"rmsnorm_without_weight",
     [](const RowArguments& c) {
       return Results{c.stored(normed(c.rounded(c.in[0]), {}, c.scalar(1), 0))};
     }},
    {"gemma_rmsnorm",
     [](const RowArguments& c) {
       return Results{c.stored(normed(c.rounded(c.in[0]), c.in[1], c.scalar(2), 1))};
     }},
    {"layernorm", layernorm},
    {"add_rmsnorm", [](const RowArguments& c) { return add_norm(c, 0); }},
    {"add_gemma_rmsnorm", [](const RowArguments& c) { return add_norm(c, 1); }},
    {"quantize",
     [](const RowArguments& c) { return Results{scaled(c.rounded(c.in[0]), c.scalar(1))}; }},
    {"quantize_per_token",
     [](const RowArguments& c) { return per_token(c.rounded(c.in[0]), c.scalar(1)); }},
    {"quantize_per_group", [](const RowArguments& c) { return by_128(c.rounded(c.in[0])); }},
    {"quantize_mxfp8", [](const RowArguments& c) { return by_powers(c.rounded(c.in[0])); }},
    {"add_rmsnorm_quantize",
     [](const RowArguments& c) {
       return after_norm(c, [&c](const Row& v) { return Results{scaled(v, c.scalar(4))}; });
     }},
    {"add_rmsnorm_and_quantize",
     [](const RowArguments& c) {
       return after_norm(c, [&c](const Row& v) {
         return Results{c.stored(v), scaled(v, c.scalar(4))};
       });
     }},
    {"add_rmsnorm_quantize_per_token",
     [](const RowArguments& c) {
       return after_norm(c, [&c](const Row& v) { return per_token(v, c.scalar(4)); });
     }},
    {"add_rmsnorm_quantize_per_group", [](const RowArguments& c) { return after_norm(c, by_128); }},
    {"add_rmsnorm_quantize_mxfp8", [](const RowArguments& c) { return after_norm(c, by_powers); }},
    {"keep_token", twice},
    {"keep_groups", twice},
    {"keep_mxfp8", twice},
};

/// Scalars as models have them; all else at random.
std::vector<std::vector<uint8_t>> inputs_of(const Function& function, Dtype t, uint32_t columns,
                                            Dice& dice) {
  std::vector<std::vector<uint8_t>> inputs = row_inputs(function, t, columns, false, dice);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string& name = function.params[k].name;
    const float value = name == "eps" ? 1e-5f : name == "least" ? 1.0f / (448 * 512) : 0.037f;
    if (function.params[k].kind == Kind::scalar) std::memcpy(inputs[k].data(), &value, 4);
  }
  return inputs;
}

void check(const Reference& reference, Function function, Dtype t, Rounding rounding,
           uint32_t columns, Dice& dice) {
  function.rounding = rounding;
  INFO(function.name << ", " << info(t).name << ", " << columns << " columns, "
                     << (rounding == Rounding::once ? "once" : "chain"));
  const auto inputs = inputs_of(function, t, columns, dice);
  RowArguments call{{}, t, rounding == Rounding::chain};
  for (size_t k = 0; k < inputs.size(); ++k) {
    call.in.push_back(numbers(function.params[k].type, t, inputs[k]));
  }
  const Results wanted = reference.results(call);
  const auto got = evaluate(function, t, columns, inputs);
  REQUIRE(got.size() == wanted.size());
  for (size_t k = 0; k < got.size(); ++k) {
    INFO(function.outputs[k].name);
    CHECK((numbers(function.outputs[k].type, t, got[k]) == wanted[k]));
  }
}

TEST_CASE("the library's row functions give what they mean, bit for bit") {
  Dice dice(1);
  for (const Reference& reference : kReferences) {
    const Function function = library_function(reference.name);
    for (const Dtype t : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
      for (const Rounding rounding : {Rounding::chain, Rounding::once}) {
        for (const uint32_t columns : {1, 2, 3, 31, 128, 129, 1000, 2047, 2048, 2880, 5120, 7168}) {
          check(reference, function, t, rounding, columns, dice);
        }
      }
    }
  }
}

TEST_CASE("every row function of the library has a reference") {
  std::set<std::string> names, referenced;
  for (const Function& function : library()) names.insert(function.name);
  for (const Reference& reference : kReferences) referenced.insert(reference.name);
  CHECK(names == referenced);
}

/// Arguments of f32.
std::vector<std::vector<uint8_t>> arguments(const std::vector<Row>& rows) {
  std::vector<std::vector<uint8_t>> all;
  for (const Row& row : rows) {
    all.emplace_back(row.size() * 4);
    std::memcpy(all.back().data(), row.data(), all.back().size());
  }
  return all;
}

TEST_CASE("the order of a sum shows in its bits") {
  // One after the other each 1 is lost; in pairs they add up first.
  const Row row = {16777216, 1, 1, 1, 1, 1, 1, 1};
  const Function function = library_function("rmsnorm_without_weight");
  CHECK(over_row(row, plus) == 16777222.0f);
  float in_a_row = 0;
  for (const float x : row) in_a_row += x;
  CHECK(in_a_row == 16777216.0f);
  const Row squares = {4096, 1, 1, 1, 1, 1, 1, 1};
  const auto got = evaluate(function, Dtype::f32, 8, arguments({squares, {0}}));
  const float r = 1.0f / std::sqrt(16777222.0f / 8);
  CHECK(numbers(Type::f32, Dtype::f32, got[0])[0] == 4096 * r);
  CHECK(4096 * r != 4096 * (1.0f / std::sqrt(16777216.0f / 8)));
}

TEST_CASE("a row of zeros has scales that divide") {
  const Row zeros(256, 0.0f);
  const auto mx = evaluate(library_function("quantize_mxfp8"), Dtype::f32, 256, arguments({zeros}));
  CHECK(mx[0] == std::vector<uint8_t>(256, 0));
  CHECK(mx[1] == std::vector<uint8_t>(8, 0));
  const auto groups =
      evaluate(library_function("quantize_per_group"), Dtype::f32, 256, arguments({zeros}));
  CHECK(groups[0] == std::vector<uint8_t>(256, 0));
  CHECK(numbers(Type::f32, Dtype::f32, groups[1]) == Row(2, 1e-10f / 448));
}

}  // namespace
}  // namespace mscclc::rows
