// What an op computes of rows: its row function, and what stands for each parameter and result.
// Encoded in Program::integers, which all passes carry along.
//
// An `apply` has operands for both sides. A sum that is handed to a function before it is stored
// (`reduce … then f`) has the sum for one parameter, and its destinations for one result: they are
// operand 0 of their side. All else is externals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// What stands for a parameter or a result: an operand of the op on that side, or an external.
struct RowValue {
  bool external = false;
  uint32_t index = 0;
};

/// Reading: values of Program::integers, which must outlive it.
struct Applied {
  uint32_t function = 0;
  /// Chunk of the promised output from which on the rows of externals are taken, as many as the
  /// op's operands have chunks. Says nothing where no external has_rows().
  uint32_t first = 0;
  std::span<const int64_t> results, params;

  static RowValue value(int64_t encoded) {
    return encoded < 0 ? RowValue{true, static_cast<uint32_t>(~encoded)}
                       : RowValue{false, static_cast<uint32_t>(encoded)};
  }
  RowValue result(size_t i) const { return value(results[i]); }
  RowValue param(size_t i) const { return value(params[i]); }
};

/// Does the op compute rows?
inline bool applies(const Op& op) { return op.applied.count != 0; }
/// May an op of this kind? `apply` must; so may sums of what lies in buffers, but not at a switch.
inline bool may_apply(const OpInfo& row) {
  return row.has(kApplies) || (row.has(kReduces) && row.dsts.slot[0].kind == SlotKind::local &&
                               row.srcs.slot[0].kind == SlotKind::local);
}

/// Does it take or give values for each row that lie in externals?
bool has_rows(const Program& program, const Applied& what);

/// REQUIRES: the op is one of applies() that verify_structure() has seen, or will: applied_fits().
Applied applied(const Program& program, const Op& op);
Applied applied(const Program& program, Slice encoded);
/// True if what the op has can be read as Applied: its function, and as many values as that has.
bool applied_fits(const Program& program, const Op& op);

/// The numbers of Applied.
std::vector<int64_t> encode_applied(uint32_t function, uint32_t first,
                                    std::span<const RowValue> results,
                                    std::span<const RowValue> params);

/// The same with another `first`.
std::vector<int64_t> with_first(const Program& program, const Op& op, uint32_t first);

/// What `then` binds: parameters to externals of the same name, the first one to the sum; results
/// to externals of their name, or of their name without "_out", that are written; one `row` to the
/// output, which has its type. Parameters: kNone is the sum; results: kNone is the output.
struct ThenBinding {
  uint32_t function = 0;
  std::vector<uint32_t> params = {}, results = {};
  uint32_t output = 0;  ///< the result that is the output
};
/// Nothing if the program has no `then`, or, with `fault` set, if it cannot be bound.
std::optional<ThenBinding> bind_then(const Program& program, std::string* fault = nullptr);

/// Sets what the output's rows are made of (Contract::output_type), as `then` says, if it can be
/// bound. For whatever makes a program.
void settle_output(Program& program);

/// What `type:` calls a form: a type, or an external that has it, the first. "": nothing does.
std::string_view form_name(const Program& program, const rows::Form& form);
std::optional<rows::Form> find_form(const Program& program, std::string_view name);

/// The rank that has chunk `chunk` of a sharded external.
uint32_t owner_of_shard(const Contract& contract, uint32_t chunk);

}  // namespace mscclc
