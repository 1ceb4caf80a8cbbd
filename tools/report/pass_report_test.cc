#include "tools/report/pass_report.h"

#include <catch2/catch.hpp>

namespace mscclc {

TEST_CASE("the time table has the longest pass first, and a total") {
  const PassRecord records[] = {
      {.pass = "assign", .wall_seconds = 0.25, .cpu_seconds = 0.5, .counts = {}},
      {.pass = "fuse", .wall_seconds = 0.75, .cpu_seconds = 1.5, .counts = {}}};
  CHECK(time_table(records) == R"(Pass execution timing report, in seconds

          CPU time           Wall time  Pass
   1.5000 ( 75.0%)     0.7500 ( 75.0%)  fuse
   0.5000 ( 25.0%)     0.2500 ( 25.0%)  assign
   2.0000 (100.0%)     1.0000 (100.0%)  total
)");
}

TEST_CASE("without passes the tables are empty") {
  CHECK(time_table({}) == R"(Pass execution timing report, in seconds

          CPU time           Wall time  Pass
   0.0000 (  0.0%)     0.0000 (  0.0%)  total
)");
  CHECK(stats_table({}) ==
        "pass                                                                      ops before   "
        "ops after\n");
}

TEST_CASE("the table of what passes did") {
  const PassRecord records[] = {
      {.pass = "fuse", .ops_before = 12, .ops_after = 10, .counts = {{"put + put -> put", 2}}},
      {.pass = "sync", .ops_before = 10, .ops_after = 10, .counts = {}}};
  CHECK(
      stats_table(records) ==
      R"(pass                                                                      ops before   ops after
fuse                                                                              12          10
  put + put -> put                                                                 2
sync                                                                              10          10
)");
}

}  // namespace mscclc
