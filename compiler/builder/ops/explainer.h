// What to say when operands do not fit an op: found from the table's slots, with the op that would
// fit as the remedy.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/builder/draft/draft.h"
#include "ir/ops/ops.h"

namespace mscclc {

class Explainer {
 public:
  Explainer(BuildReports& reports, const Draft& draft) : reports_(reports), draft_(draft) {}

  /// Reports why the operands do not fit the op. Always false.
  bool explain(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs);

 private:
  std::string ref_text(const Ref& ref);
  const Buffer& buffer_of(const Ref& ref) const;
  std::optional<OpKind> op_that_fits(std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool explain_operand(const OpInfo& info, const Slots& slots, bool is_dst, const Ref& ref,
                       std::string_view remedy);
  void explain_count(const OpInfo& info, const Slots& slots, bool is_dst, std::span<const Ref> refs,
                     std::string_view remedy);

  BuildReports& reports_;
  const Draft& draft_;
};

}  // namespace mscclc
