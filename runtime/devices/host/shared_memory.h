// Memory of the host as a device: anonymous files (memfd) of a fixed size, mapped shared. Nothing
// has a name, so nothing is left of a process that dies; an allocation lives as long as a process
// maps it. What no other process maps has no file, which would cost a descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/fd.h"
#include "runtime/support/memory/attached_resources.h"

namespace mscclc {

/// A mapping of a whole allocation; unmapped with its last owner. Thread safety: from any thread.
class SharedMapping {
 public:
  /// New memory, all zeros. `others`: other processes may map it. nullptr: reported
  /// (out-of-memory), `what` names it.
  [[nodiscard]] static std::shared_ptr<SharedMapping> create(uint64_t bytes,
                                                             const std::string& what,
                                                             Diagnostics& diagnostics,
                                                             bool others = true);
  /// Maps another process's allocation. Errors (bad-handle): the file is not one of `bytes` bytes
  /// whose size is sealed, so that no access can fail later.
  [[nodiscard]] static std::shared_ptr<SharedMapping> open(Fd file, uint64_t bytes,
                                                           Diagnostics& diagnostics);
  SharedMapping(uint8_t* data, uint64_t bytes, std::shared_ptr<const Fd> file)
      : data_(data), bytes_(bytes), file_(std::move(file)) {}
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// nullptr: no other process can map it, or it is another process's, which offers it.
  const std::shared_ptr<const Fd>& file() const { return file_; }

  /// What lives as long as the mapping.
  AttachedResources& attached() { return attached_; }

 private:
  uint8_t* const data_;
  const uint64_t bytes_;
  const std::shared_ptr<const Fd> file_;
  AttachedResources attached_;
};

/// The allocations of this process, by address: an import of a piece of one from the same process
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
