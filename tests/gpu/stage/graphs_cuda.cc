// CUDA graphs, by the CUDA runtime: as applications make them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

bool ok(cudaError_t result, const char* attempt, Diagnostics& diagnostics) {
  if (result == cudaSuccess) return true;
  cudaGetLastError();  // it is reported: nothing else is to find it
  diagnostics.error("cuda", {}, fmt::format("cannot {}: {}", attempt, cudaGetErrorString(result)));
  return false;
}

cudaStream_t stream_of(StreamHandle stream) { return static_cast<cudaStream_t>(stream); }

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  bool launch(StreamHandle stream, Diagnostics& diagnostics) override {
    return ok(cudaGraphLaunch(graph_, stream_of(stream)), "launch a graph", diagnostics);
  }

 private:
  cudaGraphExec_t graph_;
};

class CudaGraphs final : public Graphs {
 public:
  explicit CudaGraphs(cudaStreamCaptureMode mode) : mode_(mode) {}
  std::unique_ptr<Graph> capture(StreamHandle stream, const Work& work,
                                 Diagnostics& diagnostics) override {
    if (!ok(cudaStreamBeginCapture(stream_of(stream), mode_), "begin a capture", diagnostics)) {
      return nullptr;
    }
    const bool worked = work(diagnostics);
    cudaGraph_t graph = nullptr;
    const bool ended =
        ok(cudaStreamEndCapture(stream_of(stream), &graph), "end a capture", diagnostics);
    cudaGraphExec_t executable = nullptr;
    const bool made = worked && ended &&
                      ok(cudaGraphInstantiateWithFlags(&executable, graph, 0),
                         "make a graph that can be launched", diagnostics);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return made ? std::make_unique<CudaGraph>(executable) : nullptr;
  }

  bool order(StreamHandle from, StreamHandle to, Diagnostics& diagnostics) override {
    cudaEvent_t event = nullptr;
    if (!ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event",
            diagnostics)) {
      return false;
    }
    const bool ordered =
        ok(cudaEventRecord(event, stream_of(from)), "record an event", diagnostics) &&
        ok(cudaStreamWaitEvent(stream_of(to), event, 0), "wait for an event", diagnostics);
    cudaEventDestroy(event);
    return ordered;
  }

  std::optional<uint64_t> free_bytes() override {
    size_t left = 0, all = 0;
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) return std::nullopt;
    return left;
  }

 private:
  const cudaStreamCaptureMode mode_;
};

}  // namespace

// Global mode is the strictest, and what frameworks use. It forbids all other threads of the
// process to make graphs and events, or to ask for memory: ranks that are threads do.
std::unique_ptr<Graphs> cuda_graphs(bool threads, Diagnostics&) {
  return std::make_unique<CudaGraphs>(threads ? cudaStreamCaptureModeThreadLocal
                                              : cudaStreamCaptureModeGlobal);
}

}  // namespace mscclc::testing
