// The fake driver's streams and events: work is done at once, or when it is waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "tests/fakes/cuda/fake_devices.h"
#include "tests/fakes/cuda/fake_graphs.h"
#include "tests/fakes/cuda/fake_memory.h"

namespace mscclc::cuda {

class FakeStreams : public virtual FakeDevices,
                    public virtual FakeMemory,
                    public virtual FakeGraphs {
 public:
  /// What the runtime's kernels do here: when its turn on the stream comes, a launch adds `blocks`
  /// to the count at `begun` (0: none). In a capture it becomes a node; returns that, else nullptr.
  abi::GraphNode launch(void* stream, abi::Address begun, uint32_t blocks);
  /// Launches on a stream whose turn has come.
  uint32_t run_launches(void* stream);
  /// Puts what a capture has taken on a stream, as the launch of its graph. REQUIRES: the stream's
  /// context is retained.
  void replay(abi::Graph graph, void* stream);
  int priority(void* stream);
  /// A stream of a green context with so many multiprocessors.
  void* create_green_stream(uint32_t multiprocessors);
  /// A stream that waits for stream 0, and stream 0 for it: here only captures show that.
  void* create_blocking_stream();
  /// Stream 0 (nullptr) of the current context, with which it ends. There is none otherwise.
  void create_default_stream();
  /// As if a stream had been destroyed, and another created that got its handle.
  void rename_stream(void* stream);
  /// Streams of the highest priority in the calling thread's process.
  int urgent_streams();

  abi::Result CtxGetStreamPriorityRange(int* least, int* greatest);
  abi::Result StreamCreateWithPriority(abi::Stream* stream, unsigned flags, int priority);
  abi::Result StreamGetGreenCtx(abi::Stream stream, abi::GreenContext* context);
  abi::Result GreenCtxGetDevResource(abi::GreenContext context, abi::DeviceResource* resource,
                                     int type);
  abi::Result StreamDestroy(abi::Stream stream);
  abi::Result StreamQuery(abi::Stream stream);
  abi::Result StreamSynchronize(abi::Stream stream);
  abi::Result CtxSynchronize();
  abi::Result StreamGetId(abi::Stream stream, unsigned long long* id);
  abi::Result EventCreate(abi::Event* event, unsigned flags);
  abi::Result EventDestroy(abi::Event event);
  abi::Result EventRecord(abi::Event event, abi::Stream stream);
  abi::Result StreamWaitEvent(abi::Stream stream, abi::Event event, unsigned flags);
  abi::Result EventQuery(abi::Event event);
  abi::Result MemcpyAsync(abi::Address to, abi::Address from, size_t bytes, abi::Stream stream);
  abi::Result MemsetD8Async(abi::Address to, unsigned char byte, size_t bytes, abi::Stream stream);
  abi::Result StreamWaitValue32(abi::Stream stream, abi::Address address, uint32_t value,
                                unsigned flags);
  abi::Result StreamWriteValue64(abi::Stream stream, abi::Address address, uint64_t value,
                                 unsigned flags);

 protected:
  FakeStreams() = default;
  ~FakeStreams() = default;
  abi::GraphNode enqueue_launch(abi::Stream stream, abi::Address begun, uint32_t blocks);

 private:
  using StreamEntry = fake::StreamEntry;

  void count_launch(abi::Stream stream, abi::Address begun, uint32_t blocks);
  /// A node of the capture that a stream is in; nullptr: it is in none.
  abi::GraphNode capture_node(abi::Stream stream, fake::NodeEntry entry);
  void replay_node(abi::GraphNode node, abi::Stream stream, std::set<abi::GraphNode>& done);
  abi::Result submit(abi::Stream stream, std::function<void()> work);
  /// Work that is not done, and holds up what follows, while it returns false.
  abi::Result submit_wait(abi::Stream stream, std::function<bool()> work);
  bool run(StreamEntry& stream);
};

}  // namespace mscclc::cuda
