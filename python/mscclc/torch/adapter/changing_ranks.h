// A rank of a group whose ranks change: what reconfigure() of torch.distributed and that of
// TorchComms have in common. Their options have the same names.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <unordered_set>
#include <variant>
#include <vector>

namespace mscclc::torch_adapter {

/// Ranks that are asked for.
struct AskedRanks {
  std::vector<std::string> members;  ///< their handles, by rank
  int rank = 0;                      ///< this one's
  int64_t uuid = 0;                  ///< of these ranks, and of no others before or after
};

/// For one thread at a time.
class ChangingRank {
 public:
  /// `handle` is this rank's alone among those that use the store.
  ChangingRank(c10::intrusive_ptr<c10d::Store> store, std::string handle)
      : store_(std::move(store)), handle_(std::move(handle)) {}

  const std::string& handle() const { return handle_; }

  /// Handles in a list are those of ranks 0, 1, …; those in a set are sorted. Throws where they
  /// cannot be, and the group can stay as it is.
  template <class Options>
  AskedRanks asked(const Options& options) {
    AskedRanks asked{.members = members_of(options.handles), .uuid = options.uuid};
    const auto& members = asked.members;
    TORCH_CHECK(std::set<std::string>(members.begin(), members.end()).size() == members.size(),
                "mscclc reconfigure: a handle is named twice");
    const auto mine = std::find(members.begin(), members.end(), handle_);
    TORCH_CHECK(mine != members.end(), "mscclc reconfigure: the handle of this rank, ", handle_,
                ", is not one of those given");
    TORCH_CHECK(uuids_.insert(asked.uuid).second, "mscclc reconfigure: uuid ", asked.uuid,
                " was used before");
    asked.rank = static_cast<int>(mine - members.begin());
    return asked;
  }

  /// Waits until all of them have come, at most so long. The store that they have to themselves.
  c10::intrusive_ptr<c10d::Store> meet(const AskedRanks& asked,
                                       std::chrono::milliseconds timeout) const {
    const auto end = std::chrono::steady_clock::now() + timeout;
    const auto& first = *std::min_element(asked.members.begin(), asked.members.end());
    auto store = c10::make_intrusive<c10d::PrefixStore>(
        "ranks/" + std::to_string(asked.uuid) + "/" + first, store_);
    store->set("here/" + handle_, std::vector<uint8_t>{1});
    for (const auto& member : asked.members) {
      while (!store->check({"here/" + member})) {  // wait() would log that it ends too early
        TORCH_CHECK(std::chrono::steady_clock::now() < end, "mscclc reconfigure: ", member,
                    " has not come within ", timeout.count(), " ms");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return store;
  }

 private:
  using Listed = std::vector<std::string>;
  using Any = std::unordered_set<std::string>;

  static Listed members_of(const std::variant<Any, Listed>& handles) {
    if (const auto* listed = std::get_if<Listed>(&handles)) return *listed;
    const auto& any = std::get<Any>(handles);
    Listed sorted(any.begin(), any.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string handle_;
  std::set<int64_t> uuids_;  ///< that were asked for
};

}  // namespace mscclc::torch_adapter
