// Calls on memory that the ranks of a group have made symmetric: they use it where it lies.
// Only the rank itself knows which buffers it gives to a call. So where a group has symmetric
// memory at all, its ranks exchange before a call where their buffers lie, and use them only if all
// give the same parts. That is for the host device: on GPUs it would make the host wait for each
// call. Where the user has promised that all ranks give the same parts, nothing is exchanged: a
// rank waits for the others only at the first call in an allocation, when all register it.
#pragma once

#include <ATen/ATen.h>
#include <mscclc.h>

#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace mscclc::torch_adapter {

class Communicator;

/// Memory of this rank that its group has made symmetric.
struct SymmetricRange {
  uint64_t number = 0;  ///< what all ranks call it; not 0
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  std::shared_ptr<mscclc_memory_t> memory;
  std::weak_ptr<const void> in_use;  ///< until the memory is freed

  bool has(const void* at) const {
    const auto* byte = static_cast<const uint8_t*>(at);
    return byte >= begin && byte < begin + bytes;
  }
};

/// What of a call's tensors was symmetric when it was made.
struct SymmetricBuffers {
  bool possible = false;  ///< the same on all ranks; false: there is no such memory, as all know
  bool promised = false;  ///< the same on all ranks: they give the same parts to each call
  std::vector<SymmetricRange> ranges;
};

/// Looks up one tensor: adds the range in which it lies, if the group of `backend` knows that.
using FindSymmetric = void (*)(const at::Tensor& tensor, const c10d::Backend& backend,
                               std::vector<SymmetricRange>& found);

/// What a communicator has registered for its calls. It outlives the communicator, since memory
/// must outlive its registration. For one thread at a time.
class RegisteredRanges {
 public:
  /// Says of a call that its buffers are registered, where those of all ranks are the same parts of
  /// symmetric memory. Registers what is new, and lets go of memory that was freed. Collective
  /// where that is possible; where it is promised, only if something is new.
  void prepare(mscclc_call_t& call, const SymmetricBuffers& symmetric, Communicator& comm);

 private:
  struct Registered {
    SymmetricRange range;
    uint64_t number;
  };
  void let_go(Communicator& comm);
  void add(const SymmetricRange& range, Communicator& comm);

  std::vector<Registered> registered_;
};

}  // namespace mscclc::torch_adapter
