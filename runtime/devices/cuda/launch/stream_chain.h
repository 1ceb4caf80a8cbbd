// Keeps calls of a communicator in order that are launched on several streams of a GPU.
//
// Launches on one stream need nothing, and should have nothing: a kernel begins early only if it
// follows another one at once, and an event between them is something else. So in the long run
// events are recorded only if there is a second stream, or a graph. The first one's end is marked
// then if it is a default stream. Another may have been destroyed, and its handle must not be used
// to find out: so the host waits for the GPU, that once.
//
// In a capture the streams of the calls are there until it ends, and edges cost nothing.
//
// A graph that is replayed escapes the chain, so where replays are ordered the graph itself waits
// for the chain's event and records it, by two nodes of a capture: a wait that depends on nothing,
// before the first call, and a record after the last call. As it is not known which call is the
// last, the edge that leads to the record moves on with each call. (Nodes between calls would keep
// a kernel from beginning early; a record after each call takes 0.1 us a call. Measured on one
// H200, in docs/design/optimizations.md.) Work outside of captures waits for the event, and records
// it, as soon as there has been a capture. What was put on a stream before is marked, too, as far
// as that is cheap: the first calls are, since programs that capture do so early, and the last one
// on a default stream. The host cannot wait for others then: that would break the capture.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/devices/cuda/memory/memory.h"

namespace mscclc::cuda {

/// A stream that is not captured, and its id: what a chain has asked the driver, the launch that
/// comes next need not ask again. id 0: nothing is known.
struct KnownStream {
  abi::Stream handle = nullptr;
  uint64_t id = 0;
};

class CudaStreamChain final : public StreamChain {
 public:
  /// Where replays are ordered, so many calls are marked although there is one stream and no graph.
  static constexpr uint32_t kMarkedAtFirst = 16;

  /// `known`: gets what follow() has found.
  CudaStreamChain(SharedContext context, Replays replays, std::shared_ptr<KnownStream> known)
      : context_(std::move(context)), replays_(replays), known_(std::move(known)) {}

  bool follow(StreamHandle stream, Diagnostics& diagnostics) override;
  bool put_last(StreamHandle stream, Diagnostics& diagnostics) override;

 private:
  /// A stream as the driver knows it now. Handles come again, ids do not; a captured stream must
  /// not be asked for its id.
  struct Stream {
    abi::Stream handle = nullptr;
    uint64_t id = 0;
    uint64_t capture = 0;              ///< id; 0: none
    abi::Graph graph = nullptr;        ///< that the capture makes
    std::vector<abi::GraphNode> ends;  ///< captured: what the next node will follow
    bool lossy = false;                ///< the driver does not say what that is
  };
  /// What a capture has taken so far.
  struct Capture {
    Stream end;                       ///< of its last call; without a handle: there was none
    abi::GraphNode record = nullptr;  ///< after that; nullptr: none yet
  };
  /// Captures that may be under way at a time. The driver says nothing of their ends.
  static constexpr size_t kMaxCaptures = 64;

  bool find(StreamHandle stream, Stream& found, Diagnostics& diagnostics) const;
  bool follow_captured(const Capture& capture, Diagnostics& diagnostics) const;
  /// Is the stream of the last call known to be there, and not captured?
  bool last_is_there() const;
  bool have_event(Diagnostics& diagnostics);
  bool mark_last(Diagnostics& diagnostics);
  bool begin_graph(Diagnostics& diagnostics);
  bool put_last_captured(Capture& capture, Diagnostics& diagnostics);
  bool put_record(Capture& capture, const Stream& before, Diagnostics& diagnostics) const;
  bool move_record(const Capture& capture, const Stream& before, Diagnostics& diagnostics) const;
  Capture& capture(uint64_t id);

  const SharedContext context_;
  const Replays replays_;
  const std::shared_ptr<KnownStream> known_;
  Stream now_;                            ///< of the last follow()
  KnownStream last_;                      ///< of the last call; id 0: there was none
  std::unique_ptr<OwnEvent> event_;       ///< its end; nullptr: none has been marked yet
  bool marked_ = false;                   ///< the event marks the end of the last call
  bool marks_all_ = false;                ///< there has been a second stream, or a graph
  uint32_t at_first_ = 0;                 ///< calls that were marked without need
  std::map<uint64_t, Capture> captures_;  ///< by id, which grow
  bool in_graphs_ = false;                ///< some graph waits for the event, and records it
};

}  // namespace mscclc::cuda
