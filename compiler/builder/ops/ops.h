// Ops: every check comes from the slots of the op table (ir/ops/ops.h), none from the op's name.
// What has nothing to do is left out, what has one source to add up becomes the ops it is made of.
#pragma once

#include <optional>
#include <span>

#include "compiler/builder/ops/chunk_checks.h"
#include "compiler/builder/ops/locations.h"
#include "compiler/builder/ops/op_checks.h"
#include "compiler/builder/ops/tallies.h"

namespace mscclc {

class Ops {
 public:
  Ops(BuildReports& reports, Draft& draft, Budget& budget, Places& places, Locations& locations,
      Tallies& tallies, OpChecks& op_checks, ChunkChecks& chunk_checks)
      : reports_(reports),
        draft_(draft),
        budget_(budget),
        places_(places),
        locations_(locations),
        tallies_(tallies),
        op_checks_(op_checks),
        chunk_checks_(chunk_checks) {}

  /// Checks and appends an op to the rank at hand; false after a mistake, which is reported.
  bool add(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
           const OpOptions& options);
  /// The same of an `apply`; see Builder.
  bool apply(uint32_t function, std::span<const Ref> results, std::span<const Ref> params,
             const OpOptions& options);
  /// The same of a sum that is handed to a row function.
  bool op_then(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
               const ThenRows& then, const OpOptions& options);

 private:
  bool check_flags(OpKind kind, std::span<const Ref> flags);
  bool check_types(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool refuse_external(std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool check_applied(const rows::Function& function, std::span<const Ref> results,
                     std::span<const Ref> params);
  std::optional<uint32_t> first_rows(std::span<const Ref> results, std::span<const Ref> params);
  bool add_applied(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                   std::span<const int64_t> applied, const OpOptions& options);
  void append(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
              const OpOptions& options);
  bool reduce_less(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                   OpOptions options, Fit fit);
  void spread(const OpInfo& info, std::span<const Ref> dsts, const Ref& src,
              const OpOptions& options);
  bool without_empty(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                     const OpOptions& options);

  BuildReports& reports_;
  Draft& draft_;
  Budget& budget_;
  Places& places_;
  Locations& locations_;
  Tallies& tallies_;
  OpChecks& op_checks_;
  ChunkChecks& chunk_checks_;
  std::span<const OpInfo> table_ = op_table();
};

}  // namespace mscclc
