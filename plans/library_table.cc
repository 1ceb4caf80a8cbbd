#include "plans/library_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plans/json/json_read.h"

namespace mscclc {
namespace {

constexpr KeySet kRequired = {w_collective, w_ranks, w_bytes, w_dtypes};
constexpr KeySet kOptional = {w_program, w_params,     w_plan,  w_in_place, w_root,
                              w_shift,   w_accumulate, w_links, w_nodes};

constexpr uint32_t kAny = ~uint32_t{0};

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
  LibraryReader(const JsonReader& reader, std::vector<LibraryRow>& rows)
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
  bool is_word(NodeId node, std::string_view word) const {
    const JsonNode& n = reader_.tape()[node];
    return n.kind() == JsonType::string && reader_.tape().text(static_cast<Word>(n.value)) == word;
  }

  bool row(NodeId node) {
    Members m;
    LibraryRow row;
    const bool right = m.read(reader_, node, kRequired, kOptional) &&
                       collective(m[w_collective], row.kind) && ranks(m[w_ranks], row) &&
                       bytes(m[w_bytes], row.bytes) && dtypes(m[w_dtypes], row.dtypes) &&
                       (!m.has(w_nodes) || nodes(m[w_nodes], row)) && choice(node, m, row.choice) &&
                       root_and_shift(m, row) && links(m, row) &&
                       (!m.has(w_in_place) || reader_.boolean(m[w_in_place], row.in_place)) &&
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
    return range(node, row.min_ranks, row.max_ranks,
                 "expected a number of ranks, [smallest, largest], or \"any\"");
  }

  /// "several" (2 and more, alike), "any" (one, several, or ranks that are spread unevenly), a
  /// number, or [smallest, largest].
  bool nodes(NodeId node, LibraryRow& row) {
    row.min_nodes = is_word(node, "any") ? 0 : 2;
    row.max_nodes = kAny;
    if (row.min_nodes == 0 || is_word(node, "several")) return true;
    return range(node, row.min_nodes, row.max_nodes,
                 "expected a number of nodes, [smallest, largest], \"several\" or \"any\"");
  }

  /// A number from 1 on, or [smallest, largest].
  bool range(NodeId node, uint32_t& min, uint32_t& max, const char* expected) {
    std::vector<uint32_t> ends(1);
    const bool pair = reader_.tape()[node].kind() == JsonType::array;
    if (pair ? !reader_.numbers(node, ends) : !reader_.number(node, ends[0])) return false;
    min = ends.empty() ? 0 : ends.front();
    max = ends.empty() ? 0 : ends.back();
    return (ends.size() == (pair ? 2 : 1) && min > 0 && min <= max) || reader_.fail(node, expected);
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
    return fine && params(m[w_params], out.params);
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

  /// Every call has a row: of each collective, or of those that plans are for.
  bool total(const std::vector<NodeId>& places) {
    for (size_t i = rows_.size(); i-- > 0;) {
      LibraryRow everything = rows_[i];
      everything.bytes = ~uint64_t{0};
      everything.dtypes = all_dtypes(false);
      everything.accumulate.clear();
      everything.in_place = true;
      everything.links.reset();
      const bool is_plan = !everything.choice.plan.empty();
      if (!is_plan) everything.min_ranks = 1, everything.max_ranks = kAny;
      const auto covers = [&](const LibraryRow& r) { return r.covers(everything); };
      if (std::ranges::any_of(rows_, covers)) continue;
      return reader_.fail(
          places[i],
          fmt::format("the last row of {} must take every call: {}\"bytes\": null, "
                      "\"dtypes\": \"any\", no \"accumulate\", in place too, over any links",
                      name(everything.kind), is_plan ? "" : "\"ranks\": \"any\", "));
    }
    return true;
  }

  const JsonReader& reader_;
  std::vector<LibraryRow>& rows_;
};

std::string LibraryChoice::params_text() const {
  std::string text;
  for (const auto& [key, value] : params) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}

namespace {

/// A parameter that is the call's number of ranks, or of ranks on a node.
constexpr std::string_view kRanks = "ranks", kRanksPerNode = "ranks_per_node";

/// To whom rank 0 sends. REQUIRES: there are ranks.
int64_t receiver_of_0(const LibraryCall& call) {
  const int64_t n = call.ranks;
  return ((call.shift % n) + n) % n;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> LibraryChoice::defines(
    const LibraryCall& call) const {
  std::vector<std::pair<std::string, std::string>> list;
  const auto is_ranks = [](const auto& param) { return param.second == kRanks; };
  if (std::ranges::none_of(params, is_ranks)) list.emplace_back("R", std::to_string(call.ranks));
  if (has_root(call.kind)) list.emplace_back("root", std::to_string(call.root));
  if (call.kind == CollectiveKind::sendrecv) {
    list.emplace_back("shift", std::to_string(call.shift));
  }
  for (const auto& [key, value] : params) {
    list.emplace_back(key, value == kRanks          ? std::to_string(call.ranks)
                           : value == kRanksPerNode ? std::to_string(call.ranks_per_node())
                                                    : value);
  }
  return list;
}

std::string LibraryChoice::plan_file(const LibraryCall& call) const {
  std::string name = fmt::format("{}-R{}", program, call.ranks);
  if (call.nodes != 1) name += fmt::format("-N{}", call.nodes);
  if (has_root(call.kind)) name += fmt::format("-root{}", call.root);
  if (call.kind == CollectiveKind::sendrecv) name += fmt::format("-shift{}", receiver_of_0(call));
  for (const auto& [key, value] : params) {  // not what -R and -N say
    if (!value.starts_with(kRanks)) name += fmt::format("-{}{}", key, value);
  }
  return name + ".json";
}

bool LibraryChoice::lower_blocks(uint32_t blocks, uint32_t most) {
  if (most == 0 || blocks <= most) return false;
  bool lowered = false;
  for (auto& [name, value] : params) {
    if (name != "B" && name != "own" && name != "I") continue;
    uint64_t now = 0;
    const char* const end = value.data() + value.size();
    if (std::from_chars(value.data(), end, now).ptr != end || now > ~uint32_t{0}) continue;
    const uint64_t less = std::max<uint64_t>(1, now * most / blocks);
    if (less >= now) continue;
    lowered = true;
    value = std::to_string(less);
  }
  return lowered;
}

namespace {

bool adds_up_in(const std::vector<Dtype>& types, const LibraryCall& call) {
  return types.empty() || has(types, call.accumulate.value_or(info(call.dtype).accumulate));
}

/// "8 ranks", "2 to 8 ranks", "2 ranks or more"
std::string count_text(uint32_t min, uint32_t max, const char* unit) {
  if (min == max) return fmt::format("{} {}{}", min, unit, min == 1 ? "" : "s");
  if (max == kAny) return fmt::format("{} {}s or more", min, unit);
  return fmt::format("{} to {} {}s", min, max, unit);
}

}  // namespace

Mismatch LibraryRow::mismatch(const LibraryCall& call) const {
  if (kind != call.kind) return Mismatch::collective;
  if (call.ranks == 0 || !for_ranks(call.ranks)) return Mismatch::ranks;
  if (!for_nodes(call.nodes)) return Mismatch::nodes;
  if (root && *root != call.root) return Mismatch::root;
  if (shift && *shift != receiver_of_0(call)) return Mismatch::shift;
  if (call.bytes > bytes) return Mismatch::bytes;
  if (!has(dtypes, call.dtype)) return Mismatch::dtype;
  if (!adds_up_in(accumulate, call)) return Mismatch::accumulate;
  if (call.in_place && !in_place) return Mismatch::placement;
  const bool same_links = !links || (*links == LinkKind::pcie) == (call.links == LinkKind::pcie);
  return same_links ? Mismatch::none : Mismatch::links;
}

std::string LibraryRow::why_not(const LibraryCall& call) const {
  switch (mismatch(call)) {
    case Mismatch::none:
      return "";
    case Mismatch::collective:
      return fmt::format("it is for {}", name(kind));
    case Mismatch::ranks:
      return "it is for " + count_text(min_ranks, max_ranks, "rank");
    case Mismatch::nodes:
      return "it is for " + count_text(min_nodes, max_nodes, "node");
    case Mismatch::root:
      return fmt::format("it is for root {}", *root);
    case Mismatch::shift:
      return fmt::format("it is for shift {}", *shift);
    case Mismatch::bytes:
      return fmt::format("it is for {} bytes at most", bytes);
    case Mismatch::dtype:
      return fmt::format("it is not for {}", info(call.dtype).name);
    case Mismatch::accumulate:
      return fmt::format("it is not for sums in {}",
                         info(call.accumulate.value_or(info(call.dtype).accumulate)).name);
    case Mismatch::placement:
      return "it is not for calls in place";
    case Mismatch::links:
      return fmt::format("it is for {}", name(*links));
  }
  return "";
}

bool LibraryRow::covers(const LibraryRow& other) const {
  const bool all_sums =
      accumulate.empty() ||
      (!other.accumulate.empty() &&
       std::ranges::all_of(other.accumulate, [&](Dtype t) { return has(accumulate, t); }));
  return all_sums && kind == other.kind && min_ranks <= other.min_ranks &&
         max_ranks >= other.max_ranks && min_nodes <= other.min_nodes &&
         max_nodes >= other.max_nodes && bytes >= other.bytes && (in_place || !other.in_place) &&
         (!root || root == other.root) && (!links || links == other.links) &&
         (!shift || shift == other.shift) &&
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
  const auto row = std::ranges::find_if(rows_, [&](const LibraryRow& r) { return r.fits(call); });
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

std::vector<LibraryRange> LibraryTable::ranges(const LibraryCall& any) const {
  LibraryCall call = any;
  std::vector<uint64_t> ends;
  for (const LibraryRow& row : rows_) {
    const bool mine =
        row.kind == call.kind && row.for_ranks(call.ranks) && row.for_nodes(call.nodes);
    if (mine) ends.push_back(row.bytes);
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<LibraryRange> all;
  for (const DtypeInfo& t : dtype_table()) {
    call.dtype = t.dtype;
    call.in_place = false;
    std::vector<LibraryRange> mine = stretches(call, ends);
    call.in_place = true;
    for (LibraryRange& placed : stretches(call, ends)) {
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

namespace {

std::string list_text(const std::vector<Dtype>& dtypes) {
  std::string list;
  for (const Dtype t : dtypes) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", info(t).name);
  }
  return fmt::format("[{}]", list);
}

std::string dtypes_text(const std::vector<Dtype>& dtypes) {
  if (dtypes == all_dtypes(false)) return "\"any\"";
  if (dtypes == all_dtypes(true)) return "\"float\"";
  return list_text(dtypes);
}

std::string ranks_text(const LibraryRow& row) {
  if (row.min_ranks == 1 && row.max_ranks == ~uint32_t{0}) return "\"any\"";
  if (row.min_ranks == row.max_ranks) return std::to_string(row.min_ranks);
  return fmt::format("[{}, {}]", row.min_ranks, row.max_ranks);
}

/// Of a row that is not for one node.
std::string nodes_text(const LibraryRow& row) {
  if (row.min_nodes == row.max_nodes) return std::to_string(row.min_nodes);
  if (row.max_nodes == kAny && row.min_nodes == 0) return "\"any\"";
  if (row.max_nodes == kAny && row.min_nodes == 2) return "\"several\"";
  return fmt::format("[{}, {}]", row.min_nodes, row.max_nodes);
}

std::string choice_text(const LibraryChoice& choice) {
  if (!choice.plan.empty()) return fmt::format("\"plan\": \"{}\"", choice.plan);
  std::string params;
  for (const auto& [key, value] : choice.params) {
    params += fmt::format("{}\"{}\": \"{}\"", params.empty() ? "" : ", ", key, value);
  }
  return fmt::format("\"program\": \"{}\", \"params\": {{{}}}", choice.program, params);
}

std::string row_text(const LibraryRow& row) {
  std::string text =
      fmt::format("{{\"collective\": \"{}\", \"ranks\": {}", name(row.kind), ranks_text(row));
  if (row.min_nodes != 1 || row.max_nodes != 1) {
    text += fmt::format(", \"nodes\": {}", nodes_text(row));
  }
  if (row.root) text += fmt::format(", \"root\": {}", *row.root);
  if (row.shift) text += fmt::format(", \"shift\": {}", *row.shift);
  const std::string bytes = row.bytes == ~uint64_t{0} ? "null" : std::to_string(row.bytes);
  text += fmt::format(", \"bytes\": {}, \"dtypes\": {}, {}", bytes, dtypes_text(row.dtypes),
                      choice_text(row.choice));
  if (!row.accumulate.empty()) text += ", \"accumulate\": " + list_text(row.accumulate);
  if (!row.in_place) text += ", \"in_place\": false";
  if (row.links) text += fmt::format(", \"links\": \"{}\"", name(*row.links));
  return text + "}";
}

}  // namespace

std::string library_table_text(std::span<const LibraryRow> rows) {
  std::string text = "{\n  \"rows\": [\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("    {}{}\n", row_text(rows[i]), i + 1 < rows.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

std::vector<CollectiveKind> LibraryTable::collectives() const {
  std::vector<CollectiveKind> kinds;
  for (const LibraryRow& row : rows_) {
    if (std::ranges::find(kinds, row.kind) == kinds.end()) kinds.push_back(row.kind);
  }
  return kinds;
}

}  // namespace mscclc
