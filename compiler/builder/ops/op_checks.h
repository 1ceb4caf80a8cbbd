// What the kinds and numbers of an op's operands, its options and its channels must be.
#pragma once

#include <span>
#include <vector>

#include "compiler/builder/declare/pairing.h"
#include "compiler/builder/ops/explainer.h"
#include "compiler/builder/ops/places.h"
#include "compiler/builder/ops/slots.h"

namespace mscclc {

/// How the operands of an op fill its slots.
enum class Fit : uint8_t {
  wrong,              ///< not at all; reported
  nothing,            ///< there is nothing to do
  whole,              ///< as the table says
  no_far,             ///< a fused reduction without its far destinations …
  one_source,         ///< … or with one source …
  one_source_no_far,  ///< … or both
};

class OpChecks {
 public:
  OpChecks(BuildReports& reports, const Draft& draft, const KeyedMembers& members,
           const Pairing& pairing, const Places& places)
      : reports_(reports),
        draft_(draft),
        members_(members),
        pairing_(pairing),
        places_(places),
        explainer_(reports, draft) {}

  /// Checks what depends on kinds and numbers of operands alone. What is `wrong` is reported.
  Fit check(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
            const OperandFacts& facts, const OpOptions& options);
  /// Channels that are counted must have a partner.
  bool check_partners(const OpInfo& info, std::span<const Ref> refs);

 private:
  /// Operands of an op that were found right: kinds, formats and numbers, not chunks. Most ops are
  /// as the one before them, except for the numbers.
  struct Accepted {
    static constexpr size_t kMax = 4;
    uint32_t dsts = kNone, srcs = 0;
    uint32_t traits[kMax] = {};
    bool same(std::span<const Ref> d, std::span<const Ref> s) const;
    void set(std::span<const Ref> d, std::span<const Ref> s);
  };

  Fit fit(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
          const OperandFacts& facts, const OpOptions& options);
  bool check_options(const OpInfo& info, const OpOptions& options, size_t sources);
  bool check_summation(const OpInfo& info, const OpOptions& options, size_t sources);
  bool check_channels(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      const OperandFacts& facts);
  bool no_partner(const OpInfo& info, const Ref& ref);

  BuildReports& reports_;
  const Draft& draft_;
  const KeyedMembers& members_;
  const Pairing& pairing_;
  const Places& places_;
  Explainer explainer_;
  std::vector<Accepted> accepted_ = std::vector<Accepted>(op_table().size());  ///< by OpKind
};

}  // namespace mscclc
