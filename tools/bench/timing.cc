#include "tools/bench/timing.h"

#include <fmt/format.h>

namespace mscclc::bench {

bool succeeded(cudaError_t result, const char* attempt, Diagnostics& diagnostics) {
  if (result == cudaSuccess) return true;
  diagnostics.error("cuda", {}, fmt::format("cannot {}: {}", attempt, cudaGetErrorString(result)));
  return false;
}

void SpinBarrier::meet() {
  const uint32_t generation = generation_.load();
  if (arrived_.fetch_add(1) + 1 == ranks_) {
    arrived_.store(0);
    generation_.fetch_add(1);
    return;
  }
  while (generation_.load() == generation) {
  }
}

Batch Batch::of(uint64_t bytes, bool graph) {
  constexpr uint64_t kMiB = 1 << 20;
  if (bytes <= kMiB) return graph ? Batch{50, 8} : Batch{200, 1};
  if (bytes <= 16 * kMiB) return graph ? Batch{10, 4} : Batch{60, 1};
  if (bytes <= 64 * kMiB) return graph ? Batch{10, 2} : Batch{20, 1};
  if (bytes <= 256 * kMiB) return graph ? Batch{10, 1} : Batch{10, 1};
  return {4, 1};
}

Timed::~Timed() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

bool Timed::start(Diagnostics& diagnostics) {
  if (!succeeded(cudaEventCreate(&begin_), "make an event", diagnostics) ||
      !succeeded(cudaEventCreate(&end_), "make an event", diagnostics)) {
    return false;
  }
  for (uint32_t i = 0; i < 3; ++i) {
    if (!contender_.launch(stream_, diagnostics)) return false;
  }
  if (graph_) {
    cudaGraph_t graph = nullptr;
    if (!succeeded(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                   "capture a graph", diagnostics)) {
      return false;
    }
    bool launched = true;
    for (uint32_t i = 0; launched && i < batch_.calls; ++i) {
      launched = contender_.launch(stream_, diagnostics);
    }
    const bool ended =
        succeeded(cudaStreamEndCapture(stream_, &graph), "capture a graph", diagnostics);
    if (!launched || !ended) return false;
    const bool made =
        succeeded(cudaGraphInstantiate(&executable_, graph, 0), "instantiate a graph", diagnostics);
    cudaGraphDestroy(graph);
    if (!made) return false;
  }
  return run(diagnostics) && run(diagnostics) &&
         succeeded(cudaStreamSynchronize(stream_), "warm up", diagnostics);
}

bool Timed::run(Diagnostics& diagnostics) {
  if (graph_) {
    for (uint32_t i = 0; i < batch_.replays; ++i) {
      if (!succeeded(cudaGraphLaunch(executable_, stream_), "launch a graph", diagnostics)) {
        return false;
      }
    }
    return true;
  }
  for (uint32_t i = 0; i < batch_.calls; ++i) {
    if (!contender_.launch(stream_, diagnostics)) return false;
  }
  return true;
}

bool Timed::repeat(SpinBarrier& barrier, double& microseconds, Diagnostics& diagnostics) {
  barrier.meet();
  float milliseconds = 0;
  if (!succeeded(cudaEventRecord(begin_, stream_), "record an event", diagnostics) ||
      !run(diagnostics) ||
      !succeeded(cudaEventRecord(end_, stream_), "record an event", diagnostics) ||
      !succeeded(cudaStreamSynchronize(stream_), "wait for a batch", diagnostics) ||
      !succeeded(cudaEventElapsedTime(&milliseconds, begin_, end_), "read events", diagnostics)) {
    return false;
  }
  microseconds = 1000.0 * milliseconds / (graph_ ? batch_.total() : batch_.calls);
  return true;
}

}  // namespace mscclc::bench
