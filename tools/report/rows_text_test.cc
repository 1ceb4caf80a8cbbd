#include "tools/report/rows_text.h"

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "passes/prove/prove.h"

namespace mscclc {
namespace {

/// Of a program of plans/rows.
std::string rows_of(const std::string& name, uint32_t ranks) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = {{"R", std::to_string(ranks)}, {"N", "2880"}};
  options.read_file = [](const std::string& path) { return read_file(path); };
  const std::string path = "plans/rows/" + name + ".mscl";
  const auto program =
      compile(sources, sources.add(path, read_file(path).value()), options, {}, diagnostics);
  REQUIRE(program.has_value());
  const Proof proof = prove(*program, diagnostics);
  REQUIRE(proof.proved);
  return rows_text(*program, proof);
}

}  // namespace

// Lemma V2: the owner's result, gathered, is what each rank would have computed itself.
TEST_CASE("AllReduce, then f, is ReduceScatter, f at the owner, AllGather") {
  const std::string text =
      "output = y of add_rmsnorm(x0 + x1 + x2, residual, weight, eps), residual = residual_out of "
      "it";
  for (const char* const name : {"allreduce_norm_1shot", "allreduce_norm_2shot",
                                 "allreduce_norm_owner", "allreduce_norm_push"}) {
    INFO(name);
    CHECK(rows_of(name, 3) == text);
  }
}

// The e4m3 of one shot is an external, the one that is gathered the output.
TEST_CASE("what is gathered in e4m3 is what each rank would have computed itself") {
  const std::string f = " of add_rmsnorm_quantize(x0 + x1 + x2, residual, weight, eps, scale), ";
  CHECK(rows_of("allreduce_norm_quantize_1shot", 3) == "output = residual_out" + f + "q = q of it");
  CHECK(rows_of("allreduce_norm_quantize_owner", 3) ==
        "output = q" + f + "residual = residual_out of it");
  CHECK(rows_of("allreduce_norm_quantize_token_owner", 3) ==
        "output = q of add_rmsnorm_quantize_per_token(x0 + x1 + x2, residual, weight, eps, least), "
        "residual = residual_out of it, scale = scale of it");
}

TEST_CASE("rows of many ranks") {
  CHECK(rows_of("allreduce_bias_owner", 8) == "output = y of add_bias(x0 + x1 + … + x7, bias)");
  CHECK(rows_of("reducescatter_norm_quantize", 2) ==
        "output = residual_out of add_rmsnorm_quantize_per_token(x0 + x1, residual, weight, eps, "
        "least), q = q of it, scale = scale of it");
}

}  // namespace mscclc
