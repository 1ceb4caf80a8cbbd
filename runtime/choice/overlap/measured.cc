#include "runtime/choice/overlap/measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "ir/diagnostics/printable.h"
#include "ir/program/flag_regions.h"
#include "ir/support/read_file.h"
#include "plans/format/embedded_library.h"
#include "plans/format/table_reader.h"

namespace mscclc::overlap {
namespace {

constexpr KeySet kRequired = {w_kind,         w_mode,    w_ranks,  w_dtype, w_rows,
                              w_flops_a_byte, w_backend, w_chunks, w_budget};
constexpr KeySet kOptional = {w_gemm};

constexpr uint32_t kLeastRanks = 2, kMostRanks = 65536;
/// More multiprocessors than a GPU has.
constexpr uint32_t kMostBudget = 1024;

/// What rows may pick. (cuBLASMp is asked for by name: it is large, and gives no `gathered`.)
constexpr std::array kBackends = {kFlagged, kCopyEngine, kSerial, kNccl};
constexpr std::array<std::string_view, 2> kModes = {"eager", "captured"};  // by RunMode
constexpr std::array<std::string_view, 2> kGemms = {"any", "own"};         // by MeasuredGemm

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (const DtypeInfo& t : dtype_table()) {
    if (is_wide(t.dtype) || is_narrow(t.dtype)) names.push_back(t.name);
  }
  return names;
}

/// Reads one table; all functions return false after reporting.
class MeasuredReader : TableReader {
 public:
  MeasuredReader(const JsonReader& reader, std::vector<MeasuredChoice>& rows)
      : TableReader(reader), rows_(rows) {}

  bool run() {
    std::vector<NodeId> places;
    return read_rows(places, [&](NodeId node) { return row(node); });
  }

 private:
  bool row(NodeId node) {
    Members m;
    MeasuredChoice row = {};
    const bool right = m.read(reader_, node, kRequired, kOptional) && kind(m[w_kind], row.kind) &&
                       one_of(m[w_mode], "mode", kModes, row.mode) &&
                       number(m[w_ranks], {kLeastRanks, kMostRanks}, "ranks", row.ranks) &&
                       dtype(m[w_dtype], row.dtype) &&
                       range(m[w_rows], row.least_rows, row.most_rows) &&
                       range(m[w_flops_a_byte], row.least_intensity, row.most_intensity) &&
                       backend(m[w_backend], row.backend) &&
                       (!m.has(w_gemm) || one_of(m[w_gemm], "gemm", kGemms, row.gemm)) &&
                       chunks(m[w_chunks], row) && budget(m[w_budget], row);
    if (!right) return false;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].covers(row)) continue;
      return reader_.fail(node, fmt::format("never reached: rows[{}] takes all its calls", i));
    }
    rows_.push_back(row);
    return true;
  }

  /// The index of a word among `words`; words.size(): reported.
  template <class Words>
  size_t word(NodeId node, const char* what, const Words& words) const {
    std::string_view text;
    if (!reader_.string(node, text)) return words.size();
    const auto at = static_cast<size_t>(std::ranges::find(words, text) - words.begin());
    if (at == words.size()) {
      reader_.fail(node, fmt::format("unknown {} {}; there are {}", what, quoted(text, kMaxWord),
                                     fmt::join(words, ", ")));
    }
    return at;
  }

  template <class Enum, size_t N>
  bool one_of(NodeId node, const char* what, const std::array<std::string_view, N>& words,
              Enum& out) const {
    const size_t at = word(node, what, words);
    out = static_cast<Enum>(at);
    return at < N;
  }

  bool kind(NodeId node, OverlapKind& out) const {
    const size_t at = word(node, "kind", kind_names());
    if (at == kinds().size()) return false;
    out = kinds()[at].kind;
    return true;
  }

  bool dtype(NodeId node, Dtype& out) const {
    const auto names = dtype_names();
    const size_t at = word(node, "data type of A", names);
    if (at == names.size()) return false;
    out = *find_dtype(names[at]);
    return true;
  }

  bool backend(NodeId node, std::string_view& out) const {
    const size_t at = word(node, "backend of a row", kBackends);
    if (at == kBackends.size()) return false;
    out = kBackends[at];
    return true;
  }

  struct Limits {
    uint64_t least, most;
  };
  bool number(NodeId node, Limits limits, const char* what, uint32_t& out) const {
    uint64_t value = 0;
    if (!reader_.u64(node, value)) return false;
    out = static_cast<uint32_t>(value);
    return (value >= limits.least && value <= limits.most) ||
           reader_.fail(node, fmt::format("{} must be {} to {}; it is {}", what, limits.least,
                                          limits.most, value));
  }

  /// [smallest, largest]
  bool range(NodeId node, uint64_t& least, uint64_t& most) const {
    if (!reader_.expect(node, JsonType::array)) return false;
    if (reader_.count(node) != 2) {
      return reader_.fail(
          node, fmt::format("expected [smallest, largest], found {} numbers", reader_.count(node)));
    }
    const NodeId first = reader_.first(node);
    if (!reader_.u64(first, least) || !reader_.u64(reader_.next(first), most)) return false;
    return least <= most ||
           reader_.fail(
               node, fmt::format("expected [smallest, largest]; {} is more than {}", least, most));
  }

  bool no_plan(NodeId node, const MeasuredChoice& row, const char* what) const {
    uint64_t value = 0;
    if (!reader_.u64(node, value)) return false;
    return value == 0 ||
           reader_.fail(node, fmt::format("{} of '{}' must be 0, as no plan runs beside its GEMMs; "
                                          "it is {}",
                                          what, row.backend, value));
  }

  bool chunks(NodeId node, MeasuredChoice& row) const {
    if (!runs_beside(row.backend)) return no_plan(node, row, "chunks");
    const uint64_t most = std::min<uint64_t>(kMaxChunks, kMaxFlags / row.ranks);
    if (most == 0) {
      return reader_.fail(node, fmt::format("'{}' is for {} ranks at most, as a plan has {} flags "
                                            "at most; ranks is {}",
                                            row.backend, kMaxFlags, kMaxFlags, row.ranks));
    }
    return number(node, {1, most}, "chunks", row.chunks);
  }

  bool budget(NodeId node, MeasuredChoice& row) const {
    if (!runs_beside(row.backend)) return no_plan(node, row, "budget");
    const uint32_t least = least_blocks(row.kind, row.backend, row.chunks);
    return number(node, {least, kMostBudget},
                  "budget, a multiprocessor for each thread block of the plan,", row.budget);
  }

  static constexpr size_t kMaxWord = 64;  ///< of what messages repeat
  std::vector<MeasuredChoice>& rows_;
};

bool within(uint64_t least, uint64_t most, uint64_t outer_least, uint64_t outer_most) {
  return outer_least <= least && most <= outer_most;
}

}  // namespace

bool MeasuredChoice::covers(const MeasuredChoice& other) const {
  return kind == other.kind && mode == other.mode && ranks == other.ranks && dtype == other.dtype &&
         (gemm == MeasuredGemm::any || gemm == other.gemm) &&
         within(other.least_rows, other.most_rows, least_rows, most_rows) &&
         within(other.least_intensity, other.most_intensity, least_intensity, most_intensity);
}

std::optional<std::vector<MeasuredChoice>> read_measured(std::string_view text,
                                                         const std::string& name,
                                                         Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, name, diagnostics)) return std::nullopt;
  std::vector<MeasuredChoice> rows;
  const JsonReader reader(tape, name, diagnostics, "not-a-library");
  if (!MeasuredReader(reader, rows).run()) return std::nullopt;
  return rows;
}

std::string measured_text(std::span<const MeasuredChoice> rows) {
  std::string text = "{\n  \"rows\": [\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredChoice& row = rows[i];
    text += fmt::format(
        "    {{\"kind\": \"{}\", \"mode\": \"{}\", \"ranks\": {}, \"dtype\": \"{}\", "
        "\"rows\": [{}, {}], \"flops_a_byte\": [{}, {}], \"backend\": \"{}\", \"chunks\": {}, "
        "\"budget\": {}, \"gemm\": \"{}\"}}{}\n",
        name(row.kind), kModes[static_cast<size_t>(row.mode)], row.ranks,
        mscclc::info(row.dtype).name, row.least_rows, row.most_rows, row.least_intensity,
        row.most_intensity, row.backend, row.chunks, row.budget,
        kGemms[static_cast<size_t>(row.gemm)], i + 1 < rows.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

std::span<const MeasuredChoice> measured_choices() {
  static const std::vector<MeasuredChoice> rows = [] {
    Diagnostics none;
    return *read_measured(embedded_measured(), "plans/overlap/measured.json", none);
  }();
  return rows;
}

}  // namespace mscclc::overlap

namespace mscclc {

bool has_measured(const std::string& folder) {
  std::error_code none;
  return std::filesystem::exists(folder + "/" + overlap::kMeasuredFile, none);
}

std::optional<MeasuredTable> read_measured_of(const std::string& folder, Diagnostics& diagnostics) {
  constexpr const char* kRemedy = "docs/design/overlap.md says what its rows have";
  MeasuredTable table{folder + (folder.ends_with('/') ? "" : "/") + overlap::kMeasuredFile, {}};
  const auto text = read_file(table.file, std::nullopt);  // without waiting
  if (!text) {
    diagnostics
        .error("cannot-read", {},
               fmt::format("cannot read '{}': {}", table.file, file_error(errno)))
        .notes.push_back({kRemedy});
    return std::nullopt;
  }
  Diagnostics found;
  auto rows = overlap::read_measured(*text, table.file, found);
  for (Diagnostic d : found.all()) {
    d.notes.push_back({kRemedy});
    diagnostics.add(std::move(d));
  }
  if (!rows) return std::nullopt;
  table.rows = *std::move(rows);
  return table;
}

}  // namespace mscclc
