// How Python gets a backend without a Python symbol in this library: by the names of process
// groups.
//
//   given: a group that has the store, and the backends that get what no plan serves
//   made:  the name of a group that is registered here, with the backend
#include <torch/library.h>

#include <mutex>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "python/mscclc/torch/adapter/backend.h"
#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/adapter/older_torch.h"
#include "python/mscclc/torch/adapter/process_state.h"

namespace mscclc::torch_adapter {
namespace {

constexpr auto kTypes = {c10::kCPU, c10::kCUDA};

void make_backend(const std::string& given, const std::string& made, const std::string& group,
                  int64_t timeout_ms, bool symmetric, int64_t order, bool changing,
                  int64_t ends_process) {
  const auto from = c10d::resolve_process_group(given);
  MscclcBackend::Others others;
  for (const c10::Device device : from->getDeviceTypes()) {
    others.emplace(device.type(), from->getBackend(device.type()));
  }
  MscclcBackend::Settings settings{
      group,     std::chrono::milliseconds(timeout_ms),
      symmetric, static_cast<int32_t>(order),
      changing,  static_cast<MscclcBackend::EndsProcess>(ends_process)};
  const auto backend = c10::make_intrusive<MscclcBackend>(
      store_of(*from), from->getRank(), from->getSize(), std::move(settings), std::move(others));
  const auto result = c10::make_intrusive<c10d::ProcessGroup>(from->getRank(), from->getSize());
  for (const c10::DeviceType type : kTypes) {
    result->setBackend(type, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  }
  result->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  c10d::register_process_group(made, result);
  ProcessState& process = ProcessState::get();
  const std::lock_guard lock(process.mutex);
  process.groups[made] = result;
}

void forget_backend(const std::string& made) {
  c10d::unregister_process_group(made);
  c10::intrusive_ptr<c10d::ProcessGroup> gone;  // ends without the lock
  ProcessState& process = ProcessState::get();
  const std::lock_guard lock(process.mutex);
  gone.swap(process.groups[made]);
  process.groups.erase(made);
}

/// Of a group that is served here, in milliseconds: Python does not see it.
int64_t group_timeout(const std::string& group, const c10::Device& device) {
  const auto backend = c10d::resolve_process_group(group)->getBackend(device.type());
  auto* const ours = dynamic_cast<MscclcBackend*>(backend.get());
  TORCH_CHECK(ours != nullptr, "mscclc: group ", group, " is another backend's");
  return ours->getBackendOptions()->timeout.count();
}

/// Whether reconfigure(), since torch 2.15, changes the ranks of a group of whatever backend.
bool group_changes([[maybe_unused]] const std::string& group,
                   [[maybe_unused]] const c10::Device& device) {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  return c10d::resolve_process_group(group)->getBackend(device.type())->supportsReconfigure();
#else
  return false;
#endif
}

/// Returns what held before.
int64_t set_order(int64_t order) {
  return ProcessState::get().order.exchange(static_cast<int32_t>(order));
}

/// Waits for what all backends have to do; they do nothing more.
void close_workers() {
  const WithoutInterpreter other_threads;
  ProcessState::get().workers.close();
}

TORCH_LIBRARY_FRAGMENT(mscclc, library) {
  library.def(
      "make_backend(str given, str made, str group, int timeout_ms, bool symmetric, "
      "int order, bool changing, int ends_process) -> ()",
      make_backend);
  library.def("group_timeout(str group, Device device) -> int", group_timeout);
  library.def("group_changes(str group, Device device) -> bool", group_changes);
  library.def("set_order(int order) -> int", set_order);
  library.def("forget_backend(str made) -> ()", forget_backend);
  library.def("close_workers() -> ()", close_workers);
  library.def("built_from() -> str", [] { return std::string(MSCCLC_ADAPTER_SOURCES); });
}

}  // namespace
}  // namespace mscclc::torch_adapter
