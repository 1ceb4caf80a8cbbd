// The memory of this rank that lanes of peers may write without having mapped it, by numbers: what
// a peer's lane names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/api/device.h"

namespace mscclc {

/// What a lane calls memory of the rank that it leads to. No number is used twice.
using ExposedId = uint64_t;

/// Where memory is to network devices that write it by themselves (verbs), and the key that lets
/// them.
struct DeviceKey {
  uint64_t address = 0;
  uint32_t key = 0;
  /// They write other memory, of the same size: the rank's processor copies it on, when it learns
  /// of it.
  bool staged = false;
};

enum class MemoryPlace : uint8_t {
  host,   ///< memory of this machine, pinned or not
  device  ///< a GPU's
};

/// Memory of a peer as its device here knows it.
class NamedMemory : public Memory {
 public:
  /// What its rank calls it; nullopt: lanes cannot write it.
  std::optional<ExposedId> exposed() const { return exposed_; }
  /// nullopt: its rank has not registered it with a network device.
  const std::optional<DeviceKey>& device_key() const { return device_key_; }
  /// Where it is at its rank.
  MemoryPlace place() const { return place_; }
  /// The memory in which `bytes` bytes lie at `place`. nullptr: none that lanes can write.
  static const NamedMemory* find(const RemotePlace& place, uint64_t bytes);
  /// Its number. nullopt: there is none.
  static std::optional<ExposedId> at(const RemotePlace& place, uint64_t bytes);

 protected:
  explicit NamedMemory(std::optional<ExposedId> exposed,
                       std::optional<DeviceKey> device_key = std::nullopt,
                       MemoryPlace place = MemoryPlace::host)
      : exposed_(exposed), device_key_(device_key), place_(place) {}

 private:
  const std::optional<ExposedId> exposed_;
  const std::optional<DeviceKey> device_key_;
  const MemoryPlace place_;
};

/// Thread safety: from any thread.
class ExposedMemory {
 public:
  /// Lets peers write `bytes` bytes at `data`, as long as `owner` lives, which keeps them.
  /// `place`: whether the processor can write them itself; `staging`: other memory of that size,
  /// for DeviceKey::staged.
  ExposedId add(const std::shared_ptr<const void>& owner, uint8_t* data, uint64_t bytes,
                MemoryPlace place = MemoryPlace::host, const uint8_t* staging = nullptr);

  /// A piece that an order is for.
  struct Piece {
    enum class State {
      here,
      gone,    ///< it was freed, and is not looked at any more
      unknown  ///< it never was, or the piece is not all inside
    } state = State::unknown;
    std::shared_ptr<const void> owner = nullptr;  ///< keeps it while it is written
    uint8_t* data = nullptr;
    MemoryPlace place = MemoryPlace::host;
    const uint8_t* staging = nullptr;  ///< of the piece; nullptr: it has none
  };
  Piece find(ExposedId id, uint64_t offset, uint64_t bytes);

 private:
  struct Exposure {
    std::weak_ptr<const void> owner;
    uint8_t* data;
    uint64_t bytes;
    MemoryPlace place;
    const uint8_t* staging;
  };
  std::mutex mutex_;
  ExposedId next_ = 1;
  std::map<ExposedId, Exposure> entries_;
};

}  // namespace mscclc
