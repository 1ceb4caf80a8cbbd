#include "tools/bench/support/batch.h"

#include <catch2/catch.hpp>

namespace mscclc::bench {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("small messages are timed 400 at a time in graphs, and 200 eagerly") {
  const Batch graph = batch_of({}, kMiB, true), eager = batch_of({}, 1024, false);
  CHECK((graph.calls == 50 && graph.replays == 8 && graph.total() == 400));
  CHECK(graph.unit_calls == 50);
  CHECK((eager.total() == 200 && eager.unit_calls == 10));
}

TEST_CASE("larger messages are timed fewer at a time") {
  CHECK(batch_of({}, kMiB + 1, true).total() == 40);
  CHECK(batch_of({}, 64 * kMiB, true).total() == 20);
  CHECK(batch_of({}, 1024 * kMiB, true).total() == 4);
  CHECK(batch_of({}, 16 * kMiB, false).total() == 60);
}

TEST_CASE("options say otherwise") {
  Options options;
  options.iterations = 7;
  options.replays = 3;
  CHECK(batch_of(options, 1024, true).total() == 21);
  CHECK(batch_of(options, 1024, true).unit_calls == 7);
  CHECK(batch_of(options, 1024, false).unit_calls == 7);
  options.aggregate = 2;
  CHECK(batch_of(options, 1024, true).unit_calls == 2);
}

}  // namespace
}  // namespace mscclc::bench
