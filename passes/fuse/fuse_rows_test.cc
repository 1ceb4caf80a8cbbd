// A sum and the row function that takes it: form `rows`.
#include <catch2/catch.hpp>

#include "ir/program/applied.h"
#include "passes/fuse/fuse_test_text.h"

namespace mscclc {
namespace {

/// Two ranks with a residual stream; the body is that of both.
std::string rows_body(const std::string& body, const std::string& columns = "64") {
  return R"(program t
row f(x: row T, residual: row T) {
  let stream = T(x) + residual
  out residual_out: row T = stream
  out y: row T = stream * rsqrt(mean(stream * stream))
}
external residual: row T inout
collective allreduce(ranks: 2, chunks: 2, columns: )" +
         columns + R"(, then: f)
rank r in 0..2 {
  buffer s[2]
  buffer t[2]
  buffer q[2] packets: LL16
  buffer k[2] packets: LL16
  buffer w[2] packets: LL128
  buffer z[2] packets: sentinel
  channel ch = memory(1 - r)
  tb 0 {
)" + body +
         "\n  }\n}\n";
}

Program after_fusing(const std::string& text) {
  Program program = testing::parse(text);
  testing::run(program, {"assign"});
  fuse_ops(program);
  Diagnostics diagnostics;
  const bool ok = verify_structure(program, diagnostics);
  INFO(render_text(diagnostics, {}));
  REQUIRE(ok);
  return program;
}

std::string fused_rows(const std::string& body, const std::string& columns = "64") {
  return testing::listing(after_fusing(rows_body(body, columns)), 0);
}

bool keeps_rows(const std::string& body, const std::string& columns = "64") {
  Program program = testing::parse(rows_body(body, columns));
  testing::run(program, {"assign"});
  return fused_rows(body, columns) == testing::listing(program, 0);
}

}  // namespace

TEST_CASE("fuse: a sum is handed to a row function before it is stored") {
  REQUIRE(fused_rows(R"(
    reduce t[0] <- input[0], s[0]
    apply f residual[0], output[0] <- t[0], residual[0])") == R"(
0: reduce output[0] <- input[0], s[0] then f residual[0], _ <- _, residual[0]
)");
  REQUIRE(fused_rows(R"(
    reduce_packets t[0..2] <- input[0..2], q[0..2]
    apply f residual[0..2], output[0..2] <- t[0..2], residual[0..2])") == R"(
0: reduce_packets output[0..2] <- input[0..2], q[0..2] then f residual[0..2], _ <- _, residual[0..2]
)");
  REQUIRE(fused_rows(R"(
    read_reduce output[1] <- input[1], ch.input[1] tree
    apply f residual[1], output[1] <- output[1], residual[1])") == R"(
0: read_reduce output[1] <- input[1], ch.input[1] then f residual[1], _ <- _, residual[1] tree
)");
}

TEST_CASE("fuse: what a row function has made of a sum is sent on") {
  REQUIRE(fused_rows(R"(
    reduce t[0] <- input[0], s[0]
    apply f residual[0], output[0] <- t[0], residual[0]
    put ch.output[0] <- output[0])") == R"(
0: reduce_send output[0], ch.output[0] <- input[0], s[0] then f residual[0], _ <- _, residual[0]
)");
  REQUIRE(fused_rows(R"(
    reduce_packets t[0] <- q[0], input[0]
    apply f residual[0], output[0] <- t[0], residual[0]
    put_packets ch.k[0] <- output[0])") == R"(
0: reduce_send_packets output[0], ch.k[0] <- q[0], input[0] then f residual[0], _ <- _, residual[0]
)");
}

TEST_CASE("fuse: no row function moves across a sum") {
  // Of a part of the sum; of the sum, to which more is added later.
  REQUIRE(keeps_rows(R"(
    apply f residual[0], t[0] <- s[0], residual[0]
    reduce output[0] <- input[0], t[0])"));
  REQUIRE(fused_rows(R"(
    reduce t[0] <- input[0], s[0]
    apply f residual[0], output[0] <- t[0], residual[0]
    reduce output[0] <- output[0], s[1])") == R"(
0: reduce output[0] <- input[0], s[0] then f residual[0], _ <- _, residual[0]
0: reduce output[0] <- output[0], s[1]
)");
  REQUIRE(fused_rows(R"(
    reduce output[0] <- input[0], s[0]
    reduce output[0] <- output[0], s[1]
    apply f residual[0], output[0] <- output[0], residual[0])") == R"(
0: reduce output[0] <- input[0], s[0], s[1] then f residual[0], _ <- _, residual[0]
)");
}

TEST_CASE("fuse: a sum that others read is stored") {
  REQUIRE(keeps_rows(R"(
    reduce t[0] <- input[0], s[0]
    apply f residual[0], output[0] <- t[0], residual[0]
    copy output[1] <- t[0])"));
  REQUIRE(keeps_rows(R"(
    reduce output[0] <- input[0], s[0]
    apply f residual[0], t[0] <- output[0], residual[0])"));
  REQUIRE(fused_rows(R"(
    reduce t[0] <- input[0], s[0]
    put ch.t[0] <- t[0]
    apply f residual[0], output[0] <- t[0], residual[0])") == R"(
0: reduce_send t[0], ch.t[0] <- input[0], s[0]
0: apply f residual[0], output[0] <- t[0], residual[0]
)");
}

TEST_CASE("fuse: rows of other chunks than those of the sum are no rows of it") {
  REQUIRE(fused_rows("reduce t[1] <- input[1], s[0] ; "
                     "apply f residual[0], s[1] <- t[1], residual[0]") == R"(
0: reduce t[1] <- input[1], s[0]
0: apply f residual[0], s[1] <- t[1], residual[0]
)");
}

TEST_CASE("fuse: packets of a sum hold whole rows") {
  const std::string body = R"(
    reduce_packets t[0] <- input[0], w[0]
    apply f residual[0], output[0] <- t[0], residual[0])";
  REQUIRE(keeps_rows(body));
  REQUIRE(fused_rows(body, "2880").find("then f") != std::string::npos);
  // The results of a function may be -0.0.
  REQUIRE(fused_rows(R"(
    reduce_packets t[0] <- input[0], z[0]
    apply f residual[0], output[0] <- t[0], residual[0]
    put_packets ch.z[1] <- output[0])") == R"(
0: reduce_packets output[0] <- input[0], z[0] then f residual[0], _ <- _, residual[0]
0: put_packets ch.z[1] <- output[0]
)");
}

}  // namespace mscclc
