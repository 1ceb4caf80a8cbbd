#include "compiler/builder/draft/budget.h"

#include <fmt/format.h>

namespace mscclc {

bool Budget::too_many_ops() {
  if (!gave_up_) reports_.fail("too-many-ops", {}, fmt::format("more than {} ops", max_ops_));
  gave_up_ = true;
  return false;
}

bool Budget::add_blocks(uint64_t n) {
  blocks_ += n;
  if (blocks_ <= max_ops_) return true;
  if (!gave_up_) {
    reports_.fail("too-many-ops", {}, fmt::format("more than {} thread blocks", max_ops_));
  }
  gave_up_ = true;
  return false;
}

bool Budget::add_declared(Mark mark) {
  if (++declared_ <= kMaxDeclared) return true;
  reports_.fail("too-many-ops", mark,
                fmt::format("more than {} buffers, channels and semaphores", kMaxDeclared));
  gave_up_ = true;
  return false;
}

bool Budget::take(const Budget& other) {
  ops_ += other.ops_;
  blocks_ += other.blocks_;
  return ops_ <= max_ops_ && blocks_ <= max_ops_;
}

}  // namespace mscclc
