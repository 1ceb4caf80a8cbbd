// Which ops of a rank wait for, or are waited for by, ops of other places, only because they touch
// the same bytes: where the sync pass will put a semaphore. Such an op is a point of
// synchronisation that has not been written, and fusing must not move anything past it:
//
//   tb 1 { reduce_packets output[0] <- input[0], inbox[1] }   # once rank 1 has our packets
//   tb 0 {
//     put_packets up[1].inbox[0] <- input[1]
//     put_packets up[1].sums[0] <- output[0]                  # waits for tb 1: one op would, too
//   }
//
// What the author has ordered by semaphores and barriers needs no such wait.
#pragma once

#include <vector>

#include "ir/program/signal_counts.h"
#include "passes/fuse/reorder/fuse_touches.h"

namespace mscclc::fusion {

enum Edge : uint8_t { kNoEdge = 0, kWaitsForOthers = 1, kOthersWait = 2 };

class Edges {
 public:
  explicit Edges(const Program& program) : program_(program) {}
  /// Can a rank have edges? With ops in one place only, or without the sync pass, it has none.
  static bool possible(const Program& program, const Rank& rank);
  /// Finds the edges of a rank's ops. Without `touches` (of the whole rank) there are none.
  void start(uint32_t rank, const Touches* touches, const Places& places);
  /// Edge bits of an op.
  uint8_t of(Number op) const { return edges_.empty() ? uint8_t{kNoEdge} : edges_[op - 1]; }

 private:
  struct Reader {
    Number op;
    bool packets;
    uint32_t next;
  };
  struct Cell {
    Number writer = kNoOp;
    bool packets = false;
    uint32_t readers = kNone;  ///< since the last write
  };
  struct Release {
    Number op;
    uint32_t loop, next;
  };
  struct Semaphore {
    Sole releaser, acquirer;               ///< places
    uint32_t first = kNone, last = kNone;  ///< releases, in order
    int64_t acquired = 0, paired = 0;      ///< acquires less the initial value; releases taken
    uint32_t pair = kNone;                 ///< the last release taken
  };
  struct Barrier {
    Number any;                                 ///< an op that comes to it
    std::vector<std::vector<Number>> arrivals;  ///< by block of it, in order
  };

  void read_semaphores();
  void visit(Number op);
  void visit_data(Number op);
  void follow(Number op, Number earlier);
  void release(Number op);
  void acquire(Number op);
  void arrive(Number op);
  Barrier& barrier_of(Number op);
  uint32_t place(Number op) const;
  void learn(uint32_t place, uint32_t other, Number op);
  Number known(uint32_t place, uint32_t other) const;

  const Program& program_;
  const Rank* rank_ = nullptr;
  const Touches* touches_ = nullptr;
  const Places* places_ = nullptr;
  std::vector<uint8_t> edges_;
  std::vector<Cell> cells_;
  std::vector<Reader> readers_;
  std::vector<Semaphore> semaphores_;
  std::vector<Release> releases_;
  std::vector<Barrier> barriers_;
  /// By place and other place: the last op of the other one that is known to be done.
  std::vector<Number> known_;
  uint32_t width_ = 0;
};

}  // namespace mscclc::fusion
