#include "plans/format/row_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/printable.h"
#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "plans/format/embedded_library.h"
#include "plans/format/library_call.h"
#include "plans/format/nearest_plan.h"
#include "plans/format/table_reader.h"

namespace mscclc {
namespace {

constexpr KeySet kRequired = {w_name, w_ranks, w_bytes, w_program, w_params};
constexpr KeySet kOptional = {w_rows, w_columns};
constexpr KeySet kAlike = {w_name, w_policy};
constexpr uint64_t kAny = ~uint64_t{0};
constexpr uint64_t kMaxColumns = 1'048'576;
constexpr uint64_t kVector = 16;  ///< bytes that a thread moves at once
constexpr size_t kMaxName = 64;
constexpr std::string_view kOfRow = "row";

uint64_t threads_of_row(const RowCall& call) {
  constexpr uint64_t kWarp = kWarpThreads;
  const uint64_t vectors = (call.row_bytes() + kVector - 1) / kVector;
  return std::clamp((vectors + kWarp - 1) / kWarp * kWarp, kWarp, uint64_t{kMaxBlockThreads});
}

bool has_functions(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

/// What helps a call of columns that none has. Not to pad them: means divide by all columns.
std::string served_columns(uint64_t columns, uint64_t step) {
  const uint64_t below = columns / step * step;
  if (columns > kMaxColumns) return fmt::format("{} are served", kMaxColumns);
  if (below == 0) return fmt::format("{} are served", step);
  return fmt::format("{} and {} are served", below, below + step);
}

/// Reads one table; all functions return false after reporting.
class RowTableReader : TableReader {
 public:
  RowTableReader(const JsonReader& reader, std::vector<RowEntry>& entries)
      : TableReader(reader), entries_(entries) {}

  bool run() {
    return read_rows(rows_,
                     [&](NodeId node) { return is_alike(node) ? alike(node) : entry(node); }) &&
           total();
  }

 private:
  bool is_alike(NodeId node) const {
    const JsonTape& tape = reader_.tape();
    if (tape[node].kind() != JsonType::object) return false;
    for (NodeId m = node + 1; m != tape[node].next; m = tape[m].next) {
      if (tape[m].key == w_policy) return true;
    }
    return false;
  }

  /// What is picked as another name is, above, from programs that have the other's endings.
  bool alike(NodeId node) {
    Members m;
    std::string made, other;
    if (!m.read(reader_, node, kAlike) || !word(m[w_name], made) || !word(m[w_policy], other)) {
      return false;
    }
    const size_t above = entries_.size();
    for (size_t i = 0; i < above; ++i) {
      RowEntry entry = entries_[i];
      if (entry.name != other || !entry.program.starts_with(other)) continue;
      entry.name = made;
      entry.program.replace(0, other.size(), made);
      if (!add(node, std::move(entry))) return false;
    }
    return entries_.size() > above ||
           reader_.fail(m[w_policy], fmt::format("no entry above has programs '{}…'", other));
  }

  bool entry(NodeId node) {
    Members m;
    RowEntry made;
    if (!m.read(reader_, node, kRequired, kOptional) || !word(m[w_name], made.name) ||
        !ranks(m[w_ranks], made) || (m.has(w_rows) && !reader_.u64(m[w_rows], made.rows)) ||
        (m.has(w_columns) && !columns(m[w_columns], made.columns)) ||
        !bytes(m[w_bytes], made.bytes) || !word(m[w_program], made.program) ||
        !params(m[w_params], {"R", "N"}, made.params)) {
      return false;
    }
    return add(node, std::move(made));
  }

  bool add(NodeId node, RowEntry made) {
    const auto covers = [&](const RowEntry& e) {
      return e.name == made.name && e.min_ranks <= made.min_ranks &&
             e.max_ranks >= made.max_ranks && e.rows >= made.rows && e.bytes >= made.bytes;
    };
    const auto found = std::ranges::find_if(entries_, covers);
    if (found != entries_.end()) {
      const auto row = std::ranges::find(rows_, places_[found - entries_.begin()]);
      return reader_.fail(
          node, fmt::format("never reached: rows[{}] takes all its calls", row - rows_.begin()));
    }
    entries_.push_back(std::move(made));
    places_.push_back(node);
    return true;
  }

  /// The name of a file beside the table, or of what is computed.
  bool word(NodeId node, std::string& out) {
    std::string_view text;
    if (!reader_.string(node, text)) return false;
    out = text;
    const bool plain = !text.empty() && text.find_first_of("/.") == std::string_view::npos;
    return plain || reader_.fail(node, "expected a name, without a folder or '.mscl'");
  }

  /// "any", a number, or [smallest, largest].
  bool ranks(NodeId node, RowEntry& out) {
    return is_word(node, "any") ||
           range(node, 2, out.min_ranks, out.max_ranks,
                 "expected a number of ranks from 2 on, [smallest, largest], or \"any\"");
  }

  /// Those of a vector of values of some type.
  bool columns(NodeId node, uint64_t& out) {
    if (!reader_.u64(node, out)) return false;
    return (out != 0 && kVector % out == 0) ||
           reader_.fail(node,
                        "expected of how many columns those of a call are a multiple: 1, 2, "
                        "4, 8 or 16");
  }

  /// The last entry of a name takes every call that another of the name might not take.
  bool total() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      const auto takes_all = [&](const RowEntry& e) {
        return e.name == entries_[i].name && e.rows == kAny && e.bytes == kAny &&
               e.min_ranks == 2 && e.max_ranks == RowEntry().max_ranks;
      };
      if (std::ranges::any_of(entries_, takes_all)) continue;
      return reader_.fail(places_[i],
                          fmt::format("'{}' needs an entry for all its calls: \"ranks\": \"any\", "
                                      "\"bytes\": null, no \"rows\"",
                                      entries_[i].name));
    }
    return true;
  }

  std::vector<RowEntry>& entries_;
  std::vector<NodeId> rows_, places_;  ///< where rows of the table are, and of each entry its row
};

}  // namespace

std::optional<std::string> RowEntry::why_not(const RowCall& call) const {
  if (call.ranks < min_ranks || call.ranks > max_ranks) {
    return min_ranks == max_ranks ? fmt::format("it is for {} ranks", min_ranks)
                                  : fmt::format("it is for {} to {} ranks", min_ranks, max_ranks);
  }
  if (call.rows > rows)
    return fmt::format("it is for at most {} row{}", rows, rows == 1 ? "" : "s");
  if (call.rows > most_rows(call)) return fmt::format("it is for at most {} bytes", bytes);
  return std::nullopt;
}

uint64_t RowEntry::most_rows(const RowCall& call) const {
  precondition(call.columns > 0);
  return bytes == kAny ? rows : std::min(rows, bytes / call.row_bytes());
}

std::vector<std::pair<std::string, std::string>> RowEntry::defines(const RowCall& call) const {
  std::vector<std::pair<std::string, std::string>> all = {{"R", std::to_string(call.ranks)},
                                                          {"N", std::to_string(call.columns)}};
  for (const auto& [key, value] : params) {
    all.emplace_back(key, value == kOfRow ? std::to_string(threads_of_row(call)) : value);
  }
  return all;
}

std::string RowEntry::choice_text(const RowCall& call) const {
  return program_text(program, defines(call));
}

std::optional<RowTable> RowTable::parse(std::string_view text, const std::string& name,
                                        Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, name, diagnostics)) return std::nullopt;
  RowTable table;
  const JsonReader reader(tape, name, diagnostics, "not-a-library");
  if (!RowTableReader(reader, table.entries_).run()) return std::nullopt;
  return table;
}

std::vector<std::string> RowTable::names() const {
  std::vector<std::string> found;
  for (const RowEntry& e : entries_) {
    if (std::ranges::find(found, e.name) == found.end()) found.push_back(e.name);
  }
  return found;
}

uint64_t RowTable::columns_step(const RowCall& call) const {
  uint64_t step = kVector / info(call.dtype).bytes;
  for (const RowEntry& e : entries_) {
    if (e.name == call.name) step = std::max(step, e.columns);
  }
  return step;
}

bool RowTable::check(const RowCall& call, Diagnostics& diagnostics) const {
  const auto refuse = [&](std::string why) {
    diagnostics.error("row-call", {}, std::move(why));
    return false;
  };
  const auto all = names();
  if (std::ranges::find(all, call.name) == all.end()) {
    return refuse(fmt::format("{} is none of the collectives of rows: {}",
                              quoted(call.name, kMaxName), fmt::join(all, ", ")));
  }
  if (call.ranks < 2) {
    return refuse("one rank has nothing to add up: compute the rows without a collective");
  }
  if (!has_functions(call.dtype)) {
    return refuse(fmt::format("row functions are computed of f32, f16 and bf16, not of '{}'",
                              info(call.dtype).name));
  }
  const uint64_t step = columns_step(call);
  if (call.columns == 0 || call.columns > kMaxColumns || call.columns % step != 0) {
    return refuse(
        fmt::format("{} columns of {}: rows of '{}' have a multiple of {} columns, {} at "
                    "most, so that all begin at multiples of {} bytes; {}",
                    call.columns, info(call.dtype).name, call.name, step, kMaxColumns, kVector,
                    served_columns(call.columns, step)));
  }
  if (call.rows == 0 || call.rows > kAny / call.row_bytes()) {
    return refuse(fmt::format("{} rows are no message: it has 1 to {} rows of {} {}", call.rows,
                              kAny / call.row_bytes(), call.columns, info(call.dtype).name));
  }
  const auto kind = CollectiveKind::allreduce;  // all of them add up, as it does
  const LibraryCall sum{
      .kind = kind, .ranks = call.ranks, .dtype = call.dtype, .order = call.order};
  if (serves(kOrder, call.order) || !order_matters(sum)) return true;
  Diagnostic& error =
      diagnostics.error("no-plan-in-order", {},
                        fmt::format("no plan serves {} of {} ranks, '{}', under '{}'", call.name,
                                    call.ranks, info(call.dtype).name, mscclc::name(call.order)));
  error.notes =
      nearest_plan_notes(sum, [&](const LibraryCall& weaker) -> std::optional<ServingPlan> {
        if (!serves(kOrder, weaker.order)) return std::nullopt;
        return ServingPlan{choose(call).first->program, kOrder};
      });
  error.notes.push_back(
      {fmt::format("under '{}': a sum by name, and the function of its rows after it",
                   mscclc::name(call.order))});
  return false;
}

std::pair<const RowEntry*, uint64_t> RowTable::choose(const RowCall& call) const {
  const auto fits = [&](const RowEntry& e) { return e.name == call.name && !e.why_not(call); };
  const auto found = std::ranges::find_if(entries_, fits);
  precondition(found != entries_.end());
  // An entry before it that does not fit takes no larger call either: it has a limit.
  return {&*found, found->most_rows(call)};
}

const RowTable& builtin_row_table() {
  static const RowTable table = [] {
    const auto files = embedded_rows();
    const auto found = std::ranges::find(files, "library.json", &LibraryFile::name);
    Diagnostics none;
    return *RowTable::parse(found->text, "rows/library.json", none);
  }();
  return table;
}

}  // namespace mscclc
