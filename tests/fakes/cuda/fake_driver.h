// A CUDA driver for tests: a model of GPUs, of the processes that use them, and of all that they
// hold there. It does what the driver's documentation says, keeps a list of what the documentation
// forbids (misuses) and of what has not been given back (leaks), and can let any call fail.
//
//   FakeDriver fake({.devices = 2});
//   auto device = CudaDevice::open(fake.driver(), {.ordinal = 0}, ...);
//   fake.enter(1);                        // from here on this thread belongs to process 1
//   fake.fail_call(3);                    // the third call from now on fails
//   CHECK(fake.misuses().empty());        // and once all is destroyed:
//   CHECK(fake.leaks().empty());
//
// Device addresses are numbers that nothing can read; host memory is real. There is one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/devices/cuda/driver/driver.h"

namespace mscclc::cuda {

/// An image of kernels that its ModuleLoadData() takes: a cubin that holds this text
/// (fake_modules.cc).
std::string fake_cubin(std::string_view text);

struct FakeOptions {
  int devices = 2;
  bool mappings = true;  ///< virtual memory management
  bool fd = true;        ///< descriptors of allocations
  bool fabric = false;   ///< attribute: fabric handles
  bool imex = true;      ///< ... and the daemon that lets them be made
  bool multicast = false;
  bool writes = true;   ///< the attribute that says that streams write 64-bit values
  bool peers = true;    ///< GPUs reach each other
  bool atomics = true;  ///< ... by NVLink, which carries atomics
  bool alone = false;   ///< each process sees one GPU, of its own number, as cuda:0
  int capability = 9;   ///< major
  int multiprocessors = 132;
  bool lossy = false;        ///< edges of captures have data: queries do not return them
  bool keeps_edges = false;  ///< captures let no edge go, as those that allocate memory
  bool deferred = false;     ///< work on streams is done when it is waited for
  bool dma_buf = false;      ///< memory of GPUs can be given to network devices as a descriptor
  bool by_pci = false;       ///< ... by PCI, where there is another way, too
  uint64_t granule = 65536;
  uint64_t multicast_granule = 131072;
  uint64_t memory = 1ull << 40;  ///< of a GPU, in bytes
};

class FakeDriver {
 public:
  explicit FakeDriver(FakeOptions options = {});
  ~FakeDriver();

  const Driver& driver() const { return driver_; }
  FakeOptions& options() { return options_; }
  /// Makes the calling thread one of process `process`.
  static void enter(int process);
  static int entered();

  /// The n-th call from now on (1: the next) fails with `result`. Calls that free something or wait
  /// do so all the same: the driver may report errors of earlier work there.
  void fail_call(uint64_t n, abi::Result result = abi::kUnknown);
  /// The next call of a function fails, from whichever thread.
  void fail_function(std::string_view name);
  /// How many calls there have been, and of one function.
  uint64_t calls() const;
  uint64_t calls(std::string_view name) const;
  /// The calling thread captures a stream of its process in an abi::CaptureMode, until it ends
  /// that: what the mode forbids is refused meanwhile, and is a misuse.
  void begin_capture(int mode, void* stream = nullptr);
  abi::Graph end_capture();
  /// As if the user had destroyed a graph, and what was made from it.
  void destroy_graph(abi::Graph graph);
  /// Puts what a capture has taken on a stream, as the launch of its graph. REQUIRES: the stream's
  /// context is retained.
  void replay(abi::Graph graph, void* stream);
  /// Another stream joins the capture of `from`, after what that has captured so far.
  void fork_capture(void* from, void* to);
  /// What the runtime's kernels do here: when its turn on the stream comes, a launch adds `blocks`
  /// to the count at `begun` (0: none). In a capture it becomes a node; returns that, else nullptr.
  abi::GraphNode launch(void* stream, abi::Address begun, uint32_t blocks);
  /// A launch of a module's kernel.
  struct KernelLaunch {
    abi::Function function;
    uint32_t blocks, threads;
    bool early;
  };
  std::vector<KernelLaunch> kernel_launches() const;
  /// How to find, in the first parameter of a module's kernel, the count that it adds to.
  void set_begun_of(std::function<abi::Address(const void* plan)> begun_of);
  /// The nodes of a graph that record an event, or wait for one.
  std::vector<abi::GraphNode> event_nodes(abi::Graph graph) const;
  /// The nodes that a node comes after.
  std::vector<abi::GraphNode> edges(abi::GraphNode node) const;
  /// Launches on a stream whose turn has come.
  uint32_t run_launches(void* stream);
  int priority(void* stream);
  /// A stream of a green context with so many multiprocessors.
  void* create_green_stream(uint32_t multiprocessors);
  /// As if a stream had been destroyed, and another created that got its handle.
  void rename_stream(void* stream);
  /// Streams of the highest priority in the calling thread's process.
  int urgent_streams();
  /// From now on it answers as at the process's end.
  void deinitialise();

  /// What the documentation forbids and was done.
  std::vector<std::string> misuses() const;
  /// What exists, of all processes: one line each.
  std::vector<std::string> leaks();
  /// Bytes allocated on a GPU.
  uint64_t allocated(int device);

  /// What others in a process allocate; freed by driver().MemFree.
  abi::Address allocate_pooled(int device, uint64_t bytes);
  /// As if the memory at an address had been freed, and as much allocated, which lies there again.
  void allocate_again(abi::Address address);
  abi::Address allocate_managed(int device, uint64_t bytes);
  /// Contents as the calling process's mapping shows them.
  std::vector<uint8_t> bytes_at(abi::Address address, uint64_t bytes);
  void set_bytes(abi::Address address, const std::vector<uint8_t>& bytes);
  /// For an address in a mapping of a multicast object: the first byte of each member's memory.
  std::vector<int> multicast_bytes(abi::Address address);

 private:
  /// Where no process has anything.
  static constexpr abi::Address kFirstAddress = 0x400000000000;

  struct Physical;
  struct Team;
  struct HandleEntry;
  struct MappingEntry;
  struct PlainEntry;
  struct IpcEntry;
  struct Process;
  struct StreamEntry;
  struct EventEntry;
  struct ModuleEntry;
  struct Capture;
  struct NodeEntry;
  struct UserObjectEntry;
  struct Span;

#define FUNCTION(name, version, need, parameters) abi::Result name parameters;
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION

  static FakeDriver& active();
  abi::Result call(std::string_view name, const std::function<abi::Result()>& body);
  abi::Result act(std::string_view name, const std::function<abi::Result()>& body);
  /// How many threads of a process are in calls that one of them at a time may make.
  int count_changing(int process, int more);
  abi::Result misuse(const std::string& what, abi::Result result);
  Process& process();
  /// Does a capture that is under way forbid this thread a call?
  bool is_forbidden(std::string_view name);
  /// What belongs to a GPU's context; "" if nothing does.
  std::string left_in_context(Process& process, int device);
  /// The device of the current context, or -1.
  int current_device();
  void collect_descriptors();
  uint64_t used(int device);
  std::shared_ptr<Physical> allocate_physical(int device, uint64_t bytes, int handle_types,
                                              abi::Result& result);
  abi::Address new_addresses(uint64_t bytes, uint64_t alignment = 1);
  void forget_unused_handle(Process& process, abi::Handle handle);
  /// What `bytes` bytes at an address are, for a device; empty: misuse was noted.
  bool resolve(Process& process, abi::Address address, uint64_t bytes, int device, Span& span);
  bool is_function(abi::Function function);
  abi::GraphNode add_node(abi::Graph graph, NodeEntry entry);
  abi::Result add_event_node(abi::GraphNode* node, abi::Graph graph, NodeEntry entry);
  Capture* capture_of(abi::Graph graph);
  void count_launch(abi::Stream stream, abi::Address begun, uint32_t blocks);
  void replay_node(abi::GraphNode node, abi::Stream stream, std::set<abi::GraphNode>& done);
  abi::GraphNode enqueue_launch(abi::Stream stream, abi::Address begun, uint32_t blocks);
  abi::Result submit(abi::Stream stream, std::function<void()> work);
  /// Work that is not done, and holds up what follows, while it returns false.
  abi::Result submit_wait(abi::Stream stream, std::function<bool()> work);
  Capture* capture_of(abi::Stream stream);
  bool run(StreamEntry& stream);

  FakeOptions options_;
  Driver driver_;
  mutable std::mutex mutex_;
  uint64_t calls_ = 0, fail_at_ = 0;
  abi::Result fail_with_ = abi::kUnknown;
  std::string fail_function_;  ///< "": none
  std::map<std::string_view, uint64_t> calls_of_;
  std::map<int, int> changing_;  ///< by process: count_changing()
  bool deinitialised_ = false;
  std::vector<std::string> misuses_;
  std::map<int, std::unique_ptr<Process>> processes_;
  std::map<uint64_t, std::shared_ptr<Physical>> descriptors_;  ///< by inode of the pipe
  std::map<uint64_t, int> descriptor_ends_;                    ///< our end of it
  std::map<uint64_t, std::weak_ptr<Physical>> fabric_;         ///< by the number in the handle
  std::vector<std::weak_ptr<Physical>> all_;
  std::map<abi::GraphNode, NodeEntry> nodes_;
  std::map<abi::UserObject, UserObjectEntry> user_objects_;
  std::vector<KernelLaunch> kernel_launches_;
  std::function<abi::Address(const void* plan)> begun_of_;
  uint64_t next_number_ = 1;
  abi::Address next_address_ = kFirstAddress;
};

}  // namespace mscclc::cuda
