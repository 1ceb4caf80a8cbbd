// Which program of the library, with which parameters, for a call: plans/library.json, a list of
// rows of which the first that fits holds; or which compiled plan, in the table of a folder that
// `mscclc library` wrote. docs/collectives.md says how to write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/contract.h"
#include "ir/diagnostic.h"
#include "ir/link_kind.h"
#include "ir/ops.h"
#include "plans/library_call.h"

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
};

/// One row: the calls that it is for, and what it picks for them.
struct LibraryRow {
  CollectiveKind kind;
  uint32_t min_ranks = 1, max_ranks = ~uint32_t{0};
  std::optional<uint32_t> root;   ///< without one: any
  std::optional<uint32_t> shift;  ///< the same; less than the number of ranks
  uint64_t bytes = ~uint64_t{0};  ///< the largest
  std::vector<Dtype> dtypes;
  std::vector<Dtype> accumulate;  ///< types to add up in; empty: any
  bool in_place = true;           ///< for calls in place too
  std::optional<LinkKind> links;  ///< nvlink or pcie; without one: any
  LibraryChoice choice;

  bool for_ranks(uint32_t ranks) const { return min_ranks <= ranks && ranks <= max_ranks; }
  bool fits(const LibraryCall& call) const;
  /// True if every call that `other` fits is one that this fits.
  bool covers(const LibraryRow& other) const;
};

/// Calls for which the table picks the same.
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

  /// nullptr: the table has nothing for this collective, or no plan for these ranks, root or shift.
  const LibraryChoice* choose(const LibraryCall& call) const;
  /// The choices for a collective over all sizes, data types and placements, smallest size first.
  /// Of `call` kind, ranks, root, shift, links and a type to add up in count. REQUIRES:
  /// choose(call) finds something.
  std::vector<LibraryRange> ranges(const LibraryCall& call) const;
  /// The collectives it has, in the order of the rows.
  std::vector<CollectiveKind> collectives() const;
  std::span<const LibraryRow> rows() const { return rows_; }

 private:
  std::vector<LibraryRange> stretches(LibraryCall call, const std::vector<uint64_t>& ends) const;

  std::vector<LibraryRow> rows_;
};

/// The text of a table with these rows: parse() gives them back.
std::string library_table_text(std::span<const LibraryRow> rows);

}  // namespace mscclc
