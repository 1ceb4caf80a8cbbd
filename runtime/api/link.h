// What joins the devices of two ranks, as a device says.
#pragma once

#include <string>

#include "ir/support/link_kind.h"

namespace mscclc {

struct Link {
  LinkKind kind = LinkKind::own;
  bool access = true;   ///< the peer's memory can be read and written
  bool atomics = true;  ///< atomic adds to it are the peer's own
  std::string why;      ///< for reports: how that is known, "cuda:0 and cuda:1: no peer access"
  bool lanes = false;   ///< lanes reach the peer's memory without such access
};

}  // namespace mscclc
