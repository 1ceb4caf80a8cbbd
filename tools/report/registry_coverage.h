// Which plan of a registry serves which calls: gaps, overlaps, plans that are never picked.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// Calls of one kind for which the same is picked.
struct CoveredSizes {
  uint64_t min = 0, max = 0;        ///< bytes, both included
  std::string plan;                 ///< "": none, a gap
  std::vector<std::string> others;  ///< that could serve them, too
  std::string why = {};             ///< of a gap: what sums of which plan do not keep
  bool operator==(const CoveredSizes&) const = default;
};

/// Calls that differ in their sizes and types only, of types that are served alike.
struct CoveredCalls {
  LibraryCall call;
  std::vector<Dtype> dtypes;
  std::vector<CoveredSizes> sizes;  ///< ascending, without holes
};

struct Coverage {
  std::vector<CoveredCalls> calls;
  std::vector<std::string> never;  ///< plans that no call gets
  /// How many sizes of `calls` are such.
  size_t gaps() const;
  size_t overlaps() const;
};

/// A plan that a registry may pick, and what it says that it is for.
struct CoveredPlan {
  std::string name;
  LibraryCall call;              ///< kind, ranks, nodes, root, shift
  std::vector<uint64_t> begins;  ///< sizes from which on it is picked, or no longer
};

/// Asks `registry` for all calls that `plans` are for. Errors are those of pick().
Coverage coverage_of(PlanProvider& registry, const std::vector<CoveredPlan>& plans,
                     Diagnostics& diagnostics);

/// "allreduce over 4 ranks, in place"
std::string calls_text(const LibraryCall& call);
/// "f32 bf16", "all types"
std::string types_text(const std::vector<Dtype>& dtypes);
/// "1024 to 4095 bytes", "4096 bytes and more"
std::string sizes_text(uint64_t min, uint64_t max);

/// The coverage as a table of text, and as a drawing (SVG): a bar for each row, sizes from left to
/// right, gaps hatched.
std::string coverage_table(const Coverage& coverage);
std::string coverage_drawing(const Coverage& coverage, const std::string& title);

}  // namespace mscclc
