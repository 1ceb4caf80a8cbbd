// Whose packets a step has read: found once a call is over, from the places that steps wrote and
// read.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "executor/cost/timeline.h"
#include "executor/cost/work.h"

namespace mscclc::cost {

class PacketArrows {
 public:
  /// The packets of a step have come to lie there.
  void came(uint32_t record, const PacketRange& slot, double sent, double came) {
    writes_[{slot.rank, slot.buffer}].push_back({slot.range, record, sent, came});
  }
  /// A step reads packets there.
  void read(uint32_t record, const PacketRange& slot) {
    reads_.push_back({{slot.rank, slot.buffer}, slot.range, record});
  }
  /// An arrow for each pair of steps of which one has read what the other wrote. Where a place was
  /// written several times, that is the last one to come before the reader's end.
  void add_arrows(const std::vector<StepRecord>& records, std::vector<Arrow>& arrows);

 private:
  using RankBuffer = std::pair<uint32_t, uint32_t>;  ///< rank and buffer
  struct Write {
    SlotRange range;
    uint32_t record;
    double sent, came;
  };
  struct Read {
    RankBuffer from;
    SlotRange range;
    uint32_t record;
  };
  std::map<RankBuffer, std::vector<Write>> writes_;
  std::vector<Read> reads_;
};

}  // namespace mscclc::cost
