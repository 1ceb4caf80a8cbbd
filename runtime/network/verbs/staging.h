// Memory from which bytes are sent that lie in memory which the device does not read: they are
// copied there first. A ring: what was taken first is free again first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "ir/support/result.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/resources/own_pages.h"

namespace mscclc::verbs {

class Staging {
 public:
  static constexpr uint64_t kBytes = 1 << 20;
  /// Most that one order takes.
  static constexpr uint64_t kMax = 256 << 10;

  static Result<std::unique_ptr<Staging>> make(const Adapter& adapter);

  uint32_t key() const { return region_->local_key(); }
  /// Room for order `number`. nullptr: there is none until others are done. REQUIRES: bytes <=
  /// kMax.
  [[nodiscard]] uint8_t* take(uint64_t bytes, uint64_t number);
  /// Is there room for kMax bytes, in one order or two?
  bool has_room_for_a_block() const { return used_ + 2 * kMax <= kBytes; }
  /// All orders before this one are done.
  void done_before(uint64_t number);

 private:
  struct Taken {
    uint64_t number, bytes;  ///< with what was left over before it
  };

  const OwnPages<uint8_t> memory_{kBytes};
  std::shared_ptr<const MemoryRegion> region_;
  uint64_t next_ = 0, used_ = 0;
  std::deque<Taken> taken_;
};

}  // namespace mscclc::verbs
