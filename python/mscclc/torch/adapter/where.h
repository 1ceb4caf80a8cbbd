// Where calls run: on a device, by all ranks of a group or by two.
#pragma once

#include <c10/core/Device.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace mscclc::torch_adapter {

/// A device, and the ranks of a message from one to another; -1: all ranks.
struct Where {
  c10::Device device;
  int from = -1, to = -1;

  bool operator<(const Where& other) const { return key() < other.key(); }

 private:
  std::tuple<c10::DeviceType, c10::DeviceIndex, int, int> key() const {
    return {device.type(), device.index(), from, to};
  }
};

/// The GPUs that a rank has called on with all ranks, and with each other one, by first use. As
/// these make the same calls, the n-th of each has the same ones, whatever its index there.
class UsedGpus {
 public:
  /// The number of a place's GPU, which is used now.
  size_t number_of(const Where& where) {
    std::vector<c10::Device>& known = used_[{where.from, where.to}];
    const auto found = std::find(known.begin(), known.end(), where.device);
    const auto number = static_cast<size_t>(found - known.begin());
    if (found == known.end()) known.push_back(where.device);
    return number;
  }

  /// The first one that calls of all ranks have used; the host where there is none.
  c10::Device first_of_all() const {
    const auto found = used_.find({-1, -1});
    return found == used_.end() ? c10::Device(c10::kCPU) : found->second.front();
  }

 private:
  std::map<std::pair<int, int>, std::vector<c10::Device>> used_;
};

}  // namespace mscclc::torch_adapter
