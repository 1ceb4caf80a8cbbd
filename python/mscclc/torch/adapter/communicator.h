// A communicator of libmscclc whose ranks meet in a store of torch.
#pragma once

#include <mscclc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "python/mscclc/torch/adapter/zero_copy.h"

namespace mscclc::torch_adapter {

/// No plan serves a call. It is thrown before anything was changed, on all ranks alike.
struct NoPlan : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How a rank takes part, and where the others are.
struct Membership {
  c10::intrusive_ptr<c10d::Store> store;
  std::string name;  ///< that no other communicator of the store has
  int rank = 0;
  int ranks = 1;
  int device = MSCCLC_HOST;
  int beside = 1;  ///< communicators of the device whose calls ranks make in different orders
  std::chrono::milliseconds timeout{0};
  int32_t order = MSCCLC_ORDER_DEFAULT;  ///< of calls that do not say it
  bool ends_process = false;             ///< mscclc_config_t::ends_process
};

/// Created at its first use, by the thread that uses it. Errors are exceptions: NoPlan, or
/// c10::DistBackendError with the library's text.
class Communicator {
 public:
  explicit Communicator(Membership membership) : membership_(std::move(membership)) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Waits until all ranks do the same; the second time nothing.
  void create();
  /// Queues a call on a stream of the device; on the host device it waits for it.
  void call(const mscclc_call_t& call, mscclc_stream_t stream);
  /// The same; symmetric memory is used where it lies.
  void call(mscclc_call_t call, mscclc_stream_t stream, const SymmetricBuffers& symmetric);
  /// True if call() would wait for other ranks on the host.
  bool waits(const mscclc_call_t& call, mscclc_stream_t stream);
  /// Throws what has gone wrong in calls that were queued.
  void check() const;
  /// Ends all calls of all ranks. Any thread.
  void abort(const std::string& why);
  /// Ends the wait for ranks that have not come to the store. Any thread.
  void give_up() { given_up_ = true; }

  /// Memory of the device, all zeros, that other processes can map.
  mscclc_memory_t* allocate(size_t bytes);
  void write(void* to, const void* from, size_t bytes);
  /// Collective: lets all ranks map memory of each, under one number.
  uint64_t share(void* address, size_t bytes);
  /// Where this process sees what a rank has shared, and how much it is.
  struct Seen {
    void* address = nullptr;  ///< nullptr: it cannot be accessed from here
    size_t bytes = 0;
  };
  Seen shared(uint64_t number, int rank);
  void unshare(uint64_t number);

  int rank() const { return membership_.rank; }
  int ranks() const { return membership_.ranks; }
  std::chrono::milliseconds timeout() const { return membership_.timeout; }

 private:
  void check_result(mscclc_result_t result) const;
  static int set(void* self, const char* key, const void* value, size_t bytes);
  static int get(void* self, const char* key, void* value, size_t* bytes, uint32_t timeout_ms);
  static int remove(void* self, const char* key);
  static int given_up(void* self);

  const Membership membership_;
  const pid_t process_ = ::getpid();
  c10::intrusive_ptr<c10d::Store> store_;  ///< a clone, which may wait while others use the store
  std::atomic<mscclc_comm_t*> comm_{nullptr};
  mscclc_stream_t host_stream_ = nullptr;
  std::atomic<bool> given_up_{false};
  RegisteredRanges registered_;
  mutable std::atomic<bool> reported_{false};  ///< a failure has been reported
  std::mutex aborting_;  ///< guards why_, and that an abort meets a communicator that lives
  std::string why_;
};

}  // namespace mscclc::torch_adapter
