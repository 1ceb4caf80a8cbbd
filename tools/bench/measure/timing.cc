#include "tools/bench/measure/timing.h"

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

Timed::~Timed() {
  for (cudaGraphExec_t graph : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  if (unit_graph_ != nullptr) cudaGraphExecDestroy(unit_graph_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

bool Timed::launch_call(bool previous_allows_early, Diagnostics& diagnostics) {
  return previous_allows_early ? contender_.launch_after_early_kernel(stream_, diagnostics)
                               : contender_.launch(stream_, diagnostics);
}

bool Timed::launch_one(Around around, Diagnostics& diagnostics) {
  if (around == Around::nothing) return launch_call(false, diagnostics);
  const bool twice = around == Around::twice || around == Around::early_twice;
  const bool early = around == Around::early_once || around == Around::early_twice;
  if (twice && !(surroundings_->launch_before(stream_, early, diagnostics) &&
                 surroundings_->launch_after(stream_, early, diagnostics))) {
    return false;
  }
  return surroundings_->launch_before(stream_, early, diagnostics) &&
         launch_call(early, diagnostics) &&
         surroundings_->launch_after(stream_, early, diagnostics);
}

bool Timed::capture(uint32_t calls, Around around, cudaGraphExec_t& made,
                    Diagnostics& diagnostics) {
  cudaGraph_t graph = nullptr;
  if (!succeeded(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                 "capture a graph", diagnostics)) {
    return false;
  }
  bool launched = true;
  for (uint32_t i = 0; launched && i < calls; ++i) launched = launch_one(around, diagnostics);
  const bool ended =
      succeeded(cudaStreamEndCapture(stream_, &graph), "capture a graph", diagnostics);
  if (!launched || !ended) return false;
  const bool instantiated =
      succeeded(cudaGraphInstantiate(&made, graph, 0), "instantiate a graph", diagnostics);
  cudaGraphDestroy(graph);
  return instantiated;
}

bool Timed::start(Diagnostics& diagnostics) {
  events_.resize(batch_.units + 1);
  for (cudaEvent_t& event : events_) {
    if (!succeeded(cudaEventCreate(&event), "make an event", diagnostics)) return false;
  }
  for (uint32_t i = 0; i < arounds_; ++i) {
    const auto around = static_cast<Around>(i);
    if (!launch(3, around, diagnostics)) return false;
    if (batch_.graph && !capture(batch_.calls, around, graphs_[i], diagnostics)) return false;
  }
  const bool other_unit = batch_.unit_calls != batch_.calls;
  if (batch_.graph && other_unit &&
      !capture(batch_.unit_calls, Around::nothing, unit_graph_, diagnostics)) {
    return false;
  }
  for (uint32_t i = 0; i < batch_.warmup * arounds_; ++i) {
    if (!run(static_cast<Around>(i % arounds_), diagnostics)) return false;
  }
  return succeeded(cudaStreamSynchronize(stream_), "warm up", diagnostics);
}

bool Timed::wait_if_blocking(Diagnostics& diagnostics) {
  return !batch_.blocking ||
         succeeded(cudaStreamSynchronize(stream_), "wait for a call", diagnostics);
}

bool Timed::replay(cudaGraphExec_t graph, Diagnostics& diagnostics) {
  return succeeded(cudaGraphLaunch(graph, stream_), "launch a graph", diagnostics) &&
         wait_if_blocking(diagnostics);
}

bool Timed::launch(uint32_t calls, Around around, Diagnostics& diagnostics) {
  for (uint32_t i = 0; i < calls; ++i) {
    if (!launch_one(around, diagnostics) || !wait_if_blocking(diagnostics)) return false;
  }
  return true;
}

bool Timed::run(Around around, Diagnostics& diagnostics) {
  if (!batch_.graph) return launch(batch_.calls, around, diagnostics);
  for (uint32_t i = 0; i < batch_.replays; ++i) {
    if (!replay(graphs_[static_cast<size_t>(around)], diagnostics)) return false;
  }
  return true;
}

bool Timed::run_unit(Diagnostics& diagnostics) {
  if (!batch_.graph) return launch(batch_.unit_calls, Around::nothing, diagnostics);
  return replay(unit_graph_ != nullptr ? unit_graph_ : graphs_[0], diagnostics);
}

bool Timed::repeat(SpinBarrier& barrier, Around around, double& microseconds,
                   Diagnostics& diagnostics) {
  barrier.meet();
  float milliseconds = 0;
  if (!succeeded(cudaEventRecord(events_.front(), stream_), "record an event", diagnostics) ||
      !run(around, diagnostics) ||
      !succeeded(cudaEventRecord(events_.back(), stream_), "record an event", diagnostics) ||
      !succeeded(cudaStreamSynchronize(stream_), "wait for a batch", diagnostics) ||
      !succeeded(cudaEventElapsedTime(&milliseconds, events_.front(), events_.back()),
                 "read events", diagnostics)) {
    return false;
  }
  microseconds = 1000.0 * milliseconds / batch_.total();
  return true;
}

bool Timed::units(SpinBarrier& barrier, std::vector<double>& microseconds,
                  Diagnostics& diagnostics) {
  barrier.meet();
  for (size_t i = 0; i < events_.size(); ++i) {
    if (i > 0 && !run_unit(diagnostics)) return false;
    if (!succeeded(cudaEventRecord(events_[i], stream_), "record an event", diagnostics)) {
      return false;
    }
  }
  if (!succeeded(cudaStreamSynchronize(stream_), "wait for units", diagnostics)) return false;
  for (size_t i = 1; i < events_.size(); ++i) {
    float milliseconds = 0;
    if (!succeeded(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]), "read events",
                   diagnostics)) {
      return false;
    }
    microseconds.push_back(1000.0 * milliseconds / batch_.unit_calls);
  }
  return true;
}

}  // namespace mscclc::bench
