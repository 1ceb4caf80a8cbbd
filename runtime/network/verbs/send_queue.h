// A queue pair as its sender sees it: orders go to the device in batches, of which only the last
// one reports that it is done; all before it then are, too.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ir/support/precondition.h"
#include "runtime/network/verbs/adapter.h"

namespace mscclc::verbs {

/// An order to a peer's memory.
struct Work {
  enum class What : uint8_t {
    write,
    add,      ///< an RDMA atomic: adds `value`
    message,  ///< a signal as a write with an immediate: the place that it names
    landing   ///< the same, for what was written to staging memory by the same queue
  };
  What what = What::write;
  bool carried = false;  ///< the bytes are in the order
  uint32_t key = 0;      ///< of the peer's memory
  uint32_t bytes = 0;
  uint32_t source_key = 0;
  uint32_t place = 0;   ///< message
  uint64_t number = 0;  ///< of the lane's orders, from 1
  uint64_t to = 0;      ///< address at the peer
  uint64_t value = 0;   ///< add
  const uint8_t* from = nullptr;
  std::array<uint8_t, kInline> data = {};  ///< if carried
};

class SendQueue {
 public:
  /// `old_values`: where the device writes what was there before it added; it is not read.
  SendQueue(std::unique_ptr<QueuePair> pair, uint32_t depth, uint64_t* old_values,
            uint32_t old_values_key)
      : pair_(std::move(pair)),
        depth_(depth),
        old_values_{reinterpret_cast<uintptr_t>(old_values), sizeof *old_values, old_values_key} {}

  QueuePair& pair() { return *pair_; }
  bool has_room() const { return given_.size() < depth_; }
  bool is_empty() const { return given_.empty(); }
  /// The number of the first order that is not done. REQUIRES: !is_empty().
  uint64_t first() const {
    precondition(!is_empty());
    return given_.front().number;
  }
  /// Adds an order to the batch, and gives that to the device if it is full. 0, or an error of the
  /// system. REQUIRES: has_room().
  [[nodiscard]] int add(const Work& work);
  /// Gives the batch to the device.
  [[nodiscard]] int ring();
  /// All orders up to this one are done.
  void done(uint64_t number);
  /// What an order was: "RDMA write of 4096 bytes".
  std::string text(uint64_t number) const;

 private:
  static constexpr size_t kBatch = 16;
  struct Given {
    uint64_t number;
    Work::What what;
    uint32_t bytes;
  };

  const std::unique_ptr<QueuePair> pair_;
  const uint32_t depth_;
  ibv_sge old_values_;
  std::deque<Given> given_;
  size_t batched_ = 0;
  std::array<Work, kBatch> batch_;
};

}  // namespace mscclc::verbs
