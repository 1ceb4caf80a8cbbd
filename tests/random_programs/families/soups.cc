// Sums and moves of all kinds by any block of any rank, in an order that one process would keep.
// A block that touches what another has touched before hears of that first, except in a few draws:
// by signals, barriers and semaphores, or because the data comes in packets. What outputs hold in
// the end is promised. All of it may be the body of a pipeline.
#include "tests/random_programs/families/families.h"
#include "tests/random_programs/families/soup.h"

namespace mscclc::random_programs {

Sketch Soup::make() {
  sketch_.family = "soups";
  ranks_ = 1 + dice_.below(one_in(dice_, 3) ? 3 : 2);
  if (ranks_ == 1 && !one_in(dice_, 4)) ranks_ = 2;
  blocks_ = 1 + dice_.below(2);
  positions_ = 1 + dice_.below(2);
  either_ = one_in(dice_, 3);
  piped_ = one_in(dice_, 2);
  gathers_ = one_in(dice_, 5);
  wide_ = !gathers_ && one_in(dice_, 4);
  if (wide_) positions_ = 1;
  unit_ = 16 * (1 + dice_.below(3));
  slack_ = one_in(dice_, 3) ? 6 : 14;
  full_close_ = !one_in(dice_, 3);
  sketch_.ranks.resize(ranks_);
  static constexpr const char* kFormats[] = {"LL8", "LL16", "LL16", "LL128", "sentinel"};
  format_ = kFormats[dice_.below(5)];
  with_packets_ = !piped_ && one_in(dice_, 2);
  with_switch_ = ranks_ > 1 && one_in(dice_, 3);
  declare();
  begin();
  const uint32_t steps = 2 + dice_.below(8);
  const uint32_t cut = one_in(dice_, 2) ? steps : dice_.below(steps);
  for (uint32_t i = 0; i < steps; ++i) {
    if (i == cut) cut_here();
    step();
  }
  empty_slots();
  if (one_in(dice_, 4)) cut_here();
  fill_outputs();
  if (one_in(dice_, 4)) cut_here();
  close();
  contract();
  assemble();
  return std::move(sketch_);
}

Sketch make_soup(Dice& dice) { return Soup(dice).make(); }

}  // namespace mscclc::random_programs
