#include "compiler/unroll/contract_lines.h"

#include <catch2/catch.hpp>

#include "compiler/unroll/unroll_test_parts.h"

using namespace mscclc;

TEST_CASE("the collective line makes the contract") {
  Unrolling u("collective broadcast(ranks: 3, root: 2, chunks: [2, 5])\n");
  INFO(u.message());
  CHECK(u.contract.has_collective());
  CHECK(u.contract.usable());
  CHECK(u.program().contract.kind == CollectiveKind::broadcast);
  CHECK(u.program().contract.root == 2);
  CHECK(u.program().contract.chunks == std::vector<uint32_t>{2, 5});
  CHECK(u.program().ranks.size() == 3);
}

TEST_CASE("options that a collective lacks, or does not take") {
  Unrolling lacks("collective broadcast(ranks: 3)\n");
  CHECK(lacks.message() == "'broadcast' needs 'root: ...'");
  CHECK_FALSE(lacks.contract.usable());
  Unrolling takes("collective allreduce(ranks: 3, root: 1)\n");
  CHECK(takes.message() == "'root' cannot be combined with 'allreduce'");
}

TEST_CASE("promises of a custom contract") {
  Unrolling u(
      "collective custom(ranks: 2, input: 2, output: 2)\n"
      "ensure output[q] at r = input[q] at q for r in 0..2, q in 0..2\n");
  INFO(u.message());
  CHECK(u.program().contract.promises.size() == 4);
  Unrolling outside(
      "collective custom(ranks: 2, input: 1, output: 2)\n"
      "ensure output[2] at 0 = input[0] at 0\n");
  CHECK(outside.message() == "'output' has no chunk 2");
}
