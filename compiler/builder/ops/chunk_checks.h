// What the chunks of one op must have in common: how many, how long, in which format; and whether
// some of them mean the same memory.
#pragma once

#include <span>

#include "compiler/builder/declare/header.h"
#include "compiler/builder/declare/layouts.h"
#include "compiler/builder/declare/names.h"
#include "compiler/builder/ops/places.h"
#include "compiler/builder/ops/slots.h"

namespace mscclc {

class ChunkChecks {
 public:
  ChunkChecks(BuildReports& reports, Draft& draft, Header& header, const Names& names,
              const Layouts& layouts, const Places& places)
      : reports_(reports),
        draft_(draft),
        header_(header),
        names_(names),
        layouts_(layouts),
        places_(places) {}

  /// Of an op that moves data, whose operands fit its slots; false after reporting what is wrong.
  bool check(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
             const OperandFacts& facts, const OpOptions& options);

 private:
  bool check_together(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      const OperandFacts& facts);
  bool check_input(std::span<const Ref> dsts);
  bool check_sizes(bool pairwise, std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool same_size(const Ref& a, const Ref& b);
  bool mixed_formats(std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool wrong_count(const Ref& a, const Ref& b);
  bool wrong_loop_count(std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool check_coinciding(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                        const OpOptions& options);
  uint32_t owner_of_buffer(const Operand& o) const;
  bool check_units(std::span<const Ref> refs);
  bool take_unit_at_switch(const Channel& channel, const Ref& ref);
  bool take_unit(uint32_t owner, uint32_t index, Mark mark);

  BuildReports& reports_;
  Draft& draft_;
  Header& header_;
  const Names& names_;
  const Layouts& layouts_;
  const Places& places_;
};

}  // namespace mscclc
