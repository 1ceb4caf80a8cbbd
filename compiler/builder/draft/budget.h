// How much a program may declare and do before the builder gives up.
#pragma once

#include <cstdint>

#include "compiler/builder/draft/reports.h"

namespace mscclc {

inline constexpr uint64_t kMaxDeclared = uint64_t{1} << 24;  ///< of all ranks: some GiB

class Budget {
 public:
  explicit Budget(BuildReports& reports) : reports_(reports) {}

  void set_max_ops(uint64_t max_ops) { max_ops_ = max_ops; }
  uint64_t max_ops() const { return max_ops_; }
  uint64_t ops() const { return ops_; }
  uint64_t ops_left() const { return max_ops_ - (ops_ < max_ops_ ? ops_ : max_ops_); }
  /// Further work is pointless.
  bool gave_up() const { return gave_up_; }
  void give_up() { gave_up_ = true; }

  /// Counts an op in, where `operands` are stored in all; false, and an error, once there are too
  /// many.
  bool add_op(uint64_t operands) {
    if (++ops_ <= max_ops_ && operands <= kMaxArena) return true;
    return too_many_ops();
  }
  /// The same of thread blocks.
  bool add_blocks(uint64_t n);
  /// The same of buffers, channels and semaphores.
  bool add_declared(Mark mark);
  /// Takes in what another builder has used up. False if that is too much; nothing is reported.
  bool take(const Budget& other);

 private:
  static constexpr uint64_t kMaxArena = 0xf0000000u;  ///< operands are counted in 32 bits

  bool too_many_ops();

  BuildReports& reports_;
  uint64_t ops_ = 0, blocks_ = 0, declared_ = 0, max_ops_ = 64'000'000;
  bool gave_up_ = false;
};

}  // namespace mscclc
