// Takes the orders of a lane from the bytes of its connections, and carries them out in memory that
// was exposed to lanes. What comes is checked, as it may be anything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "runtime/api/lane.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/landing.h"
#include "runtime/network/lane_wire.h"

namespace mscclc::net {

/// What the connections of one lane share.
struct IncomingLane {
  /// A connection as the fences of the others see it.
  struct Progress {
    uint64_t done = 0;           ///< orders carried out
    bool open = false;           ///< it has come, and may bring more
    std::optional<Order> fence;  ///< it has come to this one, which may still hold it
  };

  std::shared_ptr<ExposedMemory> memory;
  /// A flush: what came before it has been done. False: the sender does not listen.
  std::function<bool(uint32_t connection, uint64_t number)> answer;
  std::vector<Progress> connections = {};
  /// Called with each note, once for every connection; empty: nothing is called.
  LaneNoted noted = {};
  /// For memory of a device; nullptr: there is none.
  std::unique_ptr<Landing> landing = {};
  /// Threads of their own take the bytes of long puts.
  bool apart = false;
};

/// The orders of one connection, in their order.
class OrderReader {
 public:
  /// Most bytes that one put brings.
  static constexpr uint64_t kMaxPut = 256 << 10;

  /// The connection, one of lane.connections, has come. The lane must outlive it.
  OrderReader(IncomingLane& lane, uint32_t connection);

  /// Where the next bytes go. Empty only while it waits.
  std::span<uint8_t> room();
  /// So many bytes have come there.
  void received(size_t bytes);

  /// Bytes that are still to come for the put under way. While there are some, a thread may call
  /// room(), received() and take() where others carry out orders of the lane's other connections.
  uint64_t coming() const { return state_ == State::more ? coming_ : 0; }
  /// Of a long one.
  uint64_t coming_of_long() const { return order_.what == Order::part ? coming() : 0; }
  /// Puts in place what has come of the put.
  void take();
  /// Begins to copy the put if it is to a device and has come whole, so that others do not wait for
  /// that. To be called as take() is.
  void land();

  enum class State : uint8_t {
    more,   ///< needs more bytes
    waits,  ///< for orders of other connections
    bye,    ///< there will be no more
    bad     ///< what came is no order for this lane: why()
  };
  /// Carries out what has come. After `bye` and `bad`: always that.
  State go_on();
  const std::string& why() const { return why_; }

 private:
  static constexpr size_t kBuffer = 64 << 10;
  /// Room for orders where puts go to a device, whose bytes belong elsewhere, or have threads of
  /// their own: carrying out the orders makes others wait.
  static constexpr size_t kOrders = 4 << 10;
  size_t most_room() const;
  size_t held() const { return end_ - begin_; }
  State begin_order();
  State begin_put();
  State begin_landing();
  State signal();
  State flush();
  State fence();
  State note();
  /// The connection whose orders a connection still waits for.
  std::optional<uint32_t> held_by(uint32_t connection) const;
  std::optional<Error> never_reached() const;
  State bye();
  void take_into_room();
  void take_in_words();
  void count_bytes(uint64_t come);
  State end_put();
  State finish();
  State bad(std::string why);
  std::string cannot_land() const;
  State wrong_place(uint64_t bytes);

  IncomingLane& lane_;
  const uint32_t connection_;
  std::unique_ptr<uint8_t[]> buffer_;  ///< whole words of the stream lie on words
  size_t begin_ = 0, end_ = 0;         ///< what has come and is not done yet
  Order order_;
  ExposedMemory::Piece piece_;           ///< of the put
  std::unique_ptr<Landing::Room> room_;  ///< of a put to a device: its bytes go here
  bool in_put_ = false;
  bool lands_ = false;                ///< the put before, or this one, is to a device
  bool landed_ = true;                ///< it could be copied there
  uint64_t copied_ = 0, coming_ = 0;  ///< of the put: bytes done; bytes to come, with the padding
  std::array<uint64_t, 3 * Order::kNoteOrders> note_ = {};  ///< the orders so far
  uint32_t note_orders_ = 0;
  State state_ = State::more;
  std::string why_;
};

}  // namespace mscclc::net
