// Where the other ranks of a communicator are, as seen from this one.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/api/device.h"

namespace mscclc {

/// Found once, while ranks form a communicator.
struct Neighbours {
  std::vector<Link> links;              ///< by rank: what joins this device to that one's
  LinkKind worst_link = LinkKind::own;  ///< of any two ranks: the same on all
  std::vector<uint32_t> node_of;        ///< Communicator::nodes()
  bool in_one_place = false;            ///< Communicator::in_one_place()
  std::vector<uint32_t> beside;  ///< the ranks that share memory of the host, this one included
  uint32_t ranks_here = 1;  ///< ranks whose blocks share the room of this one's: Device::room()
};

}  // namespace mscclc
