// What the handles of the C interface hold, and which of them there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/plan_registry.h"
#include "runtime/capi/mscclc.h"

struct mscclc_comm {
  std::shared_ptr<mscclc::Device> device;
  std::shared_ptr<mscclc::PlanRegistry> registry;
  std::unique_ptr<mscclc::Communicator> communicator;
  std::unique_ptr<mscclc::Collectives> collectives;  ///< goes first
  mscclc_config_t config = MSCCLC_CONFIG_INIT;       ///< without the registry
  std::atomic<bool> finalized{false};
};

struct mscclc_registry {
  std::shared_ptr<mscclc::PlanRegistry> plans;
};

struct mscclc_plan {
  int32_t device;  ///< mscclc_config_t::device
  std::unique_ptr<mscclc::Executable> executable;
};

struct mscclc_memory {
  std::shared_ptr<mscclc::Device> device;
  std::unique_ptr<mscclc::Memory> memory;  ///< goes first
  std::atomic<uint64_t> owners{1};
};

namespace mscclc::capi {

/// The handles of one type that have been given out and not been destroyed. From any thread.
template <class T>
class Handles {
 public:
  static bool has(const T* handle) {
    if (handle == nullptr) return false;
    const std::lock_guard lock(all().mutex);
    return all().set.count(handle) != 0;
  }
  /// Gives a handle out.
  static T* add(std::unique_ptr<T> made) {
    const std::lock_guard lock(all().mutex);
    all().set.insert(made.get());
    return made.release();
  }
  /// Takes one back. nullptr: there is none.
  static std::unique_ptr<T> take(T* handle) {
    const std::lock_guard lock(all().mutex);
    return std::unique_ptr<T>(all().set.erase(handle) == 0 ? nullptr : handle);
  }

 private:
  struct All {
    std::mutex mutex;
    std::unordered_set<const T*> set;
  };
  /// Never destroyed: other threads may outlive the end of main().
  static All& all() {
    static All* const made = new All;
    return *made;
  }
};

/// The registry of the process. nullptr: reported.
std::shared_ptr<PlanRegistry> default_registry(Diagnostics& diagnostics);

/// Why a stream is none of this device's kind. Streams of the host have no default; those of GPUs
/// are CUDA's. nullptr: it is one.
inline const char* why_no_stream(int32_t device, mscclc_stream_t stream) {
  if (device != MSCCLC_HOST || is_host_stream(stream)) return nullptr;
  return stream == nullptr ? "the host device has no stream NULL"
                           : "'stream' is no stream of the host device";
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
