// The steps of a soup that send packets, take them and hand them on.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/random_programs/families/soup/order.h"
#include "tests/random_programs/families/soup/places.h"
#include "tests/random_programs/families/soup/shape.h"
#include "tests/random_programs/families/soup/steps.h"
#include "tests/random_programs/families/soup/text.h"

namespace mscclc::random_programs::soup {

class Packets : public Part {
 public:
  Packets(const Shape& shape, Dice& dice, Text& text, Order& order, Places& places, Steps& steps)
      : Part(shape, dice), text_(text), order_(order), places_(places), steps_(steps) {}

  /// Packets are still to be taken.
  bool any_sent() const { return !slots_.empty(); }
  void send(uint32_t p);
  /// REQUIRES: any_sent().
  void receive();
  /// What was sent and no op has read.
  void empty_slots();

 private:
  struct Slot {
    RankChunk place;
    Value value;
  };

  RankChunk new_slot(uint32_t rank);
  /// Packets are made here, and a port sends them as they lie.
  void send_by_port(uint32_t p, const RankChunk& from);
  void take(const Slot& slot);
  void forward(uint32_t p, const Slot& slot);
  void unpack(uint32_t p, const Slot& slot, const RankChunk& to);
  /// Adds packets to `x`; perhaps keeps the sum in packets here, or sends it on in packets or
  /// plain.
  void add_packets(uint32_t p, const Slot& slot, const RankChunk& to, const RankChunk& x);

  Text& text_;
  Order& order_;
  Places& places_;
  Steps& steps_;
  uint32_t slot_count_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace mscclc::random_programs::soup
