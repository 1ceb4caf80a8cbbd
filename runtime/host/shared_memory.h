// Memory of the host as a device: anonymous files (memfd) of a fixed size, mapped shared. Nothing
// has a name, so a process that dies leaves nothing behind; an allocation lives as long as a
// process maps it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/base/fd.h"

namespace mscclc {

/// A mapping of a whole allocation; unmapped with its last owner. Thread safety: from any thread.
class SharedMapping {
 public:
  /// New memory, all zeros. nullptr: reported (out-of-memory), `what` names it.
  [[nodiscard]] static std::shared_ptr<SharedMapping> create(uint64_t bytes,
                                                             const std::string& what,
                                                             Diagnostics& diagnostics);
  /// Maps another process's allocation. Errors (bad-handle): the file is not one of `bytes` bytes
  /// whose size is sealed, so that no access can fail later.
  [[nodiscard]] static std::shared_ptr<SharedMapping> open(Fd file, uint64_t bytes,
                                                           Diagnostics& diagnostics);
  SharedMapping(uint8_t* data, uint64_t bytes, Fd file)
      : data_(data), bytes_(bytes), file_(std::move(file)) {}
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  int file() const { return file_.get(); }

  /// What lives as long as the mapping, such as the registration of a piece of it with a network
  /// device: made when it is first asked for. `of`: whose it is; no other has that address while
  /// it lives. nullptr: `make` has made nothing.
  using Companion = std::shared_ptr<const void>;
  Companion companion(const void* of, uint64_t offset, uint64_t bytes,
                      const std::function<Companion()>& make);

 private:
  uint8_t* const data_;
  const uint64_t bytes_;
  const Fd file_;
  std::mutex mutex_;
  std::map<std::tuple<const void*, uint64_t, uint64_t>, Companion> companions_;
};

/// The allocations of this process, by address: who imports a piece of one from the same process
/// takes the address, and becomes one of its owners. Thread safety: from any thread.
class SharedMappings {
 public:
  static SharedMappings& of_process();
  void add(const std::shared_ptr<SharedMapping>& mapping);
  /// The allocation in which [address, address + bytes) lies; nullptr: none.
  std::shared_ptr<SharedMapping> find(const void* address, uint64_t bytes);

 private:
  std::mutex mutex_;
  std::map<uintptr_t, std::weak_ptr<SharedMapping>> by_address_;
};

}  // namespace mscclc
