// What all parts of the fake driver share: its options, the processes that use it, and the list of
// what they have done that the documentation forbids.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/devices/cuda/driver/driver.h"
#include "tests/fakes/cuda/fake_model.h"

namespace mscclc::cuda {

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

class FakeCore {
 public:
  FakeOptions& options() { return options_; }
  /// Makes the calling thread one of process `process`.
  static void enter(int process);
  static int entered();
  /// What the documentation forbids and was done.
  std::vector<std::string> misuses() const;

 protected:
  using Process = fake::Process;
  using Contexts = std::vector<abi::Context>;
  using Processes = std::map<int, std::unique_ptr<Process>>;

  /// For parts, whose core is the whole driver's.
  FakeCore() = default;
  explicit FakeCore(const FakeOptions& options) : options_(options) {}
  ~FakeCore() = default;
  FakeCore(const FakeCore&) = delete;
  FakeCore& operator=(const FakeCore&) = delete;

  /// Held in all that follows, except new_thread().
  std::mutex& mutex() const { return mutex_; }
  /// Notes what was done; returns what the call is to return.
  abi::Result misuse(const std::string& what, abi::Result result);
  size_t misuse_count() const { return misuses_.size(); }
  /// The process of the calling thread.
  Process& process();
  const Processes& processes() const { return processes_; }
  /// The calling thread's stack of contexts, and its capture mode, in a process.
  static Contexts& contexts_of(int process);
  static int& capture_mode_of(int process);
  static Contexts& contexts() { return contexts_of(entered()); }
  static int& capture_mode() { return capture_mode_of(entered()); }
  /// The device of the current context, or -1.
  int current_device();
  uint64_t new_number() { return next_number_++; }
  /// The calling thread has called nothing so far.
  static void new_thread();

 private:
  FakeOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::string> misuses_;
  Processes processes_;
  uint64_t next_number_ = 1;
};

}  // namespace mscclc::cuda
