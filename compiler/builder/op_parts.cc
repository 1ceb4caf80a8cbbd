#include "compiler/builder/op_parts.h"

#include "compiler/builder/ops/balance.h"

namespace mscclc {

OpParts::OpParts(BuildReports& reports, Draft& draft, Budget& budget, Header& header,
                 Declarations& owned)
    : reports_(reports),
      draft_(draft),
      owned_(owned),
      places_(reports, draft, budget),
      locations_(reports, draft),
      tallies_(reports, draft, owned.members(), places_),
      barriers_(reports, draft, budget, places_, locations_),
      refs_(reports, draft, owned.names(), owned.layouts(), owned.members()),
      op_checks_(reports, draft, owned.members(), owned.pairing(), places_),
      chunk_checks_(reports, draft, header, owned.names(), owned.layouts(), places_),
      ops_(reports, draft, budget, places_, locations_, tallies_, op_checks_, chunk_checks_) {}

std::vector<uint32_t> OpParts::take(OpParts& part, RankRange of) {
  tallies_.take(part.tallies_, of, places_.take_round_classes(part.places_));
  barriers_.take(part.barriers_);
  places_.take_empty_blocks(part.places_);
  return places_.take_groups(part.places_);
}

void OpParts::check_balances() {
  const Balance balance(reports_, draft_, owned_.members(), places_, tallies_);
  for (uint32_t r = 0; r < draft_.ranks(); ++r) {
    balance.check(r);
    barriers_.check(r);
  }
}

}  // namespace mscclc
