// Parts of a group: groups of some of its ranks, by split_group() of torch.distributed.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

namespace mscclc::torch_adapter {

/// A part that is about to be made, on a rank of it.
struct PartOfGroup {
  c10::intrusive_ptr<c10d::Store> store;  ///< of its ranks alone
  int rank = 0, size = 1;
  std::string name, parent;  ///< of the groups
  std::chrono::milliseconds timeout{0};

  /// Lets Python know of it. The backends that get its calls which no plan serves, by the type of
  /// the device: some if there shall be a fallback.
  std::map<c10::DeviceType, c10::intrusive_ptr<c10d::Backend>> begin(bool fallback) const;
};

/// The part of a group that was made last. torch asks for one by type of device, with the same
/// store; one backend serves all types. From any thread.
class LastPart {
 public:
  /// nullptr: none was made in this store, or it is gone.
  c10::intrusive_ptr<c10d::Backend> in(const c10::intrusive_ptr<c10d::Store>& store) const;
  /// How many stores parts were asked for in, as torch 2.15 asks ranks of a part once, and others
  /// by type of device.
  uint64_t count(const c10::intrusive_ptr<c10d::Store>& store);
  void keep(const c10::intrusive_ptr<c10d::Store>& store,
            const c10::intrusive_ptr<c10d::Backend>& part);

 private:
  using Store = c10::weak_intrusive_ptr<c10d::Store>;
  using Part = c10::weak_intrusive_ptr<c10d::Backend>;
  mutable std::mutex mutex_;
  std::optional<std::pair<Store, Part>> last_;
  std::optional<Store> asked_;
  uint64_t count_ = 0;
};

}  // namespace mscclc::torch_adapter
