// Graphs of a device, for tests: CUDA graphs; on the host, where there are none, the captured
// function itself, so that tests of graphs can be tried without a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "tests/gpu/stage/stage.h"

namespace mscclc::testing {

/// A stream that destroys itself.
class Stream {
 public:
  Stream(Device& device, Diagnostics& diagnostics)
      : device_(device), handle_(device.create_stream(diagnostics)) {}
  ~Stream() { device_.destroy_stream(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// nullptr: it could not be made.
  StreamHandle get() const { return handle_; }

 private:
  Device& device_;
  const StreamHandle handle_;
};

/// Puts launches and copies on streams; false: reported.
using Work = std::function<bool(Diagnostics&)>;

class Graph {
 public:
  virtual ~Graph() = default;
  [[nodiscard]] virtual bool launch(StreamHandle stream, Diagnostics& diagnostics) = 0;
};

class Graphs {
 public:
  virtual ~Graphs() = default;
  /// Captures what `work` puts on `stream`, and on streams that it forks from that and joins again.
  /// What `work` refers to must outlive the graph: the host calls it at every launch. nullptr:
  /// reported.
  [[nodiscard]] virtual std::unique_ptr<Graph> capture(StreamHandle stream, const Work& work,
                                                       Diagnostics& diagnostics) = 0;
  /// What comes on `to` begins when what is on `from` by now has ended.
  [[nodiscard]] virtual bool order(StreamHandle from, StreamHandle to,
                                   Diagnostics& diagnostics) = 0;
  /// Bytes that the device can still allocate; nullopt: it does not say.
  virtual std::optional<uint64_t> free_bytes() = 0;
};

/// What the ranks of a part use.
[[nodiscard]] std::unique_ptr<Graphs> make_graphs(const StageOptions& options,
                                                  Communicator& communicator,
                                                  Diagnostics& diagnostics);
/// Of the calling thread's GPU; `threads`: other ranks are threads of this process, and captures
/// leave them alone. nullptr: this build has no GPU part (reported).
[[nodiscard]] std::unique_ptr<Graphs> cuda_graphs(bool threads, Diagnostics& diagnostics);
std::unique_ptr<Graphs> host_graphs(Device& device);

}  // namespace mscclc::testing
