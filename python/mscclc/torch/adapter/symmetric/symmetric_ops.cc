// What Python calls: the registration of the backend "MSCCLC", memory of it without torch's choice
// of a backend, and views of the memory of any backend.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "python/mscclc/torch/adapter/symmetric/symmetric_memory.h"

namespace mscclc::torch_adapter {
namespace {

namespace symmetric = c10d::symmetric_memory;
using Handle = c10::intrusive_ptr<symmetric::SymmetricMemory>;

/// A name stands for one allocator: that of GPUs, where there are any. On the host, where torch has
/// none, ours serves whatever is chosen.
void register_symmetric_memory(bool gpus) {
  if (!symmetric::has_allocator(c10::kCPU)) {
    symmetric::register_allocator(c10::kCPU, symmetric_allocator(c10::kCPU));
  }
  symmetric::register_availability("MSCCLC", symmetric_allocator(gpus ? c10::kCUDA : c10::kCPU));
}

Handle symmetric_rendezvous(const at::Tensor& tensor, const std::string& group) {
  auto handle = symmetric_allocator(tensor.device().type())
                    ->rendezvous(tensor.storage().mutable_data(), group);
  TORCH_CHECK(handle != nullptr, "mscclc: the tensor does not lie in symmetric memory of mscclc");
  return handle;
}

void* address_at(const Handle& handle, int64_t rank) {
  TORCH_CHECK(rank >= 0 && rank < handle->get_world_size(), "mscclc: there is no rank ", rank,
              " among ", handle->get_world_size());
  return handle->get_buffer_ptrs()[static_cast<size_t>(rank)];
}

int64_t symmetric_address(const Handle& handle, int64_t rank) {
  return reinterpret_cast<int64_t>(address_at(handle, rank));
}

/// Bytes of the allocation on each rank.
int64_t symmetric_size(const Handle& handle) {
  return static_cast<int64_t>(handle->get_buffer_size());
}

/// Bytes of a rank's memory, which stays mapped as long as the tensor lives.
at::Tensor symmetric_view(const Handle& handle, int64_t rank, int64_t offset, int64_t bytes) {
  auto* const data = static_cast<uint8_t*>(address_at(handle, rank));
  const auto size = static_cast<int64_t>(handle->get_buffer_size());
  TORCH_CHECK(offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset,
              "mscclc: ", bytes, " bytes from byte ", offset, " of ", size, " of symmetric memory");
  TORCH_CHECK(data != nullptr, "mscclc: the memory of rank ", rank,
              " is not reached directly from rank ", handle->get_rank());
  return at::from_blob(
      data + offset, {bytes}, [handle](void*) {},
      at::TensorOptions().dtype(at::kByte).device(handle->get_device()), handle->get_device());
}

/// Our memory on the host waits as long as the group does.
void symmetric_barrier(const Handle& handle) {
  const auto* const ours = dynamic_cast<const MscclcSymmetricMemory*>(handle.get());
  handle->barrier(0, ours != nullptr ? ours->usual_timeout_ms() : 0);
}

TORCH_LIBRARY_FRAGMENT(mscclc, library) {
  library.def("register_symmetric_memory", register_symmetric_memory);
  library.def("symmetric_empty", symmetric_empty);
  library.def("symmetric_rendezvous", symmetric_rendezvous);
  library.def("symmetric_address", symmetric_address);
  library.def("symmetric_size", symmetric_size);
  library.def("symmetric_view", symmetric_view);
  library.def("symmetric_barrier", symmetric_barrier);
}

}  // namespace
}  // namespace mscclc::torch_adapter
