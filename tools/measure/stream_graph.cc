#include "tools/measure/stream_graph.h"

#include <fmt/format.h>

#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

bool graph_done(int result, const char* attempt, Diagnostics& diagnostics) {
  if (result == 0) return true;
  diagnostics.error("cuda", {}, fmt::format("cannot {}: the driver's error {}", attempt, result));
  return false;
}

}  // namespace

Result<GraphDriver> GraphDriver::of_process() {
  const auto library = open_library("libcuda.so.1");
  if (!library) return Error{"no graphs: " + library.error().text()};
  GraphDriver driver;
  const auto find = [&](const char* name, auto& function) {
    return static_cast<bool>(find_function(*library, name, function));
  };
  const bool found = find("cuStreamBeginCapture_v2", driver.StreamBeginCapture) &&
                     find("cuStreamEndCapture", driver.StreamEndCapture) &&
                     find("cuGraphInstantiateWithFlags", driver.GraphInstantiate) &&
                     find("cuGraphLaunch", driver.GraphLaunch) &&
                     find("cuGraphExecDestroy", driver.GraphExecDestroy) &&
                     find("cuGraphDestroy", driver.GraphDestroy);
  if (!found) return Error{"no graphs: the driver is older than CUDA 11.4"};
  return driver;
}

std::unique_ptr<StreamGraph> StreamGraph::capture(const GraphDriver& driver, StreamHandle stream,
                                                  const std::function<bool()>& calls,
                                                  Diagnostics& diagnostics) {
  if (!graph_done(driver.StreamBeginCapture(stream, kThreadLocal), "capture a stream",
                  diagnostics)) {
    return nullptr;
  }
  const bool put = calls();
  void *graph = nullptr, *made = nullptr;
  // A capture that has gone wrong is ended all the same, or the stream stays captured.
  const int ended = driver.StreamEndCapture(stream, &graph);
  const bool fine =
      put && graph_done(ended, "end a capture", diagnostics) &&
      graph_done(driver.GraphInstantiate(&made, graph, 0), "instantiate a graph", diagnostics);
  if (graph != nullptr) driver.GraphDestroy(graph);
  if (!fine) return nullptr;
  return std::unique_ptr<StreamGraph>(new StreamGraph(driver, made));
}

StreamGraph::~StreamGraph() { driver_.GraphExecDestroy(made_); }

bool StreamGraph::launch(StreamHandle stream, Diagnostics& diagnostics) const {
  return graph_done(driver_.GraphLaunch(made_, stream), "launch a graph", diagnostics);
}

}  // namespace mscclc
