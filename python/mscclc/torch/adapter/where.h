// Where calls run: on a device, by all ranks of a group or by two.
#pragma once

#include <c10/core/Device.h>

#include <tuple>
#include <vector>

namespace mscclc::torch_adapter {

/// A device, and the ranks of a message from one to another; -1: all ranks.
struct Where {
  c10::Device device;
  int from = -1, to = -1;

  bool operator<(const Where& other) const { return key() < other.key(); }
  bool is_of_all() const { return from < 0; }

 private:
  std::tuple<c10::DeviceType, c10::DeviceIndex, int, int> key() const {
    return {device.type(), device.index(), from, to};
  }
};

/// Of the places that this rank has, where a barrier is: on a GPU that all ranks have called on, so
/// that all ranks take the same; where there is none, on the host. Two ranks alone have the places
/// of their messages.
inline c10::Device device_of_barrier(const std::vector<Where>& places) {
  c10::Device device(c10::kCPU);
  for (const Where& where : places) {
    if (where.is_of_all() && !where.device.is_cpu()) device = where.device;
  }
  return device;
}

}  // namespace mscclc::torch_adapter
