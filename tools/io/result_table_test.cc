// The nccl-tests table: columns, time formats, bandwidth factors.
#include "tools/io/result_table.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

TEST_CASE("a row stands under its heading") {
  CHECK(table_header(false) ==
        "#                                                              out-of-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n");
  ResultRow row{.bytes = 1024, .count = 256, .dtype = "f32", .op = "sum", .microseconds = 12.345};
  CHECK(table_row(row, 1.75) ==
        "        1024           256       f32     sum      -1    12.35    0.08    0.15       0\n");
}

TEST_CASE("times lose decimals as they grow") {
  ResultRow row{.bytes = 8, .count = 2, .dtype = "f32", .op = "sum"};
  const auto time_at = [&](double us) {
    row.microseconds = us;
    return table_row(row, 1).substr(52, 9);
  };
  CHECK(time_at(1.005) == "     1.00");
  CHECK(time_at(99.99) == "    99.99");
  CHECK(time_at(123.45) == "    123.5");
  CHECK(time_at(12345.6) == "    12346");
}

TEST_CASE("no time gives no bandwidth") {
  const ResultRow row{.bytes = 8, .count = 2, .dtype = "f32", .op = "sum"};
  CHECK(algorithm_bandwidth(row) == 0);
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(CollectiveKind::allreduce, 8) == Approx(1.75));
  CHECK(bus_factor(CollectiveKind::allgather, 8) == Approx(0.875));
  CHECK(bus_factor(CollectiveKind::reducescatter, 4) == Approx(0.75));
  CHECK(bus_factor(CollectiveKind::alltoall, 2) == Approx(0.5));
  CHECK(bus_factor(CollectiveKind::gather, 4) == Approx(0.75));
  CHECK(bus_factor(CollectiveKind::broadcast, 8) == 1);
  CHECK(bus_factor(CollectiveKind::reduce, 8) == 1);
  CHECK(bus_factor(CollectiveKind::sendrecv, 8) == 1);
  CHECK(bus_factor(CollectiveKind::custom, 8) == 1);
}

TEST_CASE("the footer sums up") {
  CHECK(table_footer(0, 6, 3) == "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2\n#\n");
  CHECK(table_footer(5, 0, 1) ==
        "# Out of bounds values : 5 FAILED\n# Avg bus bandwidth    : 0\n#\n");
  CHECK(table_footer(0, 0, 0) == "# nothing ran\n");  // which is not right
}

}  // namespace
}  // namespace mscclc
