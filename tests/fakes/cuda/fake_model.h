// What the fake driver knows: memory, handles, mappings, contexts and streams.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/devices/cuda/driver/driver.h"

namespace mscclc::cuda::fake {

struct Physical;

/// A multicast object's members and what each has bound.
struct Team {
  struct Binding {
    uint64_t bytes;
    std::shared_ptr<Physical> memory;
    uint64_t offset;
  };
  unsigned size;
  std::set<int> devices;
  std::map<int, std::map<uint64_t, Binding>> bindings;  ///< by device, then by offset
};

/// An allocation, which lives while a handle, a mapping or a descriptor refers to it; or a
/// multicast object (`team`).
struct Physical {
  int device = -1;
  uint64_t bytes = 0;
  int handle_types = 0;
  bool rdma = false;  ///< made for network devices
  uint64_t id = 0;    ///< of the buffer: comes only once
  std::unique_ptr<Team> team;
  std::vector<uint8_t> data;  ///< made when first touched: not zeros
  uint8_t* shared = nullptr;  ///< the same, once there is a dma-buf: memory of a file
  int file = -1;

  Physical() = default;
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical();
  uint8_t* at(uint64_t offset) {
    if (shared != nullptr) return shared + offset;
    if (data.empty()) data.assign(bytes, 0xa5);
    return data.data() + offset;
  }
  /// A descriptor of the memory, whose holders may map it; -1: there is none.
  int share();
};

struct HandleEntry {
  std::shared_ptr<Physical> memory;
  int references;
  bool made_here = false;  ///< not imported: it belongs to the process's context of its GPU
};

struct MappingEntry {
  uint64_t bytes;
  abi::Handle handle;
  std::shared_ptr<Physical> memory;
  std::set<int> devices;  ///< that may read and write
};

/// As of cudaMalloc, of a pool, managed.
struct PlainEntry {
  std::shared_ptr<Physical> memory;
  uintptr_t pool = 0;
  bool managed = false;
};

struct IpcEntry {
  std::shared_ptr<Physical> memory;
  int opened;
  abi::Address source;
};

struct StreamEntry {
  int device;
  uint64_t id;
  int priority;
  std::deque<std::function<bool()>> work;  ///< false: not yet
  bool failed = false;                     ///< work has gone wrong: all waits say so
  uint32_t launches = 0;                   ///< that have begun
  uint32_t multiprocessors = 0;            ///< of its green context; 0: it has none
  bool blocking = false;                   ///< it and stream 0 wait for each other
};

struct EventEntry {
  int device;
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  ///< of the last record
  abi::Graph graph = nullptr;             ///< of the capture that has recorded it last, if one has
  std::vector<abi::GraphNode> ends = {};  ///< what came before it there
};

/// A capture that is under way.
struct Capture {
  int mode;
  uint64_t id;
  std::map<abi::Stream, std::vector<abi::GraphNode>> ahead;  ///< by stream that is in it
  bool broken = false;                                       ///< it will end without a graph
};

/// The graph that a capture makes.
inline abi::Graph graph_of(const auto& capture) {
  return reinterpret_cast<abi::Graph>(static_cast<uintptr_t>(capture.id));
}

/// A node of a graph: a launch, or a record of an event, or a wait for one.
struct NodeEntry {
  enum Kind { launch, record, wait, copy } kind;
  std::vector<abi::GraphNode> after;
  abi::Event event = nullptr;
  abi::Address begun = 0;  ///< of a launch
  uint32_t blocks = 0;
  abi::Graph graph = nullptr;
  abi::Address to = 0, from = 0;  ///< of a copy
  size_t bytes = 0;
};

/// What a graph keeps, or its maker.
struct UserObjectEntry {
  void* pointer;
  abi::HostFunction destroy;
  abi::Graph graph = nullptr;  ///< that has the only reference; nullptr: its maker has
};

/// What addresses resolve to: `at` is valid while the memory lives.
struct Span {
  uint8_t* at;
};

struct ModuleEntry {
  int device = 0;
  std::map<std::string, abi::Function> kernels;
};

/// Pinned host memory.
struct FreeBytes {
  void operator()(uint8_t* bytes) const { std::free(bytes); }
};
using PinnedBytes = std::unique_ptr<uint8_t, FreeBytes>;

struct Process {
  int id = 0;
  std::map<abi::Handle, HandleEntry> handles;
  std::map<abi::Address, uint64_t> reservations;
  std::map<abi::Address, MappingEntry> mappings;
  std::map<abi::Address, PlainEntry> plain;
  std::map<abi::Address, IpcEntry> ipc;
  std::map<void*, std::pair<uint64_t, PinnedBytes>> host;
  std::map<int, int> contexts;                ///< device: how often it is retained
  std::set<std::pair<int, int>> peers;        ///< device, whose memory it may use
  std::set<std::pair<uintptr_t, int>> pools;  ///< pool, device that may use it
  std::map<abi::Stream, StreamEntry> streams;
  std::map<abi::Event, EventEntry> events;
  std::map<abi::Module, ModuleEntry> modules;
  std::map<std::thread::id, Capture> captures;  ///< by the thread that began it

  abi::Context context(int device) const {
    return reinterpret_cast<abi::Context>(static_cast<uintptr_t>((id + 1) * 1000 + device + 1));
  }
};

/// The entry of a map by address whose range holds [address, address + bytes); end(): none.
template <class Map, class BytesOf>
typename Map::iterator find_range(Map& map, abi::Address address, uint64_t bytes,
                                  const BytesOf& bytes_of) {
  auto entry = map.upper_bound(address);
  if (entry == map.begin()) return map.end();
  --entry;
  const uint64_t offset = address - entry->first, size = bytes_of(entry->second);
  return offset < size && bytes <= size - offset ? entry : map.end();
}

}  // namespace mscclc::cuda::fake
