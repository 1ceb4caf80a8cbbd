#include "plans/library_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "plans/json/json_read.h"

namespace mscclc {
namespace {

constexpr KeySet kRequired = {w_collective, w_ranks, w_bytes, w_dtypes, w_program, w_params};
constexpr KeySet kOptional = {w_in_place};

std::vector<Dtype> all_dtypes(bool floats_alone) {
  std::vector<Dtype> all;
  for (const DtypeInfo& t : dtype_table()) {
    if (!floats_alone || t.kind == DtypeKind::kFloat) all.push_back(t.dtype);
  }
  return all;
}

/// The range of the same choice, sizes and this placement.
std::vector<LibraryRange>::iterator find_alike(std::vector<LibraryRange>& list,
                                               const LibraryRange& r, InPlace in_place) {
  return std::ranges::find_if(list, [&](const LibraryRange& other) {
    return *other.choice == *r.choice && other.min == r.min && other.max == r.max &&
           other.in_place == in_place;
  });
}

bool has(const std::vector<Dtype>& list, Dtype t) {
  return std::ranges::find(list, t) != list.end();
}

}  // namespace

/// Reads one table; all functions return false after reporting.
class LibraryReader {
 public:
  LibraryReader(const JsonReader& reader, std::vector<LibraryTable::Row>& rows)
      : reader_(reader), rows_(rows) {}

  bool run() {
    Members top;
    if (!top.read(reader_, 0, {w_rows}) || !reader_.expect(top[w_rows], JsonType::array)) {
      return false;
    }
    std::vector<NodeId> places;
    for (NodeId e = reader_.first(top[w_rows]); e != reader_.end(top[w_rows]);
         e = reader_.next(e)) {
      if (!row(e)) return false;
      places.push_back(e);
    }
    return total(places);
  }

 private:
  using Row = LibraryTable::Row;

  bool is_word(NodeId node, std::string_view word) const {
    const JsonNode& n = reader_.tape()[node];
    return n.kind() == JsonType::string && reader_.tape().text(static_cast<Word>(n.value)) == word;
  }

  bool row(NodeId node) {
    Members m;
    Row row;
    const bool right =
        m.read(reader_, node, kRequired, kOptional) && collective(m[w_collective], row.kind) &&
        ranks(m[w_ranks], row) && bytes(m[w_bytes], row.bytes) && dtypes(m[w_dtypes], row.dtypes) &&
        program(m[w_program], row.choice.program) && params(m[w_params], row.choice.params) &&
        (!m.has(w_in_place) || reader_.boolean(m[w_in_place], row.in_place));
    if (!right) return false;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].covers(row)) continue;
      return reader_.fail(node, fmt::format("never reached: rows[{}] takes all its calls", i));
    }
    rows_.push_back(std::move(row));
    return true;
  }

  bool collective(NodeId node, CollectiveKind& out) {
    std::string_view text;
    if (!reader_.string(node, text)) return false;
    const auto kind = find_collective(text);
    if (!kind) return reader_.fail(node, fmt::format("unknown collective '{}'", text));
    out = *kind;
    return true;
  }

  /// "any", a number, or [smallest, largest].
  bool ranks(NodeId node, Row& row) {
    if (is_word(node, "any")) return true;
    std::vector<uint32_t> ends(1);
    const bool range = reader_.tape()[node].kind() == JsonType::array;
    if (range ? !reader_.numbers(node, ends) : !reader_.number(node, ends[0])) return false;
    row.min_ranks = ends.empty() ? 0 : ends.front();
    row.max_ranks = ends.empty() ? 0 : ends.back();
    return (ends.size() == (range ? 2 : 1) && row.min_ranks > 0 &&
            row.min_ranks <= row.max_ranks) ||
           reader_.fail(node, "expected a number of ranks, [smallest, largest], or \"any\"");
  }

  bool bytes(NodeId node, uint64_t& out) {
    return reader_.tape()[node].kind() == JsonType::null || reader_.u64(node, out);
  }

  bool dtypes(NodeId node, std::vector<Dtype>& out) {
    const bool floats = is_word(node, "float");
    if (floats || is_word(node, "any")) {
      out = all_dtypes(floats);
      return true;
    }
    if (reader_.tape()[node].kind() != JsonType::array || reader_.count(node) == 0) {
      return reader_.fail(node, "expected \"any\", \"float\" or a list of data types");
    }
    for (NodeId e = reader_.first(node); e != reader_.end(node); e = reader_.next(e)) {
      std::string_view text;
      if (!reader_.string(e, text)) return false;
      const auto dtype = find_dtype(text);
      if (!dtype) return reader_.fail(e, fmt::format("unknown data type '{}'", text));
      out.push_back(*dtype);
    }
    return true;
  }

  bool program(NodeId node, std::string& out) {
    std::string_view text;
    if (!reader_.string(node, text)) return false;
    out = text;
    const bool plain = !text.empty() && text.find_first_of("/.") == std::string_view::npos;
    return plain || reader_.fail(node, "expected the name of a program, without '.mscl'");
  }

  bool params(NodeId node, std::vector<std::pair<std::string, std::string>>& out) {
    if (!reader_.expect(node, JsonType::object)) return false;
    const JsonTape& tape = reader_.tape();
    for (NodeId m = node + 1; m != tape[node].next; m = tape[m].next) {
      const std::string key(tape.text(tape[m].key));
      if (key == "R" || key == "root" || key == "shift") {
        return reader_.fail(m, fmt::format("'{}' is the call's, not the table's", key));
      }
      std::string_view word;
      uint64_t number = 0;
      if (tape[m].kind() == JsonType::string) {
        if (!reader_.string(m, word)) return false;
      } else if (!reader_.u64(m, number)) {
        return false;
      }
      out.emplace_back(key, word.empty() ? std::to_string(number) : std::string(word));
    }
    return true;
  }

  /// The last row of each collective takes every call.
  bool total(const std::vector<NodeId>& places) {
    for (size_t i = rows_.size(); i-- > 0;) {
      const Row& last = rows_[i];
      const auto same = [&](const Row& r) { return r.kind == last.kind; };
      if (std::any_of(rows_.begin() + static_cast<ptrdiff_t>(i) + 1, rows_.end(), same)) continue;
      const Row everything{.kind = last.kind, .dtypes = all_dtypes(false), .choice = {}};
      if (last.covers(everything)) continue;
      return reader_.fail(
          places[i], fmt::format("the last row of {} must take every call: \"ranks\": \"any\", "
                                 "\"bytes\": null, \"dtypes\": \"any\", in place too",
                                 name(last.kind)));
    }
    return true;
  }

  const JsonReader& reader_;
  std::vector<Row>& rows_;
};

std::string LibraryChoice::params_text() const {
  std::string text;
  for (const auto& [key, value] : params) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}

bool LibraryTable::Row::fits(const LibraryCall& call) const {
  return kind == call.kind && for_ranks(call.ranks) && call.bytes <= bytes &&
         has(dtypes, call.dtype) && (in_place || !call.in_place);
}

/// True if every call that `other` fits is one that this fits.
bool LibraryTable::Row::covers(const Row& other) const {
  return kind == other.kind && min_ranks <= other.min_ranks && max_ranks >= other.max_ranks &&
         bytes >= other.bytes && (in_place || !other.in_place) &&
         std::ranges::all_of(other.dtypes, [&](Dtype t) { return has(dtypes, t); });
}

std::optional<LibraryTable> LibraryTable::parse(std::string_view text, const std::string& name,
                                                Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, name, diagnostics)) return std::nullopt;
  LibraryTable table;
  const JsonReader reader(tape, name, diagnostics, "not-a-library");
  if (!LibraryReader(reader, table.rows_).run()) return std::nullopt;
  return table;
}

const LibraryChoice* LibraryTable::choose(const LibraryCall& call) const {
  const auto row = std::ranges::find_if(rows_, [&](const Row& r) { return r.fits(call); });
  return row == rows_.end() ? nullptr : &row->choice;
}

/// Stretches of sizes, for one data type and placement. `ends`: where rows end.
std::vector<LibraryRange> LibraryTable::stretches(LibraryCall call,
                                                  const std::vector<uint64_t>& ends) const {
  std::vector<LibraryRange> all;
  uint64_t min = 0;
  for (const uint64_t end : ends) {
    call.bytes = end;
    const LibraryChoice* choice = choose(call);
    if (!all.empty() && *all.back().choice == *choice) {
      all.back().max = end;
    } else {
      all.push_back({choice, min, end, {call.dtype}, call.in_place ? InPlace::yes : InPlace::no});
    }
    min = end + 1;
  }
  return all;
}

std::vector<LibraryRange> LibraryTable::ranges(CollectiveKind kind, uint32_t ranks) const {
  std::vector<uint64_t> ends;
  for (const Row& row : rows_) {
    if (row.kind == kind && row.for_ranks(ranks)) ends.push_back(row.bytes);
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<LibraryRange> all;
  for (const DtypeInfo& t : dtype_table()) {
    std::vector<LibraryRange> mine = stretches({kind, ranks, 0, t.dtype, false}, ends);
    for (LibraryRange& placed : stretches({kind, ranks, 0, t.dtype, true}, ends)) {
      const auto twin = find_alike(mine, placed, InPlace::no);
      if (twin == mine.end()) {
        mine.push_back(std::move(placed));
      } else {
        twin->in_place = InPlace::either;
      }
    }
    for (LibraryRange& r : mine) {
      const auto known = find_alike(all, r, r.in_place);
      if (known == all.end()) {
        all.push_back(std::move(r));
      } else {
        known->dtypes.push_back(t.dtype);
      }
    }
  }
  std::ranges::stable_sort(all, {}, &LibraryRange::min);
  return all;
}

std::vector<CollectiveKind> LibraryTable::collectives() const {
  std::vector<CollectiveKind> kinds;
  for (const Row& row : rows_) {
    if (std::ranges::find(kinds, row.kind) == kinds.end()) kinds.push_back(row.kind);
  }
  return kinds;
}

}  // namespace mscclc
