// What the runtime needs of a device: memory that peers can map, streams, and launches. One per
// rank: a GPU (runtime/devices/cuda), or this machine's processor and shared memory
// (runtime/devices/host).
//
// All calls set the device that they need and restore the one that was current.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/dtypes.h"
#include "ir/support/result.h"
#include "runtime/api/lane.h"
#include "runtime/api/link.h"
#include "runtime/api/stream.h"

namespace mscclc {

class Bootstrap;
class GemmStreams;
class KernelMaker;
struct MemoryHandle;
namespace device {
struct LaunchPlan;
}

/// Memory that frees itself. Freeing never throws and never makes a teardown fail.
/// Thread safety: immutable; any thread may destroy it.
class Memory {
 public:
  virtual ~Memory() = default;
  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 protected:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Memory of this rank, from any allocator, that peers have mapped. Holds the allocation where the
/// device can, so that its memory cannot become another allocation's while this lives.
class HeldMemory {
 public:
  virtual ~HeldMemory() = default;
  /// Does the same allocation still lie at the address? False: it was freed; whatever is there now
  /// is not what peers have mapped.
  [[nodiscard]] virtual bool is_there() const = 0;
};

/// A point in the work of a stream. Thread safety: one thread at a time.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  /// True if all work queued before it is known to be done. Does not wait.
  [[nodiscard]] virtual bool reached() = 0;
};

/// Keeps the work of several streams in the order in which it is put on them. Thread safety: one
/// thread at a time.
class StreamChain {
 public:
  virtual ~StreamChain() = default;
  /// What is put on `stream` from now on begins after all that stood before an earlier put_last().
  /// May wait, once: when there is a second stream for the first time.
  [[nodiscard]] virtual bool follow(StreamHandle stream, Diagnostics& diagnostics) = 0;
  /// All that is on `stream` by now is the end of the chain. The stream may be destroyed then.
  /// REQUIRES: the last follow() was of this stream.
  [[nodiscard]] virtual bool put_last(StreamHandle stream, Diagnostics& diagnostics) = 0;
};

/// Kernels that were compiled for one plan (docs/compiled_kernels.md), loaded on a device, which
/// must outlive them. Destroy them when none runs or is captured. Thread safety: the device's.
class CompiledKernels {
 public:
  using Kernel = const void*;
  virtual ~CompiledKernels() = default;
  /// nullptr: there is none of this name.
  virtual Kernel find(const std::string& name) const = 0;
  /// Device::fits() and Device::launch() of a call that a kernel runs, not the interpreter. It gets
  /// the plan and, as its second parameter, what `arguments` points to.
  [[nodiscard]] virtual std::optional<uint32_t> fits(Kernel kernel, const device::LaunchPlan& plan,
                                                     Diagnostics& diagnostics) = 0;
  [[nodiscard]] virtual bool launch(Kernel kernel, const device::LaunchPlan& plan,
                                    const void* arguments, StreamHandle stream,
                                    Diagnostics& diagnostics) = 0;
};

/// Memory of a rank, in one allocation; nullptr: this rank has none.
struct SwitchRegion {
  const void* address;
  uint64_t bytes;
};

/// Memory of several ranks' devices that a switch between them reads and writes at once. Destroy it
/// when no rank of the team launches any more. Thread safety: immutable.
class SwitchTeam {
 public:
  virtual ~SwitchTeam() = default;
  /// Byte 0 of the i-th region of all members (device::BaseAddress::multicast); nullptr: these
  /// cannot be used at once.
  virtual uint8_t* address(size_t region) const = 0;
};

/// What Device::scale() multiplies: each product is taken in the type in which the element is exact
/// (f32, or f64 of f64), and rounded to the element's.
struct Scaling {
  void* to;          ///< may be `from`, and overlaps it in no other way
  const void* from;  ///< both at any address; at multiples of 16 it is faster
  uint64_t count;    ///< elements
  Dtype dtype;       ///< a float
  double factor;
};

/// Thread safety: a device is for one thread at a time, except for memory and marks that free
/// themselves, and drain(), for which any thread will do. Devices are independent of each other.
class Device {
 public:
  virtual ~Device() = default;
  /// For reports: "host", "cuda:0 (NVIDIA H200)".
  virtual std::string name() const = 0;
  /// Makes the device current in the calling thread until the thread ends: to be called first in a
  /// thread that uses only this device, such as a proxy. Other threads need not call it.
  [[nodiscard]] virtual bool bind_thread(Diagnostics&) { return true; }
  /// How long the device may wait for another process, such as for a descriptor: a communicator
  /// sets its own.
  virtual void set_timeout(std::chrono::milliseconds) {}
  /// Such a wait calls `over` now and then, and ends when it returns true. Empty: it calls nothing.
  virtual void set_end_of_waits(std::function<bool()> /*over*/) {}

  /// What other ranks' devices need to know of this one for link_to(). nullopt: reported.
  virtual std::optional<std::vector<uint8_t>> link_name(Diagnostics&) {
    return std::vector<uint8_t>();
  }
  /// What connects this device to another rank's, which gave `peer`. nullopt: reported.
  virtual std::optional<Link> link_to(std::span<const uint8_t> /*peer*/, Diagnostics&) {
    return Link{};
  }

  /// Memory of the device, all zeros, that peers can map. `what` names it in errors.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                                         Diagnostics& diagnostics) = 0;
  /// Host memory, all zeros, that the host and running blocks see at the same address. Other
  /// processes need not be able to map it.
  [[nodiscard]] virtual std::unique_ptr<Memory> allocate_visible(uint64_t bytes,
                                                                 const std::string& what,
                                                                 Diagnostics& diagnostics) = 0;

  /// How peers may map `bytes` bytes at `address`, from any allocator. Errors (cannot-share): with
  /// the ways that were tried, and why each failed. The offers are valid while the handle's `keep`
  /// lives.
  [[nodiscard]] virtual std::optional<MemoryHandle> export_memory(const void* address,
                                                                  uint64_t bytes,
                                                                  Diagnostics& diagnostics) = 0;
  /// Records which allocation is at an address now. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<HeldMemory> hold_memory(const void* address, uint64_t bytes,
                                                                Diagnostics& diagnostics) = 0;
  /// Maps a peer's piece; data() is the piece itself. The mapping may outlive the exporter.
  [[nodiscard]] virtual std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                                              Diagnostics& diagnostics) = 0;

  /// The same of a piece that only lanes are to write: where they need no mapping there is none,
  /// and data() is an address that must not be accessed, but that blocks may name to the proxy.
  [[nodiscard]] virtual std::unique_ptr<Memory> reach_memory(const MemoryHandle& handle,
                                                             Diagnostics& diagnostics) {
    return import_memory(handle, diagnostics);
  }

  /// Copies between host and device memory, and waits.
  [[nodiscard]] virtual bool write(void* to, const void* from, uint64_t bytes,
                                   Diagnostics& diagnostics) = 0;
  [[nodiscard]] virtual bool read(void* to, const void* from, uint64_t bytes,
                                  Diagnostics& diagnostics) = 0;

  /// Copies between any two places that the device can address, in order on a stream. Does not
  /// wait.
  [[nodiscard]] virtual bool copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
                                  Diagnostics& diagnostics) = 0;

  /// Multiplies elements, in order on a stream. Does not wait.
  [[nodiscard]] virtual bool scale(const Scaling& what, StreamHandle stream,
                                   Diagnostics& diagnostics) = 0;

  /// Names the resource in which this device's blocks need room: ranks of a communicator that give
  /// the same name share it. Empty: there is room for any number.
  virtual std::vector<uint8_t> room() const { return {}; }
  /// Checks that a launch like `plan` is resident as a whole, beside those of plan.ranks_here - 1
  /// other ranks; returns how many blocks like its own are at once. Errors (too-many-blocks).
  [[nodiscard]] virtual std::optional<uint32_t> fits(const device::LaunchPlan& plan,
                                                     Diagnostics& diagnostics) = 0;
  /// True if short programs travel with a launch (LaunchPlan::carried).
  virtual bool carries_programs() const { return false; }
  /// True if its blocks run the row functions of any plan; otherwise only compiled kernels do.
  virtual bool runs_rows() const { return false; }
  /// True if launches may begin early (LaunchPlan::early). launch() knows which of them.
  virtual bool launches_early() const { return false; }
  /// What kernels of plans are compiled for, as their files are called: "sm_90"; "": this device
  /// runs none.
  virtual std::string architecture() const { return ""; }
  /// How many thread blocks of a kernel that fills one each run at once; 0: as many as there are.
  virtual uint32_t multiprocessors() const { return 0; }
  /// May switch channels use multicast of the NVLink switch? join_switch() may still find that
  /// these ranks cannot.
  virtual bool may_multicast() const { return false; }
  /// How many calls may be queued whose copies the host makes: with more, a launch may wait inside
  /// the driver with a lock that these copies need. 0: any number.
  virtual uint32_t max_copy_calls() const { return 0; }
  /// Loads kernels of a plan.
  virtual Result<std::unique_ptr<CompiledKernels>> load_kernels(
      std::span<const uint8_t> /*image*/) {
    return Error{"it runs no kernels of plans"};
  }
  /// Who compiles such kernels while the job runs (kernel_maker.h); nullptr: nothing does. It
  /// outlives the device.
  virtual KernelMaker* kernel_maker() { return nullptr; }
  /// Starts one call on a stream. Does not wait.
  [[nodiscard]] virtual bool launch(const device::LaunchPlan& plan, StreamHandle stream,
                                    Diagnostics& diagnostics) = 0;
  /// Waits until all work on a stream has ended.
  [[nodiscard]] virtual bool synchronize(StreamHandle stream, Diagnostics& diagnostics) = 0;
  /// Waits until all work on all streams has ended that is not in a graph yet to be launched.
  [[nodiscard]] virtual bool drain(Diagnostics&) { return true; }
  /// Marks the end of what is on a stream by now: with `mark`, which is not in use any more, or
  /// with a new one if it is nullptr. REQUIRES: the stream is not captured.
  [[nodiscard]] virtual bool mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark,
                                  Diagnostics& diagnostics) = 0;
  /// Records an event that the caller made (a CUevent of this GPU) at the end of what is on a
  /// stream by now, or in the graph that captures it. False: reported; processors have no such
  /// events.
  [[nodiscard]] virtual bool record_event(void* /*event*/, StreamHandle, Diagnostics& diagnostics) {
    diagnostics.error("bad-call", {},
                      "an event of CUDA's cannot be recorded: ranks run on processors");
    return false;
  }
  /// A chain without links. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<StreamChain> chain_streams(Replays replays,
                                                                   Diagnostics& diagnostics) = 0;
  /// True if what is put on the stream now is captured in a graph.
  virtual bool is_capturing(StreamHandle) { return false; }
  /// Calls `gone` once when the graph that the stream is being captured into is gone, with all that
  /// was instantiated from it, and no launch of these runs any more. It may come from any thread,
  /// also one that the driver holds up: it must call nothing of the device, wait for nothing and
  /// throw nothing. False: the device cannot know that, and `gone` is never called.
  [[nodiscard]] virtual bool at_end_of_graph(StreamHandle, std::function<void()> /*gone*/) {
    return false;
  }
  [[nodiscard]] virtual StreamHandle create_stream(Diagnostics& diagnostics) = 0;
  virtual void destroy_stream(StreamHandle stream) = 0;

  /// What products beside plans need of its streams (gemm.h). nullptr: this device has none.
  virtual GemmStreams* gemms() { return nullptr; }

  /// Makes ready for the lane that `peer` opens to this rank: LanePeer, without an offer. The end
  /// is asked for on all ranks that lanes lead to, before any of them is opened. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<LaneEnd> await_lane(const LanePeer& /*peer*/,
                                                            Diagnostics&) {
    return std::make_unique<LaneEnd>();
  }
  /// Opens the lane to a peer's memory. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<Lane> open_lane(const LanePeer& peer,
                                                        Diagnostics& diagnostics) = 0;

  /// Collective, of all ranks: joins the regions of the ranks `members`, the same number on each,
  /// at a switch. `team` stays nullptr on all members where that is impossible, and on ranks that
  /// are not members: plans are right without it. False: the ranks could not communicate (errors of
  /// the bootstrap).
  [[nodiscard]] virtual bool join_switch(Bootstrap&, const std::vector<uint32_t>& /*members*/,
                                         const std::vector<SwitchRegion>& /*regions*/,
                                         std::unique_ptr<SwitchTeam>& /*team*/, Diagnostics&) {
    return true;
  }
};

}  // namespace mscclc
