#include "tests/fakes/cuda/fake_graphs.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace mscclc::cuda {

void FakeGraphs::begin_capture(int mode, void* stream) {
  const std::lock_guard lock(mutex());
  process().captures[std::this_thread::get_id()] = {
      mode, new_number(), {{static_cast<abi::Stream>(stream), {}}}};
}

abi::Graph FakeGraphs::end_capture() {
  fake::Capture ended;
  {
    const std::lock_guard lock(mutex());
    ended = process().captures.extract(std::this_thread::get_id()).mapped();
  }
  if (!ended.broken) return fake::graph_of(ended);
  destroy_graph(fake::graph_of(ended));
  return nullptr;
}

bool FakeGraphs::is_here(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  return found != process().streams.end() && found->second.device == current_device();
}

bool FakeGraphs::break_captures() {
  bool any = false;
  for (auto& [thread, capture] : process().captures) {
    const bool breaks = std::any_of(capture.ahead.begin(), capture.ahead.end(),
                                    [&](const auto& captured) { return is_here(captured.first); });
    capture.broken |= breaks;
    any |= breaks;
  }
  return any;
}

bool FakeGraphs::is_unusable(abi::Stream stream) {
  const auto waits = [&](const auto& entry) {
    return entry.second.blocking && is_here(entry.first) && capture_of(entry.first) != nullptr;
  };
  const auto& streams = process().streams;
  return stream == nullptr && std::any_of(streams.begin(), streams.end(), waits);
}

fake::Capture* FakeGraphs::capture_of(abi::Graph graph) {
  for (auto& [thread, capture] : process().captures) {
    if (fake::graph_of(capture) == graph) return &capture;
  }
  return nullptr;
}

abi::GraphNode FakeGraphs::add_node(abi::Graph graph, NodeEntry entry) {
  const auto node = reinterpret_cast<abi::GraphNode>(static_cast<uintptr_t>(new_number()));
  entry.graph = graph;
  nodes_[node] = std::move(entry);
  return node;
}

abi::Result FakeGraphs::add_event_node(abi::GraphNode* node, abi::Graph graph, NodeEntry entry) {
  if (capture_of(graph) == nullptr) return misuse("adds to no capture's graph", abi::kInvalidValue);
  if (process().events.count(entry.event) == 0) {
    return misuse("adds a node for an event that there is not", abi::kInvalidHandle);
  }
  *node = add_node(graph, std::move(entry));
  return abi::kSuccess;
}

abi::Result FakeGraphs::GraphAddEventRecordNode(abi::GraphNode* node, abi::Graph graph,
                                                const abi::GraphNode* after, size_t count,
                                                abi::Event event) {
  return add_event_node(
      node, graph, {.kind = NodeEntry::record, .after = {after, after + count}, .event = event});
}

abi::Result FakeGraphs::GraphAddEventWaitNode(abi::GraphNode* node, abi::Graph graph,
                                              const abi::GraphNode* after, size_t count,
                                              abi::Event event) {
  return add_event_node(node, graph,
                        {.kind = NodeEntry::wait, .after = {after, after + count}, .event = event});
}

abi::Result FakeGraphs::GraphAddDependencies(abi::Graph, const abi::GraphNode* from,
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

abi::Result FakeGraphs::GraphRemoveDependencies(abi::Graph, const abi::GraphNode* from,
                                                const abi::GraphNode* to, size_t count) {
  if (options().keeps_edges) return abi::kNotSupported;
  for (size_t i = 0; i < count; ++i) {
    if (std::erase(nodes_.at(to[i]).after, from[i]) == 0) {
      return misuse("removes an edge that is not there", abi::kInvalidValue);
    }
  }
  return abi::kSuccess;
}

abi::Result FakeGraphs::EventRecordWithFlags(abi::Event event, abi::Stream stream, unsigned flags) {
  Capture* const capture = capture_of(stream);
  if (capture == nullptr || flags != abi::kRecordExternal) {
    return misuse("records outside of a capture what only a replay may", abi::kInvalidValue);
  }
  std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  abi::GraphNode node = nullptr;
  const abi::Result added = add_event_node(
      &node, fake::graph_of(*capture), {.kind = NodeEntry::record, .after = ahead, .event = event});
  if (added == abi::kSuccess) ahead = {node};
  return added;
}

abi::Result FakeGraphs::UserObjectCreate(abi::UserObject* object, void* pointer,
                                         abi::HostFunction destroy, unsigned references,
                                         unsigned flags) {
  if (references != 1 || flags != abi::kNoDestructorSync) {
    return misuse("makes a user object in another way", abi::kInvalidValue);
  }
  *object = reinterpret_cast<abi::UserObject>(static_cast<uintptr_t>(new_number()));
  user_objects_[*object] = {pointer, destroy};
  return abi::kSuccess;
}

abi::Result FakeGraphs::UserObjectRelease(abi::UserObject object, unsigned count) {
  const auto found = user_objects_.find(object);
  if (count != 1 || found == user_objects_.end() || found->second.graph != nullptr) {
    return misuse("releases a user object that is not its own", abi::kInvalidValue);
  }
  const UserObjectEntry entry = found->second;
  user_objects_.erase(found);
  entry.destroy(entry.pointer);
  return abi::kSuccess;
}

abi::Result FakeGraphs::GraphRetainUserObject(abi::Graph graph, abi::UserObject object,
                                              unsigned count, unsigned flags) {
  const auto found = user_objects_.find(object);
  if (capture_of(graph) == nullptr || found == user_objects_.end() || count != 1 ||
      flags != abi::kMoveReferences || found->second.graph != nullptr) {
    return misuse("gives a graph what it cannot have", abi::kInvalidValue);
  }
  found->second.graph = graph;
  return abi::kSuccess;
}

void FakeGraphs::destroy_graph(abi::Graph graph) {
  std::vector<UserObjectEntry> gone;
  {
    const std::lock_guard lock(mutex());
    std::erase_if(nodes_, [&](const auto& node) { return node.second.graph == graph; });
    std::erase_if(user_objects_, [&](const auto& object) {
      if (object.second.graph != graph) return false;
      gone.push_back(object.second);
      return true;
    });
  }
  for (const UserObjectEntry& entry : gone) entry.destroy(entry.pointer);
}

std::vector<abi::GraphNode> FakeGraphs::event_nodes(abi::Graph graph) const {
  const std::lock_guard lock(mutex());
  std::vector<abi::GraphNode> found;
  for (const auto& [node, entry] : nodes_) {
    if (entry.graph == graph && entry.event != nullptr) found.push_back(node);
  }
  return found;
}

std::vector<abi::GraphNode> FakeGraphs::copy_nodes() const {
  const std::lock_guard lock(mutex());
  std::vector<abi::GraphNode> found;
  for (const auto& [node, entry] : nodes_) {
    if (entry.kind == NodeEntry::copy) found.push_back(node);
  }
  return found;
}

fake::Capture* FakeGraphs::capture_of(abi::Stream stream) {
  for (auto& [thread, capture] : process().captures) {
    if (capture.ahead.count(stream) != 0) return &capture;
  }
  return nullptr;
}

abi::Result FakeGraphs::join_capture(abi::Stream stream, abi::Graph graph,
                                     const std::vector<abi::GraphNode>& ends) {
  Capture* const capture = capture_of(graph);
  if (capture == nullptr) {
    return misuse("waits outside of a capture for what was recorded in it", abi::kInvalidValue);
  }
  std::vector<abi::GraphNode>& ahead = capture->ahead[stream];
  for (const abi::GraphNode end : ends) {
    if (std::find(ahead.begin(), ahead.end(), end) == ahead.end()) ahead.push_back(end);
  }
  return abi::kSuccess;
}

abi::Result FakeGraphs::StreamIsCapturing(abi::Stream stream, int* status) {
  return StreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr);
}

abi::Result FakeGraphs::StreamGetCaptureInfo(abi::Stream stream, int* status, uint64_t* id,
                                             abi::Graph* graph, const abi::GraphNode** nodes,
                                             size_t* count) {
  const Capture* const capture = capture_of(stream);
  if (is_unusable(stream)) return abi::kStreamCaptureImplicit;
  *status = capture == nullptr ? abi::kCaptureStatusNone
            : capture->broken  ? abi::kCaptureStatusInvalidated
                               : abi::kCaptureStatusActive;
  if (graph != nullptr) *graph = nullptr;
  if (*status != abi::kCaptureStatusActive) return abi::kSuccess;
  if (graph != nullptr) *graph = fake::graph_of(*capture);
  if (id != nullptr) *id = capture->id;
  const std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  const bool plain = ahead.size() == 1 && nodes_.at(ahead[0]).kind == NodeEntry::record;
  if (options().lossy && !plain && nodes != nullptr) return abi::kLossyQuery;
  if (nodes != nullptr) *nodes = ahead.data();
  if (count != nullptr) *count = ahead.size();
  return abi::kSuccess;
}

abi::Result FakeGraphs::StreamUpdateCaptureDependencies(abi::Stream stream, abi::GraphNode* nodes,
                                                        size_t count, unsigned flags) {
  Capture* const capture = capture_of(stream);
  if (capture == nullptr) return misuse("adds edges outside of a capture", abi::kIllegalState);
  if (flags != abi::kAddDependencies) return misuse("drops edges", abi::kInvalidValue);
  std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  for (size_t i = 0; i < count; ++i) {
    if (nodes_.count(nodes[i]) == 0 ||
        std::find(ahead.begin(), ahead.end(), nodes[i]) != ahead.end()) {
      return misuse("adds an edge that is there, or leads from nowhere", abi::kInvalidValue);
    }
    ahead.push_back(nodes[i]);
  }
  return abi::kSuccess;
}

void FakeGraphs::fork_capture(void* from, void* to) {
  const std::lock_guard lock(mutex());
  Capture& capture = *capture_of(static_cast<abi::Stream>(from));
  capture.ahead[static_cast<abi::Stream>(to)] = capture.ahead.at(static_cast<abi::Stream>(from));
}

std::vector<abi::GraphNode> FakeGraphs::edges(abi::GraphNode node) const {
  const std::lock_guard lock(mutex());
  return nodes_.at(node).after;
}

void FakeGraphs::destroy_user_objects() {
  for (const auto& [object, entry] : user_objects_) entry.destroy(entry.pointer);
}

}  // namespace mscclc::cuda
