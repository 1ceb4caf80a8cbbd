// The memory of the fake driver's GPUs: allocations, addresses, the descriptors that keep
// allocations, and what lies at an address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/fakes/cuda/fake_core.h"

namespace mscclc::cuda {

class FakeMemory : public virtual FakeCore {
 public:
  /// Bytes allocated on a GPU.
  uint64_t allocated(int device);
  /// The most that there were.
  uint64_t most_allocated(int device);
  /// Contents as the calling process's mapping shows them.
  std::vector<uint8_t> bytes_at(abi::Address address, uint64_t bytes);
  void set_bytes(abi::Address address, const std::vector<uint8_t>& bytes);

 protected:
  using Physical = fake::Physical;
  using Span = fake::Span;
  using MappingEntry = fake::MappingEntry;
  using PlainEntry = fake::PlainEntry;
  using IpcEntry = fake::IpcEntry;

  FakeMemory() = default;
  ~FakeMemory();
  uint64_t used(int device);
  std::shared_ptr<Physical> allocate_physical(int device, uint64_t bytes, int handle_types,
                                              abi::Result& result);
  abi::Address new_addresses(uint64_t bytes, uint64_t alignment = 1);
  void forget_unused_handle(Process& process, abi::Handle handle);
  /// What `bytes` bytes at an address are, for a device; empty: misuse was noted.
  bool resolve(Process& process, abi::Address address, uint64_t bytes, int device, Span& span);
  /// A descriptor that keeps an allocation until all copies of it have been closed; -1: none.
  int open_descriptor(const std::shared_ptr<Physical>& memory);
  /// nullptr: it is no descriptor of memory.
  std::shared_ptr<Physical> find_descriptor(int fd) const;
  /// Of each allocation that descriptors keep: how many bytes it has.
  std::vector<uint64_t> kept_by_descriptors();

 private:
  /// Where no process has anything.
  static constexpr abi::Address kFirstAddress = 0x400000000000;

  void collect_descriptors();

  std::map<uint64_t, std::shared_ptr<Physical>> descriptors_;  ///< by inode of the pipe
  std::map<uint64_t, int> descriptor_ends_;                    ///< our end of it
  std::vector<std::weak_ptr<Physical>> all_;
  std::map<int, uint64_t> most_;  ///< by device
  abi::Address next_address_ = kFirstAddress;
};

}  // namespace mscclc::cuda
