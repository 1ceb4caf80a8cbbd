// The fake driver's captures and the graphs that they make, to which the runtime adds nodes for
// events.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/fakes/cuda/fake_core.h"

namespace mscclc::cuda {

class FakeGraphs : public virtual FakeCore {
 public:
  /// The calling thread captures a stream of its process in an abi::CaptureMode, until it ends
  /// that: what the mode forbids is refused meanwhile, and is a misuse.
  void begin_capture(int mode, void* stream = nullptr);
  /// nullptr: something has broken it.
  abi::Graph end_capture();
  /// Another stream joins the capture of `from`, after what that has captured so far.
  void fork_capture(void* from, void* to);
  /// As if the user had destroyed a graph, and what was made from it.
  void destroy_graph(abi::Graph graph);
  /// The nodes of a graph that record an event, or wait for one.
  std::vector<abi::GraphNode> event_nodes(abi::Graph graph) const;
  /// The nodes of all graphs that copy.
  std::vector<abi::GraphNode> copy_nodes() const;
  /// The nodes that a node comes after.
  std::vector<abi::GraphNode> edges(abi::GraphNode node) const;

  abi::Result GraphAddEventRecordNode(abi::GraphNode* node, abi::Graph graph,
                                      const abi::GraphNode* after, size_t count, abi::Event event);
  abi::Result GraphAddEventWaitNode(abi::GraphNode* node, abi::Graph graph,
                                    const abi::GraphNode* after, size_t count, abi::Event event);
  abi::Result GraphAddDependencies(abi::Graph graph, const abi::GraphNode* from,
                                   const abi::GraphNode* to, size_t count);
  abi::Result GraphRemoveDependencies(abi::Graph graph, const abi::GraphNode* from,
                                      const abi::GraphNode* to, size_t count);
  abi::Result EventRecordWithFlags(abi::Event event, abi::Stream stream, unsigned flags);
  abi::Result UserObjectCreate(abi::UserObject* object, void* pointer, abi::HostFunction destroy,
                               unsigned references, unsigned flags);
  abi::Result UserObjectRelease(abi::UserObject object, unsigned count);
  abi::Result GraphRetainUserObject(abi::Graph graph, abi::UserObject object, unsigned count,
                                    unsigned flags);
  abi::Result StreamIsCapturing(abi::Stream stream, int* status);
  abi::Result StreamGetCaptureInfo(abi::Stream stream, int* status, uint64_t* id, abi::Graph* graph,
                                   const abi::GraphNode** nodes, size_t* count);
  abi::Result StreamUpdateCaptureDependencies(abi::Stream stream, abi::GraphNode* nodes,
                                              size_t count, unsigned flags);

 protected:
  using Capture = fake::Capture;
  using NodeEntry = fake::NodeEntry;

  FakeGraphs() = default;
  ~FakeGraphs() = default;
  abi::GraphNode add_node(abi::Graph graph, NodeEntry entry);
  /// nullptr: it is in no capture.
  Capture* capture_of(abi::Stream stream);
  /// As what waits for all of the current context: its captures will end without a graph, whatever
  /// their modes. False: there is none.
  bool break_captures();
  /// A stream waits for an event that a capture has recorded after `ends`, and is in it then.
  abi::Result join_capture(abi::Stream stream, abi::Graph graph,
                           const std::vector<abi::GraphNode>& ends);
  const std::map<abi::GraphNode, NodeEntry>& nodes() const { return nodes_; }
  void destroy_user_objects();

 private:
  using UserObjectEntry = fake::UserObjectEntry;

  abi::Result add_event_node(abi::GraphNode* node, abi::Graph graph, NodeEntry entry);
  Capture* capture_of(abi::Graph graph);
  /// Is this a stream of the current context that is there?
  bool is_here(abi::Stream stream);
  /// Is this stream 0, while a stream is captured that waits for it?
  bool is_unusable(abi::Stream stream);

  std::map<abi::GraphNode, NodeEntry> nodes_;
  std::map<abi::UserObject, UserObjectEntry> user_objects_;
};

}  // namespace mscclc::cuda
