// Ops, their operands and their sites.
#include "compiler/unroll/op_reader.h"

#include <catch2/catch.hpp>

#include "compiler/unroll/unroll_test_parts.h"

using namespace mscclc;

namespace {

/// Two ranks with a body each that is the text; the declarations are made, rank 0 is at hand.
struct Body : Unrolling {
  explicit Body(const std::string& text)
      : Unrolling("collective allgather(ranks: 2, chunks: 4)\nrank r in 0..2 {\n" + text +
                  "\n}\n") {
    scope.evaluator.context().bindings.push_back({ast.names().intern("r"), 0});
    for (uint32_t r = 0; r < 2; ++r) {
      scope.evaluator.value(ast.names().intern("r")) = Value::of(r);
      declare(r);
    }
    scope.evaluator.value(ast.names().intern("r")) = Value::of(0);
    scope.builder.rank(0);
    scope.builder.block(0);
  }
  /// Reads the ops of the body, and gives those that rank 0 has.
  const std::vector<Op>& read() {
    for (const ast::Stmt* s : body()) {
      if (s->kind == ast::StmtKind::op) ops.op(s->as<ast::OpStmt>());
      if (s->kind == ast::StmtKind::barrier) ops.barrier(s->as<ast::Barrier>());
    }
    return program().ranks[0].ops;
  }
};

}  // namespace

TEST_CASE("operands are chunks here and at far ends, one by one or for a list") {
  Body b(
      "channel ch = memory(1 - r)\nbuffer inbox[8]\n"
      "put ch.inbox[c] for c in 2..4 <- input[c] for c in 0..2\n"
      "put ch.inbox[1 + 2] <- input[3]\nsignal ch");
  const std::vector<Op>& ops = b.read();
  INFO(b.message());
  REQUIRE(ops.size() == 3);
  CHECK(b.program().dsts(ops[0]).size() == 2);
  CHECK(b.program().dsts(ops[0])[1].first == 3);
  CHECK(b.program().dsts(ops[1])[0].channel == 0);
  CHECK(b.program().dsts(ops[1])[0].first == 3);
  CHECK(ops[2].kind == OpKind::signal);
}

TEST_CASE("ops of one statement share its site, with the values of the variables") {
  Body b("buffer inbox[2]\ncopy inbox[0] <- input[0]\nbarrier 0..1");
  b.read();
  CHECK(b.read().size() == 4);
  CHECK(b.program().sites.size() == 2);
  CHECK(b.program().sites[0].line == 4);
  CHECK(b.program().sites[0].variables.size() == 1);
}

TEST_CASE("options of ops") {
  Body b("buffer inbox[2]\nreduce inbox[0] <- inbox[0], inbox[1] op: max, part: [1, 2]");
  const std::vector<Op>& ops = b.read();
  INFO(b.message());
  REQUIRE(ops.size() == 1);
  CHECK(ops[0].reduce == ReduceOp::max);
  CHECK(ops[0].part == 1);
  CHECK(ops[0].parts == 2);
  Body wrong("buffer inbox[2]\nreduce inbox[0] <- inbox[0], inbox[1] part: [2, 2]");
  CHECK(wrong.read().empty());
  CHECK(wrong.message() == "'part' takes [i, n] with i below n, and n below 65536");
}

TEST_CASE("an operand that is not there is reported once, and its op left out") {
  Body b("buffer inbox[2]\ncopy inbox[2] <- input[0]");
  CHECK(b.read().empty());
  CHECK(b.message() == "'inbox' has no chunk 2 on rank 0");
  CHECK(b.diagnostics.all().size() == 1);
}
