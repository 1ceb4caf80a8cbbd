// Reads a table: its rows, and that every call has one.
#include <fmt/format.h>

#include <algorithm>

#include "plans/format/library_table.h"
#include "plans/format/table_reader.h"

namespace mscclc {
namespace {

constexpr KeySet kRequired = {w_collective, w_ranks, w_bytes, w_dtypes};
constexpr KeySet kOptional = {w_program,    w_params, w_plan,  w_in_place, w_root,     w_shift,
                              w_accumulate, w_links,  w_nodes, w_order,    w_captured, w_asked};

}  // namespace

/// Reads one table; all functions return false after reporting.
class LibraryReader : TableReader {
 public:
  LibraryReader(const JsonReader& reader, std::vector<LibraryRow>& rows)
      : TableReader(reader), rows_(rows) {}

  bool run() {
    std::vector<NodeId> places;
    return read_rows(places, [&](NodeId node) { return row(node); }) && total(places);
  }

 private:
  bool row(NodeId node) {
    Members m;
    LibraryRow row;
    const bool right = m.read(reader_, node, kRequired, kOptional) &&
                       collective(m[w_collective], row.kind) && ranks(m[w_ranks], row) &&
                       bytes(m[w_bytes], row.bytes) && dtypes(m[w_dtypes], row.dtypes) &&
                       (!m.has(w_nodes) || nodes(m[w_nodes], row)) && choice(node, m, row.choice) &&
                       root_and_shift(m, row) && links(m, row) &&
                       (!m.has(w_order) || order(m[w_order], row.order)) &&
                       (!m.has(w_in_place) || reader_.boolean(m[w_in_place], row.in_place)) &&
                       (!m.has(w_asked) || reader_.boolean(m[w_asked], row.asked)) &&
                       (!m.has(w_captured) || reader_.boolean(m[w_captured], row.captured)) &&
                       (!m.has(w_accumulate) || list(m[w_accumulate], row.accumulate));
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
  bool ranks(NodeId node, LibraryRow& row) {
    if (is_word(node, "any")) return true;
    return range(node, 1, row.min_ranks, row.max_ranks,
                 "expected a number of ranks, [smallest, largest], or \"any\"");
  }

  /// "several" (2 and more, alike), "uneven" (ranks that are spread in another way), "any" (all of
  /// these, and one), a number, or [smallest, largest].
  bool nodes(NodeId node, LibraryRow& row) {
    const bool uneven = is_word(node, "uneven");
    row.min_nodes = uneven || is_word(node, "any") ? 0 : 2;
    row.max_nodes = uneven ? 0 : kNoLimit;
    if (row.min_nodes == 0 || is_word(node, "several")) return true;
    return range(
        node, 1, row.min_nodes, row.max_nodes,
        "expected a number of nodes, [smallest, largest], \"several\", \"uneven\" or \"any\"");
  }

  bool dtypes(NodeId node, std::vector<Dtype>& out) {
    const bool floats = is_word(node, "float");
    if (floats || is_word(node, "any")) {
      out = all_dtypes(floats);
      return true;
    }
    return list(node, out, "\"any\", \"float\" or ");
  }

  bool list(NodeId node, std::vector<Dtype>& out, const char* words = "") {
    if (reader_.tape()[node].kind() != JsonType::array || reader_.count(node) == 0) {
      return reader_.fail(node, fmt::format("expected {}a list of data types", words));
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

  bool choice(NodeId node, const Members& m, LibraryChoice& out) {
    if (m.has(w_plan) ? m.has(w_program) || m.has(w_params)
                      : !m.has(w_program) || !m.has(w_params)) {
      return reader_.fail(node, "expected either 'plan', or 'program' and 'params'");
    }
    if (m.has(w_plan)) {
      return file(m[w_plan], out.plan) &&
             (out.plan.ends_with(".json") ||
              reader_.fail(m[w_plan], "a plan's name ends in '.json'"));
    }
    const bool fine = file(m[w_program], out.program);
    if (fine && out.program.find('.') != std::string::npos) {
      return reader_.fail(m[w_program], "expected the name of a program, without '.mscl'");
    }
    return fine && params(m[w_params], {"R", "root", "shift"}, out.params);
  }

  /// The name of a file beside the table.
  bool file(NodeId node, std::string& out) {
    std::string_view text;
    if (!reader_.string(node, text)) return false;
    out = text;
    const bool plain = !text.empty() && text.find('/') == std::string_view::npos;
    return plain || reader_.fail(node, "expected the name of a file beside the table");
  }

  /// Those of plans: programs are compiled for any.
  bool root_and_shift(const Members& m, LibraryRow& row) {
    const bool is_plan = !row.choice.plan.empty();
    for (const auto& [key, has, out] :
         {std::tuple(w_root, is_plan && has_root(row.kind), &row.root),
          std::tuple(w_shift, is_plan && row.kind == CollectiveKind::sendrecv, &row.shift)}) {
      if (!m.has(key)) continue;
      if (!has) return reader_.fail(m[key], "only a plan of such a collective has one");
      if (!reader_.number(m[key], out->emplace())) return false;
    }
    return true;
  }

  bool links(const Members& m, LibraryRow& row) {
    if (!m.has(w_links)) return true;
    std::string_view text;
    if (!reader_.string(m[w_links], text)) return false;
    row.links = find_link_kind(text);
    return row.links || reader_.fail(m[w_links], "expected \"nvlink\" or \"pcie\"");
  }

  bool order(NodeId node, SumOrder& out) {
    std::string_view text;
    if (!reader_.string(node, text)) return false;
    const auto found = find_sum_order(text);
    if (found) out = *found;
    return found || reader_.fail(node, fmt::format("expected {}", sum_order_names()));
  }

  /// Every call has a row: of each collective, or of those that plans are for.
  bool total(const std::vector<NodeId>& places) {
    for (size_t i = rows_.size(); i-- > 0;) {
      LibraryRow everything = rows_[i];
      everything.bytes = ~uint64_t{0};
      everything.dtypes = all_dtypes(false);
      everything.accumulate.clear();
      everything.in_place = everything.captured = true;
      everything.links.reset();
      everything.order = kDefaultOrder;
      everything.asked = false;
      const bool is_plan = !everything.choice.plan.empty();
      if (!is_plan) everything.min_ranks = 1, everything.max_ranks = kNoLimit;
      const auto covers = [&](const LibraryRow& r) { return r.covers(everything); };
      if (std::ranges::any_of(rows_, covers)) continue;
      return reader_.fail(
          places[i],
          fmt::format("the last row of {} must take every call: {}\"bytes\": null, "
                      "\"dtypes\": \"any\", no \"accumulate\", in place and captured too, over "
                      "any links, "
                      "no \"order\" \"any\"",
                      name(everything.kind), is_plan ? "" : "\"ranks\": \"any\", "));
    }
    return true;
  }

  std::vector<LibraryRow>& rows_;
};

std::optional<LibraryTable> LibraryTable::parse(std::string_view text, const std::string& name,
                                                Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, name, diagnostics)) return std::nullopt;
  LibraryTable table;
  const JsonReader reader(tape, name, diagnostics, "not-a-library");
  if (!LibraryReader(reader, table.rows_).run()) return std::nullopt;
  return table;
}

}  // namespace mscclc
