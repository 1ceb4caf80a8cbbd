// Where the ranks of a job look for its hub.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/address/unique_id.h"

namespace mscclc {

struct Rendezvous {
  std::string host = {};             ///< address or name; "": only at unix sockets
  std::vector<uint16_t> ports = {};  ///< it listens on one of these
  /// Where a rank 0 that cannot listen at `ports` says so; 0: nowhere.
  uint16_t announced_at = 0;
  Secret secret{};
  bool local = false;   ///< it may listen at a unix socket of this machine
  bool served = false;  ///< it listens already: where nothing does, it is gone
  /// Besides: a process that is there and says something else is not asked again, nor is a place
  /// that cannot be reached. Only one that says nothing is waited for, as it may be stopped.
  bool looks = false;
  std::vector<Address> exactly = {};  ///< at one of these, as well
  /// How long this rank waits for the others at a step, if that is less than the hub says; 0: as it
  /// says.
  std::chrono::milliseconds patience{0};
  /// Asked every kAskAgain until all ranks have come: whether this rank gives up, which is then
  /// reported, also to the others if the hub can be reached now. nullptr: it does not.
  std::function<bool(Diagnostics&)> gives_up = {};
  /// Then the others learn that elsewhere: this rank ends at once.
  bool announced_elsewhere = false;
  static Rendezvous of(const UniqueId& id);
};

}  // namespace mscclc
