// The row functions that docs/design/rows.md shows: they are read without a word, and give what
// doubles give, nearly.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/rows/read_rows.h"
#include "executor/rows/evaluate.h"
#include "ir/support/read_file.h"
#include "tests/rows/row_inputs.h"

namespace mscclc::rows {
namespace {

/// All declarations in blocks of the page.
std::vector<Function> of_page() {
  const std::string page = read_file("docs/design/rows.md").value();
  std::string text;
  for (size_t at = page.find("\nrow "); at != page.npos; at = page.find("\nrow ", at + 1)) {
    text += page.substr(at, page.find("\n}\n", at) + 3 - at);
  }
  Sources sources;
  Diagnostics diagnostics;
  auto functions = read_rows(sources, sources.add("rows.md", text), diagnostics);
  CHECK(render_text(diagnostics, sources).empty());
  REQUIRE(functions);
  return *std::move(functions);
}

using Doubles = std::vector<double>;

Doubles as_doubles(const std::vector<uint8_t>& bytes) {
  std::vector<float> floats(bytes.size() / 4);
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return {floats.begin(), floats.end()};
}

using Wanted = std::function<std::vector<Doubles>(const std::vector<Doubles>&)>;

void check_near(const std::string& name, const Wanted& wanted_of) {
  constexpr uint32_t kWidth = 1000;
  Dice dice(7);
  for (const Function& function : of_page()) {
    if (function.name != name) continue;
    auto inputs = row_inputs(function, Dtype::f32, kWidth, false, dice);
    inputs.back().back() &= 0x7f;  // the sign of eps, where there is one
    std::vector<Doubles> in;
    for (const auto& bytes : inputs) in.push_back(as_doubles(bytes));
    const std::vector<Doubles> wanted = wanted_of(in);
    const auto got = evaluate(function, Dtype::f32, kWidth, inputs);
    REQUIRE(got.size() == wanted.size());
    for (size_t k = 0; k < got.size(); ++k) {
      const Doubles values = as_doubles(got[k]);
      REQUIRE(values.size() == wanted[k].size());
      double worst = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        worst =
            std::max(worst, std::fabs(values[i] - wanted[k][i]) / (1 + std::fabs(wanted[k][i])));
      }
      INFO(name << ", result " << k);
      CHECK(worst < 1e-5);
    }
    return;
  }
  FAIL("the page has no " << name);
}

TEST_CASE("row functions of the page: a gate") {
  check_near("gated", [](const std::vector<Doubles>& in) {
    Doubles y;
    for (size_t i = 0; i < in[0].size(); ++i)
      y.push_back(in[0][i] * in[1][i] / (1 + std::exp(-in[1][i])));
    return std::vector<Doubles>{y};
  });
}

TEST_CASE("row functions of the page: streams that are mixed") {
  check_near("mixed", [](const std::vector<Doubles>& in) {
    Doubles a, b;
    for (size_t i = 0; i < in[0].size(); ++i) {
      a.push_back(in[0][i] + in[3][0] * in[1][i] + in[4][0] * in[2][i]);
      b.push_back(in[0][i] + in[5][0] * in[1][i] + in[6][0] * in[2][i]);
    }
    return std::vector<Doubles>{a, b};
  });
}

TEST_CASE("row functions of the page: norms of heads") {
  check_near("head_norm", [](const std::vector<Doubles>& in) {
    Doubles y;
    for (size_t i = 0; i < in[0].size(); ++i) {
      double squares = 0;
      const size_t begin = i / 128 * 128, end = std::min(begin + 128, in[0].size());
      for (size_t j = begin; j < end; ++j) squares += in[0][j] * in[0][j];
      const double mean = squares / static_cast<double>(end - begin);  // the last has 104
      y.push_back(in[0][i] / std::sqrt(mean + in[2][0]) * in[1][i]);
    }
    return std::vector<Doubles>{y};
  });
}

}  // namespace
}  // namespace mscclc::rows
