// Which stored values were computed from which: the chains along which a store that depends on a
// value cannot overtake the loads that gave it.
//
// Ops move bytes of a chunk to the same place of another, so a chain holds for the bytes that every
// link of it covers (lemma O4).
//
// Where ranks stand for others (symmetry.h), a chain is kept of what these ranks store. A value is
// then named with the turns from what they have stored to what is meant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/growing.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/model/reached.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Where among an op's operands: which pair of a pairwise op, and which chunk of the operands.
struct Position {
  uint32_t pair = 0, chunk = 0;
  bool operator==(const Position&) const = default;
};

/// What an op has read of a stored value: all of it, or only one piece.
struct ReadValue {
  uint32_t value, turns;  ///< in ValueChains, and how far it is turned
  Extent piece;           ///< whole: all of the value
  /// Not the value: what it was made of, as if that had been read itself.
  bool parents_only = false;
  bool operator==(const ReadValue&) const = default;
};

/// Every stored value of a run, in the order in which they were stored.
class ValueChains {
 public:
  struct Node {
    Event event;
    uint32_t rank;
    Position position;
    Extent extent;
    uint64_t length;        ///< 0, or a class of chunks that may be shorter than others
    uint32_t first, count;  ///< of its parents
  };

  explicit ValueChains(const System& system)
      : system_(system), by_process_(system.processes().size()) {}

  /// What `event` of `rank` stores at `position`, made from `parents`: byte by byte of `extent`, as
  /// far as chunks of the class `length` go; 0: as any.
  uint32_t add(const Event& event, uint32_t rank, Position position, const Extent& extent,
               uint64_t length, const std::vector<ReadValue>& parents);
  const Node& node(uint32_t i) const { return nodes_[i]; }
  size_t size() const { return nodes_.size(); }
  /// As they are where the node is not turned.
  std::span<const ReadValue> parents(const Node& node) const {
    return {parents_.data() + node.first, node.count};
  }
  /// Of a node that is turned: the rank that stored it, and its class of chunks.
  uint32_t rank_of(const ReadValue& read) const {
    return system_.turned_rank(node(read.value).rank, read.turns);
  }
  uint64_t length_of(const ReadValue& read) const {
    const uint64_t length = node(read.value).length;
    return length == 0 ? 0 : system_.symmetry().size_class(length - 1, read.turns) + 1;
  }
  uint32_t add_turns(uint32_t a, uint32_t b) const {
    return a + b == 0 ? 0 : (a + b) % system_.symmetry().turns();
  }
  /// A number for a value that is turned so far.
  uint64_t key(uint32_t value, uint32_t turns) const {
    return uint64_t{value} * system_.symmetry().turns() + turns;
  }
  uint64_t key(const ReadValue& read) const { return key(read.value, read.turns); }
  /// Values of one op in the order in which they were stored, by the process that stands for the
  /// event's, and how far they must be turned.
  struct Stored {
    std::span<const uint32_t> values;
    uint32_t turns;
  };
  Stored stored_by(const Event& event) const;

 private:
  const System& system_;
  Growing<Node> nodes_;
  std::vector<ReadValue> parents_;
  std::vector<std::vector<uint32_t>> by_process_;
};

/// Values that have been read, and all that they were made of, however indirectly. Found out
/// when it is asked for, and each value once for each way in which bytes of it come.
class Provenance {
 public:
  /// What has read them: all threads of a block, or each thread those bytes that it stores.
  enum class Readers : uint8_t { block, thread };
  explicit Provenance(Readers readers = Readers::block) : readers_(readers) {}

  /// The bytes of `extent` have been read of a value. What cannot be distinguished is left out.
  void add(const ValueChains& chains, uint32_t value, uint32_t turns, const Extent& extent);
  /// All that a value was made of has been read.
  void add_parents(uint32_t value, uint32_t turns) { read_.push_back({value, turns, {}, true}); }
  /// Adds what blocks of a rank have read in a call that is over, piece by piece.
  void add_call(const ValueChains& chains, const Cuts& cuts, std::vector<ReadValue> reads);
  void clear();
  size_t size() const { return read_.size(); }
  const std::vector<ReadValue>& values() const { return read_; }

  /// A load of `rank` (or a store, for follow_later), and the bytes that a later access touches.
  struct Load {
    const Event& event;
    uint32_t rank;
    Position position;
    uint64_t length;       ///< its op's class of chunks
    Extent bytes;          ///< those that both may touch, or more
    const Extent& stored;  ///< what the later access touches
  };
  /// Was the load over before the first `count` values could be made: do they come, byte by byte,
  /// from what that op stored of it, or from a later call of the rank?
  /// `far`: look at what is known without a search for parents, and then at these, too.
  /// REQUIRES: `count` does not shrink between two clear().
  bool follow(const ValueChains& chains, const Cuts& cuts, size_t count, const Load& load,
              bool far);

  /// Do the first `count` values come from what the rank stored in a later call than that of
  /// `access`? `far`, and REQUIRES: as follow().
  bool follow_later(const ValueChains& chains, const Cuts& cuts, size_t count, const Load& access,
                    bool far);

 private:
  struct Link {
    ReadValue read;
    uint64_t length = 0;  ///< 0, or the class of chunks that bytes have come through on this way
    /// Whether some bytes have come this way, whatever the size of the message: if these have any.
    Extent if_any = {};
    bool known = true;  ///< whether they have
    bool operator==(const Link&) const = default;
  };
  /// Bytes of a value: what its link says.
  struct Bytes {
    Extent piece;
    uint64_t length;
    bool operator==(const Bytes&) const = default;
  };
  /// What has been reached of a value that is not whole.
  struct Pieces {
    std::vector<Bytes> bytes;
    std::optional<Covering> whole;  ///< of those of them that came through chunks of any length
    void clear() {
      bytes.clear();
      whole.reset();
    }
  };
  /// A call whose packets have come if `extent` has any bytes.
  struct CallIf {
    Extent extent;
    uint32_t calls;
  };
  /// Bytes of a piece that are of so many calls.
  struct Share {
    Extent extent;
    uint32_t calls;
  };
  /// What ops of a rank have stored of a piece.
  struct SharedPiece {
    Extent piece;
    std::vector<Share> shares;  ///< in the order in which they were found
    Covering covering;          ///< of all of them
    uint32_t calls = 0;         ///< the least of theirs
    bool complete = false;      ///< they make up the piece
  };
  template <class Found>
  bool search(const ValueChains& chains, const Cuts& cuts, size_t count, bool far, Found&& found);
  void look_at(const ValueChains& chains, const Cuts& cuts, Link link);
  void look_at_parents(const ValueChains& chains, const Cuts& cuts, const Link& link);
  void keep_parents(const ValueChains& chains, const Link& link);
  bool adds_bytes(const ValueChains& chains, const Cuts& cuts, Link& link);
  bool adds_call(const ValueChains& chains, const Link& link);
  SharedPiece& shared_piece(const Cuts& cuts, uint32_t rank, const Extent& piece);
  void note_call(uint32_t rank, const Extent& if_any, uint32_t calls);
  void add_share(const ValueChains& chains, const Cuts& cuts, const Link& link,
                 const Extent& piece);
  bool comes_from(const ValueChains& chains, const ReadValue& value, uint64_t length,
                  Covering& covering) const;
  bool from_later_call(const Load& load) const;
  bool among(const ValueChains& chains, const Cuts& cuts, const Load& load) const;

  /// Lemma O2: does a reader of a piece know that it has some bytes, however small the message? A
  /// thread that stores others knows nothing of it.
  bool surely_read(const Extent& piece) const {
    return premise(Premise::threads_know_their_own_bytes, readers_ == Readers::block)
               ? piece.sure
               : piece.whole();
  }

  Readers readers_;
  std::vector<ReadValue> read_;
  size_t looked_at_ = 0;           ///< so many of read_
  std::vector<Link> open_;         ///< whose parents are still to be looked at
  std::vector<Link> looked_from_;  ///< those of them whose turn it is
  // By value (ValueChains::key) that has been reached:
  Reached whole_;                               ///< all of its bytes have
  Reached sure_;                                ///< some have, whatever the size
  ReachedMap<Pieces> pieces_;                   ///< of those that are not whole
  ReachedMap<std::vector<Extent>> if_any_;      ///< of those that are not sure
  ReachedMap<std::vector<Link>> parents_only_;  ///< links that are `parents_only`
  std::vector<uint32_t> calls_;                 ///< by rank: one more than the last call among them
  std::vector<std::vector<CallIf>> calls_if_;   ///< the same, if an extent has bytes
  std::vector<std::vector<SharedPiece>> shares_;  ///< by rank
};

}  // namespace mscclc::proof
