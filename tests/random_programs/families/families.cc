#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {

Sketch make_sketch(Dice& dice) {
  using Family = Sketch (*)(Dice&);
  static constexpr Family kFamilies[] = {
      make_flows,  make_flows,     make_flows,     make_flows,   make_flows,
      make_flows,  make_stale,     make_packets,   make_packets, make_packets,
      make_relays, make_exchanges, make_exchanges, make_sums,    make_locals,
      make_locals, make_tokens,    make_barriers,  make_growing, make_symmetric,
      make_soup,   make_soup,      make_soup,      make_soup,    make_soup,
  };
  return kFamilies[dice.below(sizeof kFamilies / sizeof *kFamilies)](dice);
}

}  // namespace mscclc::random_programs
