// Captured calls, with a driver that only counts: what is launched how often, and that nothing
// stays captured, or is kept, when something goes wrong.
#include "tools/measure/stream_graph.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

struct CountedDriver {
  int capturing = 0, graphs = 0, made = 0, launches = 0;
  int fails_at = 0;  ///< the number of the step that fails; 0: none
  int steps = 0;
  int next() { return ++steps == fails_at ? 999 : 0; }
};
CountedDriver counted;

GraphDriver counting_driver() {
  GraphDriver driver;
  driver.StreamBeginCapture = [](void*, int mode) {
    CHECK(mode == 1);
    const int result = counted.next();
    counted.capturing += result == 0;
    return result;
  };
  driver.StreamEndCapture = [](void*, void** graph) {
    --counted.capturing;
    const int result = counted.next();
    *graph = result == 0 ? &counted : nullptr;
    counted.graphs += result == 0;
    return result;
  };
  driver.GraphInstantiate = [](void** made, void* graph, unsigned long long) {
    CHECK(graph == &counted);
    const int result = counted.next();
    *made = &counted;
    counted.made += result == 0;
    return result;
  };
  driver.GraphLaunch = [](void*, void*) {
    ++counted.launches;
    return counted.next();
  };
  driver.GraphExecDestroy = [](void*) { return --counted.made, 0; };
  driver.GraphDestroy = [](void*) { return --counted.graphs, 0; };
  return driver;
}

}  // namespace

TEST_CASE("stream graph: what was captured is launched again, and then freed") {
  counted = {};
  const GraphDriver driver = counting_driver();
  Diagnostics diagnostics;
  int put = 0;
  {
    const auto graph = StreamGraph::capture(
        driver, nullptr, [&] { return put += counted.capturing, true; }, diagnostics);
    REQUIRE(graph != nullptr);
    CHECK(put == 1);
    CHECK(graph->launch(nullptr, diagnostics));
    CHECK(graph->launch(nullptr, diagnostics));
    CHECK(counted.made == 1);
  }
  CHECK(counted.launches == 2);
  CHECK(counted.made == 0);
  CHECK(counted.graphs == 0);
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("stream graph: whatever step fails, nothing stays captured or allocated") {
  const GraphDriver driver = counting_driver();
  for (int step = 1; step <= 3; ++step) {
    counted = {};
    counted.fails_at = step;
    Diagnostics diagnostics;
    CHECK(StreamGraph::capture(
              driver, nullptr, [] { return true; }, diagnostics) == nullptr);
    REQUIRE(diagnostics.has_errors());
    CHECK(diagnostics.all().front().message.find("error 999") != std::string::npos);
    CHECK(counted.capturing == 0);
    CHECK(counted.graphs == 0);
    CHECK(counted.made == 0);
  }
  counted = {};
  Diagnostics diagnostics;
  CHECK(StreamGraph::capture(
            driver, nullptr, [] { return false; }, diagnostics) == nullptr);
  CHECK(counted.capturing == 0);
  CHECK(counted.graphs == 0);
  CHECK_FALSE(diagnostics.has_errors());  // what puts calls on the stream reports
}

}  // namespace mscclc
