// Which program of the library, with which parameters, for a call: plans/library.json, a list of
// rows of which the first that fits holds. docs/collectives.md says how to write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/contract.h"
#include "ir/diagnostic.h"
#include "ir/ops.h"

namespace mscclc {

/// What a row picks. R, root and shift are the call's and not among the parameters.
struct LibraryChoice {
  std::string program;                                      ///< a file beside the table, no .mscl
  std::vector<std::pair<std::string, std::string>> params;  ///< as -D takes them
  bool operator==(const LibraryChoice&) const = default;
  /// "B=16,T=128,F=LL128"
  std::string params_text() const;
};

/// A call, as far as the choice depends on it.
struct LibraryCall {
  CollectiveKind kind;
  uint32_t ranks = 0;
  uint64_t bytes = 0;  ///< the larger of input and output of a rank, as in `select sizes`
  Dtype dtype = Dtype::f32;
  bool in_place = false;
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
  /// of a collective that it has, and one with a row that is never reached.
  /// Errors (not-a-library and those of JSON).
  static std::optional<LibraryTable> parse(std::string_view text, const std::string& name,
                                           Diagnostics& diagnostics);

  /// nullptr: the table has nothing for this collective.
  const LibraryChoice* choose(const LibraryCall& call) const;
  /// The choices for a collective over all sizes, data types and placements, smallest size first.
  std::vector<LibraryRange> ranges(CollectiveKind kind, uint32_t ranks) const;
  /// The collectives it has, in the order of the rows.
  std::vector<CollectiveKind> collectives() const;

 private:
  friend class LibraryReader;
  struct Row {
    CollectiveKind kind;
    uint32_t min_ranks = 1, max_ranks = ~uint32_t{0};
    uint64_t bytes = ~uint64_t{0};  ///< the largest
    std::vector<Dtype> dtypes;
    bool in_place = true;  ///< for calls in place too
    LibraryChoice choice;

    bool for_ranks(uint32_t ranks) const { return min_ranks <= ranks && ranks <= max_ranks; }
    bool fits(const LibraryCall& call) const;
    bool covers(const Row& other) const;
  };
  std::vector<LibraryRange> stretches(LibraryCall call, const std::vector<uint64_t>& ends) const;

  std::vector<Row> rows_;
};

}  // namespace mscclc
