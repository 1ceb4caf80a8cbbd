// A GPU without a GPU: grids of thread blocks whose threads are fibers of one thread of the host.
// Device code that is compiled for the host (words.h, access.h) calls what stands here.
//
// Threads run in an order that a seed decides. With seed 0 each runs until it must wait. With
// others they also stop between two accesses, in warps or not, and plain stores arrive late
// (late_stores.h), as far as the memory model of PTX allows: a thread that misses a meeting of its
// block, or a lane that counts on others, is found out.
//
// Time is counted, not measured: it goes on when nothing can move, so that a wait that does not end
// is given up after its patience, however busy the machine is.
//
// Thread safety: one grid runs at a time, on the thread that calls run().
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/cpu/fiber.h"
#include "executor/cuda/host/cuda_words.h"
#include "executor/cuda/host/launches.h"
#include "executor/cuda/host/multicast.h"
#include "executor/cuda/host/run_queue.h"
#include "executor/cuda/host/services.h"

namespace mscclc::cuda::host {

/// Where the thread that runs is in its grid.
struct GridPlace {
  dim3 thread, block, block_size;
  uint32_t cluster_blocks = 1;
};

class Gpu {
 public:
  /// The one that device code runs on.
  static Gpu& get();

  /// Of all that runs from now on.
  void set_seed(uint64_t seed);

  /// Where nothing can move, threads of the host may still end what hangs: run() waits for them for
  /// some seconds.
  void set_waits_for_host(bool waits) { waits_for_host_ = waits; }

  /// What others do while blocks run, such as a proxy.
  Services& services() { return services_; }

  /// A kernel; without blocks a function of the host, which comes after the launches ahead.
  void launch(Stream& stream, const Shape& shape, std::function<void()> kernel);
  /// Runs all launches to their end. False: threads wait for what never comes, and none gives up.
  /// The launches are then over all the same.
  bool run();
  /// Launches of one stream that have run beside one another since set_seed(), at most.
  uint32_t most_at_once() const { return most_at_once_; }

  // For the thread that runs.

  Thread& now() { return *now_; }
  const GridPlace& here() const { return here_; }
  bool is_adversarial() const { return seed_ != 0; }
  /// Between two accesses: others may run.
  void step() {
    if (is_adversarial() && dice_.below(4) == 0) hand_over();
  }
  /// A poll was in vain: goes on when something may have changed.
  void await_change();
  /// Something was written that others may wait for.
  void note_change() { ++changes_; }
  void meet_block();
  /// The threads of all blocks of the cluster meet, as those of a block.
  void meet_cluster();
  uint32_t meet_warp(uint32_t mask, uint32_t vote);
  /// The threads of a warp that `mask` names make their accesses as one instruction: nothing comes
  /// between them, and stores are seen together.
  void access_together(uint32_t mask, std::function<void()> access);
  [[noreturn]] void end_thread();
  void let_next_begin();
  void await_launch_ahead();
  uint64_t nanoseconds() const { return clock_; }
  /// A clock that goes on whenever it is read.
  uint64_t tick() { return ++ticks_; }
  /// Shared memory of the thread's block that is known by `key`.
  void* shared(const void* key, uint64_t bytes);
  /// The same of a block of the thread's cluster, which has it already. Ends the program if all of
  /// that block's threads have ended, whose shared memory would be others'.
  void* shared_of_part(uint32_t part, const void* key);

  void store(void* to, const void* from, uint32_t bytes);
  /// Stores that the thread knows of, and that touch these bytes, are done.
  void settle(const void* at, uint32_t bytes);
  /// All stores that the thread knows of are done: those before its last meeting, and its own.
  void publish();

 private:
  static void main(void* gpu);
  void hand_over();
  void suspend(Thread::State state);
  void end();
  void complete_meetings(Block& block);
  void complete_warp(Block& block, uint32_t first, uint32_t mask, uint32_t ballot);
  bool begin_launches();
  bool may_begin(const Launch& launch) const;
  void begin(Launch& launch);
  void end_launch(Launch& launch);
  bool move();
  bool serve();
  bool store_late();
  void resume(Thread& thread);
  void abandon();

  FiberPool fibers_;
  uint64_t seed_ = 0;
  Dice dice_{0};
  bool lazy_services_ = false;
  Services services_;
  std::vector<Stream*> streams_;  ///< with launches
  RunQueue queue_;
  Thread* now_ = nullptr;
  GridPlace here_;
  uint64_t changes_ = 1, clock_ = 1, ticks_ = 0;
  uint32_t together_ = 0;  ///< not 0: stores are of this group
  uint32_t groups_ = 0;
  uint32_t live_launches_ = 0;  ///< that have not ended
  uint32_t most_at_once_ = 0;
  bool look_for_launches_ = false, waits_for_host_ = false;
};

/// What device code finds, whose words name none of it: so there is one.
struct Machine {
  Gpu gpu;
  Switch gpu_switch;
  Stream default_stream;  ///< of launches that name none
  static Machine& get();
};

/// Shared memory of the running thread's block, for the one variable of type T that a kernel has.
/// Its bytes are not zero at first.
template <class T>
inline constexpr char kSharedKey = 0;
template <class T>
T& shared() {
  return *static_cast<T*>(Gpu::get().shared(&kSharedKey<T>, sizeof(T)));
}
template <class T>
T& shared_of_part(uint32_t part) {
  return *static_cast<T*>(Gpu::get().shared_of_part(part, &kSharedKey<T>));
}

}  // namespace mscclc::cuda::host
