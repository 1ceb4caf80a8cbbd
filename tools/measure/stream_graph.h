// Calls captured in a CUDA graph and launched again: what a job does that captures its steps, and
// what the figures of the library were measured with. The driver's functions are found at run time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "runtime/api/stream.h"

namespace mscclc {

/// The driver's functions for graphs; they return 0 if all went well.
struct GraphDriver {
  int (*StreamBeginCapture)(void* stream, int mode) = nullptr;
  int (*StreamEndCapture)(void* stream, void** graph) = nullptr;
  int (*GraphInstantiate)(void** made, void* graph, unsigned long long flags) = nullptr;
  int (*GraphLaunch)(void* made, void* stream) = nullptr;
  int (*GraphExecDestroy)(void* made) = nullptr;
  int (*GraphDestroy)(void* graph) = nullptr;

  /// Those of the libcuda.so.1 that the process has loaded for its GPUs.
  static Result<GraphDriver> of_process();
};

/// Thread safety: one thread at a time, in which the stream's device is current.
class StreamGraph {
 public:
  /// Captures what `calls` puts on the stream; it returns false if it could not, and has reported
  /// why. `driver` must outlive the graph. nullptr: reported (cuda).
  [[nodiscard]] static std::unique_ptr<StreamGraph> capture(const GraphDriver& driver,
                                                            StreamHandle stream,
                                                            const std::function<bool()>& calls,
                                                            Diagnostics& diagnostics);
  /// REQUIRES: no launch runs any more.
  ~StreamGraph();
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;

  /// Does not wait. False: reported.
  [[nodiscard]] bool launch(StreamHandle stream, Diagnostics& diagnostics) const;

 private:
  StreamGraph(const GraphDriver& driver, void* made) : driver_(driver), made_(made) {}
  const GraphDriver& driver_;
  void* const made_;
};

}  // namespace mscclc
