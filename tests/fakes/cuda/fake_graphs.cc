// The fake driver's graphs: captures make them, and the runtime adds nodes for events.
#include <algorithm>
#include <utility>

#include "tests/fakes/cuda/fake_model.h"

namespace mscclc::cuda {

FakeDriver::Capture* FakeDriver::capture_of(abi::Graph graph) {
  for (auto& [thread, capture] : process().captures) {
    if (graph_of(capture) == graph) return &capture;
  }
  return nullptr;
}

abi::GraphNode FakeDriver::add_node(abi::Graph graph, NodeEntry entry) {
  const auto node = reinterpret_cast<abi::GraphNode>(static_cast<uintptr_t>(next_number_++));
  entry.graph = graph;
  nodes_[node] = std::move(entry);
  return node;
}

abi::Result FakeDriver::add_event_node(abi::GraphNode* node, abi::Graph graph, NodeEntry entry) {
  if (capture_of(graph) == nullptr) return misuse("adds to no capture's graph", abi::kInvalidValue);
  if (process().events.count(entry.event) == 0) {
    return misuse("adds a node for an event that there is not", abi::kInvalidHandle);
  }
  *node = add_node(graph, std::move(entry));
  return abi::kSuccess;
}

abi::Result FakeDriver::GraphAddEventRecordNode(abi::GraphNode* node, abi::Graph graph,
                                                const abi::GraphNode* after, size_t count,
                                                abi::Event event) {
  return add_event_node(
      node, graph, {.kind = NodeEntry::record, .after = {after, after + count}, .event = event});
}

abi::Result FakeDriver::GraphAddEventWaitNode(abi::GraphNode* node, abi::Graph graph,
                                              const abi::GraphNode* after, size_t count,
                                              abi::Event event) {
  return add_event_node(node, graph,
                        {.kind = NodeEntry::wait, .after = {after, after + count}, .event = event});
}

abi::Result FakeDriver::GraphAddDependencies(abi::Graph, const abi::GraphNode* from,
                                             const abi::GraphNode* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::vector<abi::GraphNode>& after = nodes_.at(to[i]).after;
    if (std::find(after.begin(), after.end(), from[i]) != after.end()) {
      return misuse("adds an edge that is there", abi::kInvalidValue);
    }
    after.push_back(from[i]);
  }
  return abi::kSuccess;
}

abi::Result FakeDriver::GraphRemoveDependencies(abi::Graph, const abi::GraphNode* from,
                                                const abi::GraphNode* to, size_t count) {
  if (options_.keeps_edges) return abi::kNotSupported;
  for (size_t i = 0; i < count; ++i) {
    if (std::erase(nodes_.at(to[i]).after, from[i]) == 0) {
      return misuse("removes an edge that is not there", abi::kInvalidValue);
    }
  }
  return abi::kSuccess;
}

abi::Result FakeDriver::EventRecordWithFlags(abi::Event event, abi::Stream stream, unsigned flags) {
  Capture* const capture = capture_of(stream);
  if (capture == nullptr || flags != abi::kRecordExternal) {
    return misuse("records outside of a capture what only a replay may", abi::kInvalidValue);
  }
  std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  abi::GraphNode node = nullptr;
  const abi::Result added = add_event_node(
      &node, graph_of(*capture), {.kind = NodeEntry::record, .after = ahead, .event = event});
  if (added == abi::kSuccess) ahead = {node};
  return added;
}

abi::Result FakeDriver::UserObjectCreate(abi::UserObject* object, void* pointer,
                                         abi::HostFunction destroy, unsigned references,
                                         unsigned flags) {
  if (references != 1 || flags != abi::kNoDestructorSync) {
    return misuse("makes a user object in another way", abi::kInvalidValue);
  }
  *object = reinterpret_cast<abi::UserObject>(static_cast<uintptr_t>(next_number_++));
  user_objects_[*object] = {pointer, destroy};
  return abi::kSuccess;
}

abi::Result FakeDriver::UserObjectRelease(abi::UserObject object, unsigned count) {
  const auto found = user_objects_.find(object);
  if (count != 1 || found == user_objects_.end() || found->second.graph != nullptr) {
    return misuse("releases a user object that is not its own", abi::kInvalidValue);
  }
  const UserObjectEntry entry = found->second;
  user_objects_.erase(found);
  entry.destroy(entry.pointer);
  return abi::kSuccess;
}

abi::Result FakeDriver::GraphRetainUserObject(abi::Graph graph, abi::UserObject object,
                                              unsigned count, unsigned flags) {
  const auto found = user_objects_.find(object);
  if (capture_of(graph) == nullptr || found == user_objects_.end() || count != 1 ||
      flags != abi::kMoveReferences || found->second.graph != nullptr) {
    return misuse("gives a graph what it cannot have", abi::kInvalidValue);
  }
  found->second.graph = graph;
  return abi::kSuccess;
}

void FakeDriver::destroy_graph(abi::Graph graph) {
  std::vector<UserObjectEntry> gone;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(nodes_, [&](const auto& node) { return node.second.graph == graph; });
    std::erase_if(user_objects_, [&](const auto& object) {
      if (object.second.graph != graph) return false;
      gone.push_back(object.second);
      return true;
    });
  }
  for (const UserObjectEntry& entry : gone) entry.destroy(entry.pointer);
}

std::vector<abi::GraphNode> FakeDriver::event_nodes(abi::Graph graph) const {
  const std::lock_guard lock(mutex_);
  std::vector<abi::GraphNode> found;
  for (const auto& [node, entry] : nodes_) {
    if (entry.graph == graph && entry.event != nullptr) found.push_back(node);
  }
  return found;
}

void FakeDriver::replay_node(abi::GraphNode node, abi::Stream stream,
                             std::set<abi::GraphNode>& done) {
  if (!done.insert(node).second) return;
  const NodeEntry& entry = nodes_.at(node);
  for (const abi::GraphNode ahead : entry.after) replay_node(ahead, stream, done);
  if (entry.kind == NodeEntry::launch) count_launch(stream, entry.begun, entry.blocks);
  if (entry.kind == NodeEntry::record) EventRecord(entry.event, stream);
  if (entry.kind == NodeEntry::wait) StreamWaitEvent(stream, entry.event, 0);
}

void FakeDriver::replay(abi::Graph graph, void* stream) {
  const std::lock_guard lock(mutex_);
  const auto on = static_cast<abi::Stream>(stream);
  CtxPushCurrent(process().context(process().streams.at(on).device));
  std::set<abi::GraphNode> done;
  for (const auto& [node, entry] : nodes_) {
    if (entry.graph == graph) replay_node(node, on, done);
  }
  abi::Context context = nullptr;
  CtxPopCurrent(&context);
}

}  // namespace mscclc::cuda
