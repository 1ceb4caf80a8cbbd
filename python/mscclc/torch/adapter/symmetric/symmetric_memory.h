// torch's symmetric memory by libmscclc: backend "MSCCLC". An allocation is the data and, after it,
// a signal pad; a rendezvous lets the ranks of a group map those of all.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <utility>
#include <vector>

#include "python/mscclc/torch/adapter/communicator.h"

namespace mscclc::torch_adapter {

/// The ranks of a process group, on devices of one type. From any thread.
class SymmetricTeam {
 public:
  SymmetricTeam(const c10::intrusive_ptr<c10d::ProcessGroup>& group, c10::Device device);

  /// A group of the same name may have come in its place, or reconfigure() has given it other
  /// ranks.
  bool is_of(const c10::intrusive_ptr<c10d::ProcessGroup>& group) const;
  bool group_has_ended() const { return group_.expired(); }
  /// Whether calls of the team's ranks on its device are made by this backend.
  bool is_served_by(const c10d::Backend& backend) const;
  int rank() const { return comm_.rank(); }
  int ranks() const { return comm_.ranks(); }
  const c10::Device& device() const { return device_; }
  /// How long the group's calls wait, or waited until it ended.
  std::chrono::milliseconds timeout() const;
  void check() const { comm_.check(); }
  /// Ends what its ranks wait for. Any thread.
  void abort(const std::string& why) { comm_.abort(why); }
  /// Calls `use(communicator)`, which is for one thread at a time.
  template <class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex_);
    return use(comm_);
  }

 private:
  const c10::weak_intrusive_ptr<c10d::ProcessGroup> group_;
  /// Of the group, if it is this library's; expired: it is not. (Another one would stay.)
  const c10::weak_intrusive_ptr<c10d::Backend> backend_;
  const c10::Device device_;
  const c10::intrusive_ptr<c10d::Store> store_;  ///< in which its ranks have met
  const std::chrono::milliseconds timeout_;      ///< of its calls when they met
  std::mutex mutex_;
  Communicator comm_;
};

/// Teams on devices of one type, as long as their groups live: ranks let go of memory at different
/// times, and must not disagree on whether there is a team. From any thread.
class SymmetricTeams {
 public:
  /// Collective: the team of a group, one for all its memory.
  std::shared_ptr<SymmetricTeam> of(const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                    c10::Device device);
  /// Lets go of those whose groups have ended.
  void forget_ended();

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SymmetricTeam>> teams_;  ///< by the group's name
};

/// What was allocated.
struct SymmetricPiece {
  std::shared_ptr<mscclc_memory_t> memory;
  size_t bytes = 0;      ///< of the data
  size_t pad = 0;        ///< where the signal pad begins
  size_t pad_bytes = 0;  ///< what it has
  c10::Device device{c10::kCPU};
  uint8_t* address() const { return static_cast<uint8_t*>(mscclc_memory_address(memory.get())); }
};

/// An allocation of each rank of a team, as this process sees them.
class SymmetricMapping {
 public:
  /// Collective. Pieces that differ in size are an error on all ranks.
  SymmetricMapping(std::shared_ptr<SymmetricTeam> team, SymmetricPiece piece);
  ~SymmetricMapping();
  SymmetricMapping(const SymmetricMapping&) = delete;
  SymmetricMapping& operator=(const SymmetricMapping&) = delete;

  SymmetricTeam& team() const { return *team_; }
  const std::shared_ptr<SymmetricTeam>& shared_team() const { return team_; }
  /// What all ranks call it.
  uint64_t number() const { return buffers_.number; }
  const SymmetricPiece& piece() const { return piece_; }
  const std::vector<void*>& buffers() const { return buffers_.seen; }
  const std::vector<void*>& pads() const { return pads_.seen; }
  /// The same as arrays that the device reads.
  void** buffers_on_device() { return on_device(buffers_); }
  void** pads_on_device() { return on_device(pads_); }

 private:
  struct Shared {
    uint64_t number = 0;      ///< 0: it is not
    std::vector<void*> seen;  ///< by rank
    std::shared_ptr<mscclc_memory_t> on_device;
  };
  void share(Shared& shared, size_t begin, size_t bytes, const char* what);
  void unshare(Shared& shared);
  void** on_device(Shared& shared);

  const std::shared_ptr<SymmetricTeam> team_;
  const SymmetricPiece piece_;
  Shared buffers_, pads_;
};

/// torch's handle: a mapping, and where a tensor's storage lies in the allocation.
class MscclcSymmetricMemory : public c10d::symmetric_memory::SymmetricMemory {
 public:
  MscclcSymmetricMemory(std::shared_ptr<SymmetricMapping> mapping, size_t offset)
      : mapping_(std::move(mapping)), offset_(offset) {}

  std::vector<void*> get_buffer_ptrs() override { return mapping_->buffers(); }
  std::vector<void*> get_signal_pad_ptrs() override { return mapping_->pads(); }
  void** get_buffer_ptrs_dev() override { return mapping_->buffers_on_device(); }
  void** get_signal_pad_ptrs_dev() override { return mapping_->pads_on_device(); }
  size_t get_buffer_size() override { return mapping_->piece().bytes; }
  size_t get_offset() override { return offset_; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  void barrier(int channel, size_t timeout_ms) override;
  void put_signal(int to, int channel, size_t timeout_ms) override;
  void wait_signal(int from, int channel, size_t timeout_ms) override;
  int get_rank() override { return mapping_->team().rank(); }
  int get_world_size() override { return mapping_->team().ranks(); }
  c10::Device get_device() override { return mapping_->team().device(); }
  /// What a barrier waits if nothing else is said; 0, on a GPU: streams have no timeouts.
  size_t usual_timeout_ms() const;
  bool world_within_direct_access() override;

 private:
  /// The word of a rank's pad that `from` signals by.
  uint32_t* word(int owner, int from, int channel) const;
  void change(uint32_t* word, uint32_t from, uint32_t to, size_t timeout_ms) const;

  const std::shared_ptr<SymmetricMapping> mapping_;
  const size_t offset_;
};

/// Allocates on devices of one type. From any thread.
class MscclcSymmetricAllocator : public c10d::symmetric_memory::SymmetricMemoryAllocator {
 public:
  explicit MscclcSymmetricAllocator(c10::DeviceType type) : type_(type) {}

  void* alloc(size_t bytes, int device, const std::optional<std::string>& group) override;
  /// Waits for what the device does.
  void free(void* address) override;
  size_t get_alloc_size(void* address) override;
  /// nullptr: the address is in no allocation of this allocator.
  c10::intrusive_ptr<c10d::symmetric_memory::SymmetricMemory> rendezvous(
      void* address, const std::optional<std::string>& group) override;
  bool has_multicast_support(int) override { return false; }
  c10::DeviceType supported_device_type() override { return type_; }
  std::string name() override { return "MSCCLC"; }
  SymmetricTeams& teams() { return teams_; }
  /// The allocation that an address is in; nullopt: none of this allocator.
  std::optional<SymmetricPiece> piece_at(const void* address);
  /// FindSymmetric of this allocator's memory.
  void find_symmetric_of(const at::Tensor& tensor, const c10d::Backend& backend,
                         std::vector<SymmetricRange>& found);

 private:
  /// What a group knows of an allocation.
  struct Known {
    std::shared_ptr<SymmetricMapping> mapping;
    std::map<size_t, c10::intrusive_ptr<MscclcSymmetricMemory>> handles;  ///< by offset
  };
  /// A team that has an allocation, and what its ranks call that.
  struct Sharing {
    std::weak_ptr<SymmetricTeam> team;
    uint64_t number = 0;
  };
  struct Block {
    SymmetricPiece piece;
    std::string group;  ///< that it was allocated for; "": any
    std::mutex mutex;   ///< guards `known`
    std::map<std::string, Known> known;
    std::vector<Sharing> shared;  ///< the allocator's mutex guards it
  };
  Communicator& device(int index);
  std::shared_ptr<Block> find(const void* address);
  std::shared_ptr<Block> find_locked(const void* address);
  void note(Block& block, const SymmetricMapping& mapping);

  const c10::DeviceType type_;
  SymmetricTeams teams_;
  std::mutex mutex_;  ///< guards what follows
  std::map<uintptr_t, std::shared_ptr<Block>> blocks_;
  std::map<int, std::unique_ptr<Communicator>> devices_;  ///< of one rank, to allocate by
};

/// One for a type of device: cpu or cuda.
c10::intrusive_ptr<MscclcSymmetricAllocator> symmetric_allocator(c10::DeviceType type);
/// A tensor of so many bytes, all zeros, in its memory.
at::Tensor symmetric_empty(int64_t bytes, const at::Device& device);

}  // namespace mscclc::torch_adapter
