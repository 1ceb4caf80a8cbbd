// What the extra key says about the program as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/program/applied.h"
#include "plans/format/plan_json.h"
#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

class ExtraReader {
 public:
  explicit ExtraReader(ReadState& state)
      : state_(state), json_(state.json), program_(state.program) {}

  bool read(NodeId extra) {
    Members m;
    const KeySet required = {w_schema, w_hash,  w_target,    w_contract, w_select,
                             w_launch, w_files, w_variables, w_sites,    w_ranks};
    if (!json_.expect(extra, JsonType::object) || !check_schema(extra)) return false;
    if (!m.read(json_, extra, required,
                {w_description, w_foreign, w_proof, w_rows, w_externals, w_flags}))
      return false;
    std::string_view target, description;
    if (!json_.string(m[w_target], target)) return false;
    if (m.has(w_description)) {
      if (!json_.string(m[w_description], description)) return false;
      program_.description = description;
    }
    if (m.has(w_foreign) && !json_.boolean(m[w_foreign], program_.foreign)) return false;
    if (!read_rows(state_, m[w_rows], m[w_externals], m[w_flags]) ||
        !read_contract(m[w_contract])) {
      return false;
    }
    settle_output(program_);
    return read_select(m[w_select]) && read_launch(m[w_launch]) && read_sites(m) &&
           read_ranks(m[w_ranks]);
  }

 private:
  /// Comes first, so that a plan of another version is reported as such.
  bool check_schema(NodeId extra) {
    const JsonTape& tape = json_.tape();
    for (NodeId n = json_.first(extra); n != json_.end(extra); n = json_.next(n)) {
      uint32_t schema = 0;
      if (tape[n].key != w_schema) continue;
      if (!json_.number(n, schema)) return false;
      return schema == kPlanSchema ||
             json_.fail(n, "schema-version",
                        fmt::format("version {} of plans; this program reads version {}: compile "
                                    "the plan's program again with this mscclc",
                                    schema, kPlanSchema));
    }
    return true;
  }

  bool read_contract(NodeId node) {
    Contract& c = program_.contract;
    Members m;
    if (!m.read(json_, node, {w_kind, w_ranks, w_chunks, w_in_place, w_even_only},
                {w_root, w_shift, w_counts, w_input, w_output, w_promises, w_order, w_columns,
                 w_any_columns, w_then})) {
      return false;
    }
    std::string_view kind;
    if (!json_.string(m[w_kind], kind)) return false;
    const std::optional<CollectiveKind> found = find_collective(kind);
    if (!found && kind != name(CollectiveKind::none)) {
      return json_.fail(m[w_kind], fmt::format("unknown collective '{}'", kind));
    }
    c.kind = found.value_or(CollectiveKind::none);
    if (!json_.number(m[w_ranks], c.ranks) || !json_.numbers(m[w_chunks], c.chunks) ||
        !read_in_place(m[w_in_place]) || !json_.boolean(m[w_even_only], c.even_only)) {
      return false;
    }
    return (!m.has(w_root) || json_.number(m[w_root], c.root)) &&
           (!m.has(w_shift) || json_.i64(m[w_shift], c.shift)) &&
           (!m.has(w_counts) || json_.integers(m[w_counts], c.counts)) &&
           (!m.has(w_input) || json_.numbers(m[w_input], c.input)) &&
           (!m.has(w_output) || json_.numbers(m[w_output], c.output)) &&
           (!m.has(w_order) || read_order(m[w_order])) &&
           (!m.has(w_columns) || json_.number(m[w_columns], c.columns)) &&
           (!m.has(w_any_columns) || json_.boolean(m[w_any_columns], c.any_columns)) &&
           (!m.has(w_then) || read_then(m[w_then])) &&
           (!m.has(w_promises) || read_promises(m[w_promises]));
  }

  bool read_order(NodeId node) {
    std::string_view word;
    if (!json_.string(node, word)) return false;
    const std::optional<SumOrder> order = find_sum_order(word);
    if (!order) return json_.fail(node, fmt::format("must be {}", sum_order_names()));
    program_.contract.order = *order;
    return true;
  }

  bool read_then(NodeId node) {
    std::string_view name;
    if (!json_.string(node, name)) return false;
    const auto found = std::ranges::find(program_.functions, name, &rows::Function::name);
    if (found == program_.functions.end()) {
      return json_.fail(node, fmt::format("there is no row function '{}'", name));
    }
    program_.contract.then = static_cast<uint32_t>(found - program_.functions.begin());
    return true;
  }

  bool read_in_place(NodeId node) {
    Word w = 0;
    if (!json_.word(node, w)) return false;
    InPlace& in_place = program_.contract.in_place;
    switch (w) {
      case w_either:
        in_place = InPlace::either;
        return true;
      case w_yes:
        in_place = InPlace::yes;
        return true;
      case w_no:
        in_place = InPlace::no;
        return true;
      default:
        break;
    }
    return json_.fail(node, "must be 'either', 'yes' or 'no'");
  }

  /// Rows `[rank, chunk, reduced, rank, chunk, …]`: an output chunk and the inputs it holds.
  bool read_promises(NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    std::vector<uint32_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.numbers(e, row)) return false;
      if (row.size() < 5 || row.size() % 2 == 0 || row[2] > 1) {
        return json_.fail(e, "expected an output chunk, 0 or 1, and input chunks");
      }
      Promise promise{{row[0], row[1]}, row[2] == 1, {}};
      for (size_t i = 3; i < row.size(); i += 2) promise.inputs.push_back({row[i], row[i + 1]});
      program_.contract.promises.push_back(std::move(promise));
    }
    return true;
  }

  bool read_range(NodeId node, Range& range) {
    if (!json_.expect(node, JsonType::array)) return false;
    if (json_.count(node) != 2) return json_.fail(node, "expected two numbers");
    const NodeId first = json_.first(node);
    return json_.u64(first, range.min) && json_.u64(json_.next(first), range.max);
  }

  /// A list of words of one table.
  template <class Out, class Find>
  bool read_words(NodeId list, std::vector<Out>& out, Find find) {
    if (!json_.expect(list, JsonType::array)) return false;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      std::string_view text;
      if (!json_.string(e, text)) return false;
      const std::optional<Out> found = find(text);
      if (!found) return json_.fail(e, fmt::format("unknown word '{}'", text));
      out.push_back(*found);
    }
    return true;
  }

  static std::optional<std::string> as_string(std::string_view text) { return std::string(text); }

  bool read_select(NodeId node) {
    Select& s = program_.select;
    Members m;
    return m.read(json_, node,
                  {w_sizes, w_nodes, w_gpus_per_node, w_dtypes, w_ops, w_tags, w_priority}) &&
           read_range(m[w_sizes], s.sizes) && read_range(m[w_nodes], s.nodes) &&
           read_range(m[w_gpus_per_node], s.gpus_per_node) &&
           read_words(m[w_dtypes], s.dtypes, find_dtype) &&
           read_words(m[w_ops], s.ops, find_reduce_op) &&
           read_words(m[w_tags], s.tags, as_string) && json_.i64(m[w_priority], s.priority);
  }

  bool read_launch(NodeId node) {
    Launch& l = program_.launch;
    Members m;
    Word policy = 0;
    if (!m.read(json_, node, {w_instances, w_policy, w_fuse, w_auto_sync}) ||
        !json_.number(m[w_instances], l.instances) || !json_.word(m[w_policy], policy)) {
      return false;
    }
    if (policy != w_interleaved && policy != w_blocked) {
      return json_.fail(m[w_policy], "must be 'interleaved' or 'blocked'");
    }
    l.policy = policy == w_blocked ? Policy::blocked : Policy::interleaved;
    return json_.boolean(m[w_fuse], l.fuse) && json_.boolean(m[w_auto_sync], l.auto_sync);
  }

  bool read_sites(const Members& m) {
    std::vector<std::string> names;
    if (!read_words(m[w_files], program_.files, as_string) ||
        !read_words(m[w_variables], names, as_string)) {
      return false;
    }
    std::vector<NameId> variables;
    for (const std::string& n : names) variables.push_back(program_.intern(n));
    const NodeId list = m[w_sites];
    if (!json_.expect(list, JsonType::array)) return false;
    std::vector<uint32_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.numbers(e, row)) return false;
      if (row.size() < 3) return json_.fail(e, "expected a file, a line and a column");
      if (row[0] >= program_.files.size()) {
        return json_.fail(
            e, fmt::format("{} is not a file (there are {})", row[0], program_.files.size()));
      }
      Site site{row[0], row[1], row[2], {}};
      for (size_t i = 3; i < row.size(); ++i) {
        if (row[i] >= variables.size()) {
          return json_.fail(
              e, fmt::format("{} is not a variable (there are {})", row[i], variables.size()));
        }
        site.variables.push_back(variables[row[i]]);
      }
      program_.sites.push_back(std::move(site));
    }
    return true;
  }

  bool read_ranks(NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    const KeySet keys = {w_buffers,    w_channels,    w_channel_ids,     w_alone,
                         w_switches,   w_semaphores,  w_unused_switches, w_complete,
                         w_tree,       w_exact,       w_fixed_sum,       w_from_call,
                         w_plain_last, w_plain_first, w_op_channels,     w_data_channels,
                         w_barriers,   w_loc,         w_credits,         w_applied};
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      Members m;
      if (!m.read(json_, e, {}, keys)) return false;
      for (NodeId n = json_.first(e); n != json_.end(e); n = json_.next(n)) {
        if (!json_.expect(n, JsonType::array)) return false;
      }
      state_.extra.push_back(m);
    }
    return true;
  }

  ReadState& state_;
  const JsonReader& json_;
  Program& program_;
};

}  // namespace

bool read_extra(ReadState& state, NodeId extra) { return ExtraReader(state).read(extra); }

}  // namespace mscclc
