// What the handles of the C interface hold, and which of them there are.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/contract/contract.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/overlap.h"
#include "runtime/api/plan_registry.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/gemm_callback.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "runtime/doors/c/mscclc.h"
#include "runtime/support/observe/one_thread.h"
#include "runtime/support/process/forks.h"

namespace mscclc::capi {

/// What every handle has.
struct Handled {
  mutable std::atomic<uint32_t> inside{0};  ///< functions that use it now
};

}  // namespace mscclc::capi

/// The marks of a stream, which work reaches in their order.
struct StreamMarks {
  uint64_t last = 0, reached = 0;
  std::deque<std::unique_ptr<mscclc::StreamMark>> open;  ///< of those from reached + 1 on
};

struct mscclc_comm : mscclc::capi::Handled {
  std::shared_ptr<mscclc::Device> device;
  std::map<mscclc_stream_t, StreamMarks> marks;
  std::shared_ptr<mscclc::PlanRegistry> registry;
  /// These live until the last object that overlaps has gone, too.
  std::shared_ptr<mscclc::Communicator> communicator;
  std::shared_ptr<mscclc::Collectives> collectives;  ///< goes first
  std::shared_ptr<mscclc::OverlapTurns> turns = mscclc::make_overlap_turns();
  std::shared_ptr<mscclc::capi::SharedLibraries> libraries =
      std::make_shared<mscclc::capi::SharedLibraries>();
  mscclc_config_t config = MSCCLC_CONFIG_INIT;  ///< without the registry
  /// Its plans know it, too.
  std::shared_ptr<std::atomic<bool>> finalized = std::make_shared<std::atomic<bool>>(false);
};

struct mscclc_registry : mscclc::capi::Handled {
  std::shared_ptr<mscclc::PlanRegistry> plans;
};

struct mscclc_plan : mscclc::capi::Handled {
  int32_t device;                                      ///< mscclc_config_t::device
  std::shared_ptr<mscclc::OneThread> one_thread;       ///< of its communicator
  std::shared_ptr<const std::atomic<bool>> finalized;  ///< likewise
  std::weak_ptr<mscclc::Communicator> communicator;
  std::unique_ptr<mscclc::Executable> executable;
  uint32_t rank = 0;
  mscclc::Contract contract;  ///< of its program, and how that aligns chunks
  uint32_t align = 1;
  uint64_t max_bytes = 0;  ///< of its messages
};

struct mscclc_memory : mscclc::capi::Handled {
  std::shared_ptr<mscclc::Device> device;
  std::unique_ptr<mscclc::Memory> memory;  ///< goes first
  std::atomic<uint64_t> owners{1};
};

struct mscclc_overlap : mscclc::capi::Handled {
  ~mscclc_overlap();
  int32_t device = 0;  ///< mscclc_config_t::device
  uint32_t weights = 1;
  mscclc::OverlapOwner owner;
  /// Of its communicator; nullptr: it has none.
  std::shared_ptr<const std::atomic<bool>> finalized;
  std::unique_ptr<mscclc::capi::GemmCallback> gemm;  ///< nullptr: the device's own
  mscclc::StreamHandle stream = nullptr;     ///< without a communicator, on the host: that of runs
  std::unique_ptr<mscclc::Overlap> overlap;  ///< goes first
};

namespace mscclc::capi {

/// What a handle is that a caller gives.
enum class Known : uint8_t { no, yes, before_fork };

/// The handles of one type that have been given out and not been destroyed. From any thread; a
/// child of fork() knows those of its parent, and takes none of them.
template <class T>
class Handles {
 public:
  /// `yes`: it stays until leave().
  static Known enter(const T* handle) {
    All& handles = all();
    const std::lock_guard lock(handles.mutex);
    const auto found = handles.made.find(handle);
    if (found == handles.made.end()) return Known::no;
    if (found->second != forks_so_far()) return Known::before_fork;
    ++handle->inside;
    return Known::yes;
  }
  static void leave(const T* handle) { --handle->inside; }
  /// Gives a handle out.
  static T* add(std::unique_ptr<T> made) {
    All& handles = all();
    const std::lock_guard lock(handles.mutex);
    handles.made.emplace(made.get(), forks());
    return made.release();
  }
  /// Takes one back that is known, unless a function uses it: then `taken` stays nullptr.
  static Known take(T* handle, std::unique_ptr<T>& taken) {
    All& handles = all();
    const std::lock_guard lock(handles.mutex);
    const auto found = handles.made.find(handle);
    if (found == handles.made.end()) return Known::no;
    if (found->second != forks_so_far()) return Known::before_fork;
    if (handle->inside > 0) return Known::yes;
    handles.made.erase(found);
    taken.reset(handle);
    return Known::yes;
  }

 private:
  struct All {
    std::mutex mutex;
    std::unordered_map<const T*, uint32_t> made;  ///< forks() at that time
  };
  /// Never destroyed: other threads may outlive the end of main(). No thread is in the middle of a
  /// change when the process forks.
  static All& all() {
    static All* const made = [] {
      (void)::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                             [] { all().mutex.unlock(); });
      return new All;
    }();
    return *made;
  }
};

/// A function uses a handle: while this lives, the handle is not destroyed.
template <class T>
class Use {
 public:
  explicit Use(const T* handle) : handle_(handle), known_(Handles<T>::enter(handle)) {}
  ~Use() {
    if (known_ == Known::yes) Handles<T>::leave(handle_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return known_ == Known::yes; }
  /// What to answer where there is no such handle, or something else is wrong as well: `what`.
  mscclc_result_t refuse(const char* function, const char* what) const noexcept {
    return known_ == Known::before_fork ? refuse_after_fork(function)
                                        : capi::refuse(function, what);
  }

 private:
  const T* const handle_;
  const Known known_;
};

/// Destroys a handle, unless a function uses it. NULL is fine.
template <class T>
mscclc_result_t destroy(T* handle, const char* function, const char* what) {
  std::unique_ptr<T> taken;
  const Known known = handle == nullptr ? Known::yes : Handles<T>::take(handle, taken);
  if (known == Known::before_fork) return refuse_after_fork(function);
  if (known == Known::no) return refuse(function, what);
  return handle == nullptr || taken != nullptr ? mscclc_result_t{MSCCLC_SUCCESS}
                                               : refuse_in_use(function);
}

/// mscclc_config_t::device. nullptr: reported.
std::shared_ptr<Device> open_device(int32_t device, Diagnostics& diagnostics);

/// The registry of the process. nullptr: reported.
std::shared_ptr<PlanRegistry> default_registry(Diagnostics& diagnostics);

/// Those of the process: each plan is compiled and proved once.
std::shared_ptr<OverlapPrograms> overlap_programs();

/// Why a stream is none of this device's kind. Streams of the host have no default; those of GPUs
/// are CUDA's. nullptr: it is one.
inline const char* why_no_stream(int32_t device, mscclc_stream_t stream) {
  if (device != MSCCLC_HOST || is_host_stream(stream)) return nullptr;
  return stream == nullptr ? "the host device has no stream NULL"
                           : "'stream' is not a stream of the host device";
}

/// A copy for mscclc_free().
char* copy_text(std::string_view text);

/// Takes a struct whose caller may know fewer members, or more: those that this version does not
/// know must be 0. `to` holds what members are that the caller does not know. False: refused.
template <class T>
bool take_struct(const T* given, T& to) {
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  // Every version's size is that of a whole struct, so it ends no member in its middle.
  if (size < sizeof size || size > 4096 || size % alignof(T) != 0) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  std::memcpy(&to, given, std::min(size, sizeof(T)));
  to.size = sizeof(T);
  return true;
}

}  // namespace mscclc::capi
