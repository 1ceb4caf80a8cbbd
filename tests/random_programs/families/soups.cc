// Sums and moves of all kinds by any block of any rank, in an order that one process would keep.
// A block that touches what another has touched before hears of that first, except in a few draws:
// by signals, barriers and semaphores, or because the data comes in packets. What outputs hold in
// the end is promised. All of it may be the body of a pipeline.
#include "tests/random_programs/families/families.h"
#include "tests/random_programs/families/soup/order.h"
#include "tests/random_programs/families/soup/outputs.h"
#include "tests/random_programs/families/soup/packets.h"
#include "tests/random_programs/families/soup/places.h"
#include "tests/random_programs/families/soup/shape.h"
#include "tests/random_programs/families/soup/steps.h"
#include "tests/random_programs/families/soup/text.h"

namespace mscclc::random_programs {
namespace {

/// A soup, as it is made.
class Soup {
 public:
  explicit Soup(Dice& dice) : dice_(dice) {}

  Sketch make();

 private:
  void step();

  Dice& dice_;
  soup::Shape shape_;
  soup::Text text_{shape_, dice_};
  soup::Order order_{shape_, dice_, text_};
  soup::Places places_{shape_, dice_};
  soup::Steps steps_{shape_, dice_, text_, order_, places_};
  soup::Packets packets_{shape_, dice_, text_, order_, places_, steps_};
  soup::Outputs outputs_{shape_, dice_, text_, places_, steps_};
};

Sketch Soup::make() {
  shape_.ranks = 1 + dice_.below(one_in(dice_, 3) ? 3 : 2);
  if (shape_.ranks == 1 && !one_in(dice_, 4)) shape_.ranks = 2;
  shape_.blocks = 1 + dice_.below(2);
  shape_.positions = 1 + dice_.below(2);
  shape_.either = one_in(dice_, 3);
  shape_.piped = one_in(dice_, 2);
  shape_.gathers = one_in(dice_, 5);
  shape_.wide = !shape_.gathers && one_in(dice_, 4);
  if (shape_.wide) shape_.positions = 1;
  shape_.unit = 16 * (1 + dice_.below(3));
  shape_.slack = one_in(dice_, 3) ? 6 : 14;
  shape_.full_close = !one_in(dice_, 3);
  static constexpr const char* kFormats[] = {"LL8", "LL16", "LL16", "LL128", "sentinel"};
  shape_.format = kFormats[dice_.below(5)];
  shape_.with_packets = !shape_.piped && one_in(dice_, 2);
  shape_.with_switch = shape_.ranks > 1 && one_in(dice_, 3);
  text_.declare();
  order_.begin();
  places_.begin();
  const uint32_t steps = 2 + dice_.below(8);
  const uint32_t cut = one_in(dice_, 2) ? steps : dice_.below(steps);
  for (uint32_t i = 0; i < steps; ++i) {
    if (i == cut) text_.cut_here();
    step();
  }
  packets_.empty_slots();
  if (one_in(dice_, 4)) text_.cut_here();
  outputs_.fill();
  if (one_in(dice_, 4)) text_.cut_here();
  order_.close();
  outputs_.contract();
  return text_.assemble();
}

void Soup::step() {
  const uint32_t p = dice_.below(shape_.ranks * shape_.blocks);
  const uint32_t kind = dice_.below(shape_.with_packets ? 12 : 7);
  if (kind >= 7) return kind < 10 && packets_.any_sent() ? packets_.receive() : packets_.send(p);
  if (kind >= 5 && shape_.with_switch) return steps_.at_switch(p);
  if (kind >= 3) return steps_.sum(p);
  steps_.move(p);
}

}  // namespace

Sketch make_soup(Dice& dice) { return Soup(dice).make(); }

}  // namespace mscclc::random_programs
