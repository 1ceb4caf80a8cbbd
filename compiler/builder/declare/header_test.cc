#include "compiler/builder/declare/header.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

struct WithHeader {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Header header{reports, draft};
  std::string message() const { return diagnostics.all().back().message; }
};

}  // namespace

TEST_CASE("a contract makes the ranks") {
  WithHeader h;
  CHECK_FALSE(h.header.has_contract());
  CHECK(h.header.collective({.kind = CollectiveKind::allgather, .ranks = 3, .chunks = {2}}));
  CHECK(h.header.has_contract());
  CHECK(h.draft.ranks() == 3);
}

TEST_CASE("numbers of a contract that make no sense are refused") {
  WithHeader h;
  CHECK_FALSE(h.header.collective({.kind = CollectiveKind::allgather, .ranks = 0}));
  CHECK(h.message() == "'ranks' is 0; a collective has 1 to 65536");
  CHECK_FALSE(h.header.collective({.kind = CollectiveKind::broadcast, .ranks = 2, .root = 2}));
  CHECK(h.message() == "root 2 is not a rank");
  CHECK(h.draft.ranks() == 0);
}

TEST_CASE("promises name chunks that are there") {
  WithHeader h;
  REQUIRE(h.header.collective(
      {.kind = CollectiveKind::custom, .ranks = 2, .input = {2}, .output = {2}}));
  Promise promise;
  promise.output = {.rank = 1, .chunk = 0};
  promise.inputs = {{.rank = 0, .chunk = 0}};
  CHECK(h.header.ensure(promise, {5, 6}));
  CHECK(h.header.promise_mark(0).begin == 5);
  promise.inputs = {{.rank = 0, .chunk = 1}};
  CHECK_FALSE(h.header.ensure(promise, {}));
  CHECK(h.message() == "input[1] and output[0] differ in size when the message does not divide");
  promise.output.rank = 2;
  CHECK_FALSE(h.header.ensure(promise, {}));
  CHECK(h.message() == "rank 2 is not a rank");
}

TEST_CASE("a launch is of whole warps") {
  WithHeader h;
  Launch launch;
  launch.threads = 100;
  CHECK_FALSE(h.header.launch(launch, {}));
  launch.threads = 128;
  CHECK(h.header.launch(launch, {}));
  CHECK(h.draft.program.launch.threads == 128);
}
