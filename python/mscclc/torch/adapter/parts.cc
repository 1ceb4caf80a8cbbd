#include "python/mscclc/torch/adapter/parts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace mscclc::torch_adapter {
namespace {

/// A group that Python finds by its name, as long as this lives.
class FoundByName {
 public:
  explicit FoundByName(const c10::intrusive_ptr<c10d::ProcessGroup>& group)
      : name_(c10::str("mscclc/part/", group.get())) {
    c10d::register_process_group(name_, group);
  }
  ~FoundByName() { c10d::unregister_process_group(name_); }
  FoundByName(const FoundByName&) = delete;
  FoundByName& operator=(const FoundByName&) = delete;
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

TORCH_LIBRARY_FRAGMENT(mscclc, library) {
  // What it does is in backend.py, which makes the first group.
  library.def("begin_part(str given, str group, str parent, int timeout_ms, bool fallback) -> ()");
}

}  // namespace

std::map<c10::DeviceType, c10::intrusive_ptr<c10d::Backend>> PartOfGroup::begin(
    bool fallback) const {
  using Begin = void(std::string, std::string, std::string, int64_t, bool);
  const auto carrier = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  const FoundByName given(carrier);
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("mscclc::begin_part", "")
      .typed<Begin>()
      .call(given.name(), name, parent, timeout.count(), fallback);
  std::map<c10::DeviceType, c10::intrusive_ptr<c10d::Backend>> others;
  for (const c10::Device device : carrier->getDeviceTypes()) {
    others.emplace(device.type(), carrier->getBackend(device.type()));
  }
  return others;
}

c10::intrusive_ptr<c10d::Backend> LastPart::in(const c10::intrusive_ptr<c10d::Store>& store) const {
  const std::lock_guard lock(mutex_);
  if (!last_ || last_->first.lock() != store) return nullptr;
  return last_->second.lock();
}

uint64_t LastPart::count(const c10::intrusive_ptr<c10d::Store>& store) {
  const std::lock_guard lock(mutex_);
  if (!asked_ || asked_->lock() != store) {
    asked_.emplace(store);
    ++count_;
  }
  return count_;
}

void LastPart::keep(const c10::intrusive_ptr<c10d::Store>& store,
                    const c10::intrusive_ptr<c10d::Backend>& part) {
  const std::lock_guard lock(mutex_);
  last_.emplace(Store(store), Part(part));
}

}  // namespace mscclc::torch_adapter
