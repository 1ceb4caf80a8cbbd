// Row functions, externals and flags: the shape of their rows. What they may be is checked with the
// program (ir/rows/check_row.h, ir/program/flag_regions.h).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/rows/check_row.h"
#include "ir/rows/external.h"
#include "ir/rows/row_wire.h"
#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

class RowReader {
 public:
  explicit RowReader(ReadState& state) : json_(state.json), program_(state.program) {}

  bool read_functions(NodeId list) {
    return read_list(list, program_.functions,
                     [&](NodeId e, rows::Function& out) { return read_function(e, out); });
  }

  bool read_externals(NodeId list) {
    return read_list(list, program_.externals,
                     [&](NodeId e, rows::External& out) { return read_external(e, out); });
  }

  bool read_flags(NodeId list) {
    return read_list(list, program_.flags,
                     [&](NodeId e, FlagArray& out) { return read_flag_array(e, out); });
  }

 private:
  template <class Element, class Read>
  bool read_list(NodeId list, std::vector<Element>& out, Read read) const {
    if (!json_.expect(list, JsonType::array)) return false;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      Element element;
      if (!read(e, element)) return false;
      out.push_back(std::move(element));
    }
    return true;
  }

  /// Goes along the elements of a row, each of a type of its own.
  class Row {
   public:
    Row(const JsonReader& json, NodeId row) : json_(json), row_(row), at_(row + 1) {}
    bool text(std::string_view& out) {
      const NodeId node = take();
      return node != kNoNode && json_.string(node, out);
    }
    bool number(uint32_t& out) {
      const NodeId node = take();
      return node != kNoNode && json_.number(node, out);
    }
    /// A word that `find` knows.
    template <class Find, class Out>
    bool word(Find find, Out& out) {
      std::string_view word;
      const NodeId node = at_;
      if (!text(word)) return false;
      const auto found = find(word);
      if (!found) return json_.fail(node, fmt::format("unknown word '{}'", word));
      out = *found;
      return true;
    }
    bool more() const { return at_ != json_.end(row_); }
    bool end() const {
      return at_ == json_.end(row_) || json_.fail(row_, "the row is longer than it may be");
    }

   private:
    NodeId take() {
      if (at_ == json_.end(row_)) {
        json_.fail(row_, "the row is too short");
        return kNoNode;
      }
      const NodeId node = at_;
      at_ = json_.next(at_);
      return node;
    }
    const JsonReader& json_;
    const NodeId row_;
    NodeId at_;
  };

  bool read_function(NodeId node, rows::Function& out) {
    Members m;
    std::string_view name, rounding;
    if (!m.read(json_, node, {w_name, w_rounding, w_params, w_nodes, w_lets, w_results}) ||
        !json_.string(m[w_name], name) || !json_.string(m[w_rounding], rounding)) {
      return false;
    }
    out.name = name;
    if (rounding != "chain" && rounding != "once") {
      return json_.fail(m[w_rounding], "must be 'chain' or 'once'");
    }
    out.rounding = rounding == "once" ? rows::Rounding::once : rows::Rounding::chain;
    const auto param = [&](NodeId e) { return read_stored(e, false, out.params); };
    const auto result = [&](NodeId e) { return read_stored(e, true, out.outputs); };
    return each(m[w_params], rows::kMaxParams, param) &&
           each(m[w_nodes], rows::kMaxNodes, [&](NodeId e) { return read_node(e, out); }) &&
           each(m[w_lets], rows::kMaxNodes, [&](NodeId e) { return read_let(e, out); }) &&
           each(m[w_results], rows::kMaxOutputs, result);
  }

  template <class Read>
  bool each(NodeId list, uint32_t most, Read read) const {
    if (!json_.expect(list, JsonType::array)) return false;
    if (json_.count(list) > most) {
      return json_.fail(list, fmt::format("more than {} elements", most));
    }
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.expect(e, JsonType::array) || !read(e)) return false;
    }
    return true;
  }

  bool read_stored(NodeId node, bool result, std::vector<rows::Stored>& out) const {
    rows::Stored& one = out.emplace_back();
    Row row(json_, node);
    std::string_view name;
    if (!row.text(name) || !row.word(rows::find_kind, one.kind) ||
        !row.word(rows::find_type, one.type) || (result && !row.number(one.node)) ||
        (one.kind == rows::Kind::groups && !row.number(one.group))) {
      return false;
    }
    one.name = name;
    return row.end();
  }

  bool read_let(NodeId node, rows::Function& out) const {
    rows::Let& let = out.lets.emplace_back();
    Row row(json_, node);
    std::string_view name;
    if (!row.text(name) || !row.number(let.node)) return false;
    let.name = name;
    return row.end();
  }

  bool read_node(NodeId node, rows::Function& out) const {
    rows::Node value;
    Row row(json_, node);
    if (!row.word(rows::find_wire_op, value.op)) return false;
    uint32_t bits = 0;
    if (value.op == rows::Op::param && !row.number(value.index)) return false;
    if (value.op == rows::Op::constant && !row.number(bits)) return false;
    if (value.op == rows::Op::round && !row.word(rows::find_type, value.type)) return false;
    value.value = std::bit_cast<float>(bits);
    const auto index = static_cast<uint32_t>(out.nodes.size());
    for (uint32_t i = 0; i < rows::argument_count(value.op); ++i) {
      if (!row.number(value.args[i])) return false;
      if (value.args[i] >= index) {
        return json_.fail(node, fmt::format("{} is no value before this one", value.args[i]));
      }
    }
    if (rows::is_reduction(value.op) && !row.number(value.over)) return false;
    if (!row.end()) return false;
    if (!rows::set_spread(out, value)) {
      return json_.fail(node, "the value is made of what does not go together");
    }
    if (value.op == rows::Op::param) out.params[value.index].node = index;
    out.nodes.push_back(value);
    return true;
  }

  bool read_external(NodeId node, rows::External& e) const {
    if (!json_.expect(node, JsonType::array)) return false;
    Row row(json_, node);
    std::string_view name;
    if (!row.text(name) || !row.word(rows::find_kind, e.kind) ||
        !row.word(rows::find_type, e.type) || !row.word(rows::find_use, e.use) ||
        !row.word(rows::find_holding, e.holding) ||
        (e.kind == rows::Kind::groups && !row.number(e.group))) {
      return false;
    }
    e.name = name;
    return row.end();
  }

  bool read_flag_array(NodeId node, FlagArray& a) const {
    if (!json_.expect(node, JsonType::array)) return false;
    Row row(json_, node);
    std::string_view name;
    const auto find_side = [](std::string_view word) -> std::optional<bool> {
      if (word == "input" || word == "output") return word == "output";
      return std::nullopt;
    };
    if (!row.text(name) || !row.word(find_side, a.of_output) || !row.number(a.count) ||
        !row.number(a.raises) || !row.number(a.bits) || !row.word(find_flag_scope, a.scope) ||
        !row.word(find_tile_order, a.tiles)) {
      return false;
    }
    a.name = name;
    const auto find_array = [&](std::string_view word) -> std::optional<uint32_t> {
      const auto found = std::ranges::find(program_.flags, word, &FlagArray::name);
      if (found == program_.flags.end()) return std::nullopt;
      return static_cast<uint32_t>(found - program_.flags.begin());
    };
    if (row.more() && !row.word(find_array, a.after)) return false;
    return row.end();
  }

  const JsonReader& json_;
  Program& program_;
};

}  // namespace

bool read_rows(ReadState& state, NodeId functions, NodeId externals, NodeId flags) {
  RowReader reader(state);
  return (functions == kNoNode || reader.read_functions(functions)) &&
         (externals == kNoNode || reader.read_externals(externals)) &&
         (flags == kNoNode || reader.read_flags(flags));
}

}  // namespace mscclc
