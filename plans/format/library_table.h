// Which program of the library, with which parameters, for a call: plans/library.json, a list of
// rows of which the first that fits is taken; or which compiled plan, in the table of a folder that
// `mscclc library` wrote. docs/design/library.md says how to write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "ir/support/link_kind.h"
#include "ir/support/result.h"
#include "plans/format/library_call.h"

namespace mscclc {

/// What a row picks: a program with parameters, of which R, root and shift are the call's and not
/// among them; or a plan.
struct LibraryChoice {
  std::string program;                                      ///< a file beside the table, no .mscl
  std::vector<std::pair<std::string, std::string>> params;  ///< as -D takes them
  std::string plan;  ///< a file beside the table; then there is no program
  bool operator==(const LibraryChoice&) const = default;
  /// "B=16,T=128,F=LL128"
  std::string params_text() const;
  /// The program's parameters for a call, the call's own among them: R, unless the table gives the
  /// numbers of ranks other names (`"world": "ranks"`); root and shift where the collective has
  /// one. REQUIRES: a program.
  std::vector<std::pair<std::string, std::string>> defines(const LibraryCall& call) const;
  /// What messages call the plan for a call: "allreduce_push:R=8,B=128". REQUIRES: a program.
  std::string name(const LibraryCall& call) const;
  /// What `mscclc library` calls the plan for a call: "allreduce_1shot-R4-FLL16-B8.json", which is
  /// short and needs no quoting in shells. REQUIRES: a program.
  std::string plan_file(const LibraryCall& call) const;
  /// Lowers the numbers of blocks and instances among the parameters, as much as `blocks` are more
  /// than `most`. False: they are not, or there is nothing to lower. `most` 0: any number.
  [[nodiscard]] bool lower_blocks(uint32_t blocks, uint32_t most);
};

/// Why a row is not for a call.
enum class Mismatch : uint8_t {
  none,  ///< it is
  collective,
  ranks,
  nodes,
  root,
  shift,
  bytes,
  dtype,
  accumulate,
  placement,
  capture,
  order,
  links
};

/// Of the largest number of ranks or nodes: any is right.
inline constexpr uint32_t kNoLimit = ~uint32_t{0};

/// One row: the calls that it serves, and what it picks for them.
struct LibraryRow {
  CollectiveKind kind;
  uint32_t min_ranks = 1, max_ranks = kNoLimit;
  uint32_t min_nodes = 1, max_nodes = 1;  ///< 0: ranks that are spread unevenly
  std::optional<uint32_t> root;           ///< without one: any
  std::optional<uint32_t> shift;          ///< the same; less than the number of ranks
  uint64_t bytes = ~uint64_t{0};          ///< the largest
  std::vector<Dtype> dtypes;
  std::vector<Dtype> accumulate;   ///< types to add up in; empty: any
  bool in_place = true;            ///< for calls in place too
  bool captured = true;            ///< for captured calls too
  SumOrder order = kDefaultOrder;  ///< the contract that its sums keep
  bool asked = false;              ///< only for calls that ask for this order
  std::optional<LinkKind> links;   ///< nvlink or pcie; without one: any
  LibraryChoice choice;

  bool for_ranks(uint32_t ranks) const { return min_ranks <= ranks && ranks <= max_ranks; }
  bool for_nodes(uint32_t nodes) const { return min_nodes <= nodes && nodes <= max_nodes; }
  bool fits(const LibraryCall& call) const { return mismatch(call) == Mismatch::none; }
  Mismatch mismatch(const LibraryCall& call) const;
  /// The same in words, if it does not fit: "it is for 2 ranks".
  std::optional<Error> why_not(const LibraryCall& call) const;
  /// True if every call that `other` fits is one that this fits.
  bool covers(const LibraryRow& other) const;
};

/// Calls for which the table makes the same choice.
struct LibraryRange {
  const LibraryChoice* choice = nullptr;
  uint64_t min = 0, max = 0;  ///< bytes, both included
  std::vector<Dtype> dtypes;
  InPlace in_place = InPlace::either;
};

class LibraryTable {
 public:
  /// Reads a table. `name` is the file's, for messages. Refuses one with a call that no row fits,
  /// of a collective (and, for plans, of a number of ranks, root and shift) that it has, and one
  /// with a row that is never reached. Errors (not-a-library and those of JSON).
  [[nodiscard]] static std::optional<LibraryTable> parse(std::string_view text,
                                                         const std::string& name,
                                                         Diagnostics& diagnostics);

  /// nullptr: the table has nothing for this collective over so many nodes, or no plan for these
  /// ranks, root or shift.
  const LibraryChoice* choose(const LibraryCall& call) const;
  /// The choices for a collective over all sizes, data types and placements, smallest size first.
  /// Of `call`, only kind, ranks, nodes, root, shift, links, order, captured and the type to add up
  /// in matter. Where no row keeps its order there is no range.
  std::vector<LibraryRange> ranges(const LibraryCall& call) const;
  /// The collectives it has, in the order of the rows.
  std::vector<CollectiveKind> collectives() const;
  std::span<const LibraryRow> rows() const { return rows_; }

 private:
  std::vector<LibraryRange> stretches(LibraryCall call, const std::vector<uint64_t>& ends) const;

  std::vector<LibraryRow> rows_;
};

/// What tables call "any" and "float": all data types, or all floating-point numbers.
std::vector<Dtype> all_dtypes(bool floats_alone);

/// The text of a table with these rows: parse() gives them back.
std::string library_table_text(std::span<const LibraryRow> rows);

}  // namespace mscclc
