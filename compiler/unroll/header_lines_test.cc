#include "compiler/unroll/header_lines.h"

#include <catch2/catch.hpp>

#include "compiler/unroll/unroll_test_parts.h"

using namespace mscclc;

TEST_CASE("header lines fill the program") {
  Unrolling u(
      "# Sums.\nprogram sums\nparam R = 4\nlet half = R / 2\n"
      "select sizes: 1KiB.., dtypes: [f16], tags: [fast]\nlaunch threads: 64 * half\n"
      "collective allreduce(ranks: R)\n");
  INFO(u.message());
  CHECK(u.diagnostics.all().empty());
  CHECK(u.program().name == "sums");
  CHECK(u.program().description == "Sums.");
  CHECK(u.program().select.sizes.min == 1024);
  CHECK(u.program().select.dtypes.size() == 1);
  CHECK(u.program().select.tags == std::vector<std::string>{"fast"});
  CHECK(u.program().launch.threads == 128);
  CHECK(u.header.is_param("R"));
  CHECK_FALSE(u.header.is_param("half"));
}

TEST_CASE("a condition that fails makes all else pointless") {
  Unrolling u("param R = 3\nrequire R % 2 == 0, \"an even number of ranks\"\n");
  CHECK(u.message() == "condition failed: \"an even number of ranks\" (R = 3)");
  CHECK_FALSE(u.contract.usable());
}

TEST_CASE("words of options that are unknown are reported with what is near") {
  Unrolling u("select dtypes: [f61]\n");
  CHECK(u.message() == "unknown data type 'f61'; did you mean 'f16'?");
}
