// Writes a folder of compiled plans with their table, from which jobs pick plans at run time
// (runtime/api/plan_registry.h): what `mscclc library` and `mscclc tune` end with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/support/result.h"
#include "plans/format/target.h"
#include "tools/io/library.h"

namespace mscclc {

/// What is written, and where.
struct PlanFolder {
  std::vector<uint32_t> ranks, roots, nodes = {1};  ///< no roots: all
  std::vector<int64_t> shifts;                      ///< none: all
  std::string output;                               ///< the folder; it need not be there
  std::string diagnostics = "text";                 ///< as of --diagnostics
  bool programs = false;      ///< the library itself, once all its plans are proved
  bool keeps_others = false;  ///< rows of the folder's table for other calls stay
};

/// The first of each that a list names: a table with a row twice is refused.
template <class T>
std::vector<T> without_repeats(const std::vector<T>& list) {
  std::vector<T> made;
  for (const T& one : list) {
    if (std::ranges::find(made, one) == made.end()) made.push_back(one);
  }
  return made;
}

/// Before long work whose plans go to the folder `output`: an error if the library is read there.
Result<void> keeps_library(const Library& library, const std::string& output);

/// Compiles and proves all plans that the library's table picks for these collectives and ranks,
/// and writes them with their table. Returns the exit code, after saying what is wrong;
/// keeps_library() is asked first. REQUIRES: the table's rows name programs.
[[nodiscard]] int write_plan_folder(const PlanFolder& folder, const Library& library,
                                    const Target& target, const std::vector<CollectiveKind>& kinds);

}  // namespace mscclc
