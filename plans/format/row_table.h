// Which program of plans/rows, with which parameters, for a collective with a function of its rows:
// plans/rows/library.json, a list of rows of which the first that fits is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/dtypes.h"

namespace mscclc {

/// A call of such a collective, as far as the choice depends on it. The same on all ranks.
struct RowCall {
  std::string name;  ///< of what is computed: "allreduce_norm"
  uint32_t ranks = 0;
  uint64_t columns = 0;
  uint64_t rows = 0;  ///< of the message: the larger of input and output
  Dtype dtype = Dtype::f32;
  SumOrder order = kDefaultOrder;  ///< what the bits of its sums must keep to

  /// Of a row. REQUIRES: columns of a message, so no overflow.
  uint64_t row_bytes() const { return columns * info(dtype).bytes; }
};

/// One row of the table: the calls that it serves, and what it picks for them.
struct RowEntry {
  std::string name;
  uint32_t min_ranks = 2, max_ranks = ~uint32_t{0};
  uint64_t rows = ~uint64_t{0};   ///< the most
  uint64_t bytes = ~uint64_t{0};  ///< of a message, the most
  uint64_t columns = 1;           ///< of which those of a call are a multiple, whatever its type
  std::string program;            ///< a file of plans/rows, no .mscl
  /// As -D takes them; the value "row" stands for as many threads as a row has 16 bytes, in whole
  /// warps, 1024 at most.
  std::vector<std::pair<std::string, std::string>> params;

  /// "it is for 64 rows at most", if the entry is not for the call.
  std::optional<std::string> why_not(const RowCall& call) const;
  /// The largest number of rows of a call, with all else as in `call`. REQUIRES: columns > 0.
  uint64_t most_rows(const RowCall& call) const;
  /// The program's parameters for a call: R and N, and those of the table.
  std::vector<std::pair<std::string, std::string>> defines(const RowCall& call) const;
  /// As FILE of a command may be: "allreduce_norm_1shot:R=2,N=6144,B=8,T=768".
  std::string choice_text(const RowCall& call) const;
};

class RowTable {
 public:
  /// Reads a table. Refuses one with a call of a name that it has that no row fits, and one with a
  /// row that is never reached. Errors (not-a-library and those of JSON).
  [[nodiscard]] static std::optional<RowTable> parse(std::string_view text, const std::string& name,
                                                     Diagnostics& diagnostics);

  /// What the sums of every program of plans/rows keep: each says `order: ranks`.
  static constexpr SumOrder kOrder = SumOrder::ranks;

  std::span<const RowEntry> entries() const { return entries_; }
  /// What is computed, each once, in the order of the table.
  std::vector<std::string> names() const;
  /// Is the call one that can be made at all? Errors: a name that the table has not, one rank, rows
  /// that are no multiple of 16 bytes, of the call's type or of another that its program sends, or
  /// of a type that row functions have not (row-call); sums in an order that no entry keeps
  /// (no-plan-in-order).
  [[nodiscard]] bool check(const RowCall& call, Diagnostics& diagnostics) const;
  /// The first that fits, and up to how many rows it is picked. REQUIRES: check().
  std::pair<const RowEntry*, uint64_t> choose(const RowCall& call) const;

 private:
  /// Of how many columns a call's are a multiple. REQUIRES: a type that rows have.
  uint64_t columns_step(const RowCall& call) const;

  std::vector<RowEntry> entries_;
};

/// The table that is compiled in. Never fails.
const RowTable& builtin_row_table();

}  // namespace mscclc
