// Which chunks travel with which signal: what a block wrote before it, and what a block reads after
// the wait that takes it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/draw/steps.h"

namespace mscclc::draw {

/// Chunks on their way, by name.
struct Cargo {
  std::vector<std::string> chunks;
  int64_t chunk = -1;  ///< main_chunk() of the ops that move them; -1 if they differ
};

/// Chunks that no signal of their block announces, or no wait of their block awaited.
struct LooseCargo {
  OpRef op;
  uint32_t peer = 0;
  bool written = false;  ///< else read
  Cargo cargo;
};

class Payload {
 public:
  explicit Payload(const Program& program) : program_(program) {}

  /// Looks at the ops of one block, in order.
  void add_block(uint32_t rank, const std::vector<uint32_t>& ops);

  /// What a flow carries; empty: nothing.
  Cargo of(const Flow& flow) const;
  /// Gives loose cargo to the flows that order it all the same, across the blocks of a rank: the
  /// first signal after what is written, the last wait before what is read.
  void attach_loose(const std::vector<Flow>& flows, const Steps& steps);
  /// What attach_loose() left.
  const std::vector<LooseCargo>& loose() const { return loose_; }

 private:
  using Key = std::pair<OpRef, uint32_t>;  // an op that signals or waits, and the peer

  void move(OpRef at, const Op& op, std::map<uint32_t, LooseCargo>& pending,
            const std::map<uint32_t, OpRef>& waited);
  Cargo packets(const Flow& flow) const;

  const Program& program_;
  std::map<Key, Cargo> written_, read_;
  std::vector<LooseCargo> loose_;
};

}  // namespace mscclc::draw
