// What was measured: which backend `auto` takes for a GEMM that overlaps. Rows of a table, of which
// the first that fits is taken: plans/overlap/measured.json, which is compiled in, and before it
// the overlap.json of folders of plans. docs/design/overlap.md says what a row has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/choice/overlap/kinds.h"

namespace mscclc::overlap {

/// How a run comes to the device: by itself, or in a CUDA graph, which costs the host nothing.
enum class RunMode : uint8_t { eager, captured };

/// Whose products a choice is for: all, or those of the device's own provider, which a caller's
/// function takes the host longer than.
enum class MeasuredGemm : uint8_t { any, own };

/// A table in a folder of plans.
inline constexpr const char* kMeasuredFile = "overlap.json";

/// A row: the objects that it serves, and what it picks for them.
struct MeasuredChoice {
  OverlapKind kind;
  RunMode mode;
  uint32_t ranks;
  Dtype dtype;                               ///< of A
  uint64_t least_rows, most_rows;            ///< m
  uint64_t least_intensity, most_intensity;  ///< flops of a rank's GEMMs a byte of its message
  std::string_view backend;                  ///< kFlagged, kCopyEngine, kSerial or kNccl
  uint32_t chunks, budget;                   ///< 0 of backends without a plan beside GEMMs
  MeasuredGemm gemm = MeasuredGemm::any;

  bool operator==(const MeasuredChoice&) const = default;
  /// True if every object that `other` serves is one that this serves.
  bool covers(const MeasuredChoice& other) const;
};

/// Reads a table. `name` is the file's, for messages. nullopt: reported (not-a-library and those of
/// JSON): all that is wrong with a row, numbers out of range, and a row that is never reached.
[[nodiscard]] std::optional<std::vector<MeasuredChoice>> read_measured(std::string_view text,
                                                                       const std::string& name,
                                                                       Diagnostics& diagnostics);

/// The text of a table with these rows, a line each: read_measured() gives them back, if they are
/// right.
std::string measured_text(std::span<const MeasuredChoice> rows);

/// The table that is compiled in. Never fails.
std::span<const MeasuredChoice> measured_choices();

}  // namespace mscclc::overlap

namespace mscclc {

/// The table of a folder of plans.
struct MeasuredTable {
  std::string file;
  std::vector<overlap::MeasuredChoice> rows;
};

/// Those of several, in the order in which they are asked.
struct MeasuredTables {
  std::vector<MeasuredTable> tables;
};

/// Reads FOLDER/overlap.json. nullopt: reported, with a remedy. Errors: cannot-read, those of
/// read_measured().
[[nodiscard]] std::optional<MeasuredTable> read_measured_of(const std::string& folder,
                                                            Diagnostics& diagnostics);
/// True if the folder has such a table.
[[nodiscard]] bool has_measured(const std::string& folder);

}  // namespace mscclc
