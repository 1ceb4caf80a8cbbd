// Where calls run: on a device, by all ranks of a group or by two.
#pragma once

#include <c10/core/Device.h>

#include <tuple>

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

}  // namespace mscclc::torch_adapter
