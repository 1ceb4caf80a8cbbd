// The table of rules. Most follow from the op table, by patterns that hold for every op of a shape:
// a new op of such a shape has its rules. Those that follow no pattern are written down.
#include <algorithm>
#include <array>
#include <string>

#include "passes/fuse/fuse_rules.h"

namespace mscclc::fusion {
namespace {

using enum OpKind;

// clang-format off
constexpr Rule kNoPattern[] = {
    // What the left op has sent is also kept, or forwarded by another op.
    {reduce_send_packets,       copy_packets,              Form::send,     reduce_copy_send_packets},
    {reduce_copy_packets,       read_put_packets,          Form::forward,  reduce_copy_send_packets},
    {reduce_copy_send_packets,  read_put_packets,          Form::forward,  reduce_copy_send_packets},
    // Values that need not be put down in between, and change the kind of op that takes them.
    {get,                       reduce,                    Form::through,  read_reduce},
    {get,                       reduce_send,               Form::through,  read_reduce_send},
    {unpack_packets,            reduce,                    Form::through,  reduce_packets},
    {unpack_packets,            put_packets,               Form::through,  read_put_packets},
    {copy_packets,              unpack_packets,            Form::through,  copy},
    {copy_packets,              read_put_packets,          Form::through,  put_packets},
    {switch_reduce,             switch_broadcast,          Form::exchange, switch_reduce_broadcast},
};
// clang-format on

bool is_plain_local(const Slots& side) {
  return side.count > 0 && side.slot[0].kind == SlotKind::local && !side.slot[0].packets;
}

/// Adds up, first a chunk that lies here, into a chunk that lies here.
bool is_sum(const OpInfo& row) {
  return row.has(kReduces) && is_plain_local(row.dsts) && is_plain_local(row.srcs);
}

/// Reads or adds up, and leaves the result in a chunk that lies here.
bool has_result_here(const OpInfo& row) { return is_plain_local(row.dsts) && row.kind != copy; }

/// Reads a chunk that lies here, at once: a port's op may read it later.
bool reads_here(const OpInfo& row) { return is_plain_local(row.srcs) && row.channels != kPort; }

/// Serves many peers, and no wait comes between them.
bool serves_many(const OpInfo& row) {
  if (row.has(kApplies)) return false;
  const bool waits_after = row.has(kMeets) || (row.moves_data() && row.has(kFlushes));
  return row.dsts.count == 1 && row.dsts.slot[0].many && !waits_after;
}

/// The op that a fusion begins with: all of its parts but the last.
const OpInfo& first_of(std::string_view parts) {
  return *std::ranges::find_if(
      op_table(), [parts](const OpInfo& row) { return row.name == parts || row.made_of == parts; });
}

class Table {
 public:
  Table() {
    for (const OpInfo& row : op_table()) add_joins(row);
    for (const OpInfo& row : op_table()) add_sums(row);
    for (const OpInfo& row : op_table()) add_fusion(row);
    for (const OpInfo& row : op_table()) add_moves(row);
    for (const OpInfo& row : op_table()) add_rows(row);
    for (const Rule& rule : kNoPattern) rules_.push_back(rule);
    index();
  }

  std::span<const Rule> all() const { return rules_; }
  std::span<const Rule> of(OpKind left, OpKind right) const {
    const Row row = by_pair_[pair_of(left, right)];
    return all().subspan(row.first, row.count);
  }
  KindBits lefts_of(OpKind right) const { return lefts_of_[static_cast<size_t>(right)]; }

 private:
  struct Row {
    uint8_t first = 0, count = 0;
  };

  static size_t pair_of(OpKind left, OpKind right) {
    return static_cast<size_t>(left) * kKinds + static_cast<size_t>(right);
  }

  /// The same op for several peers.
  void add_joins(const OpInfo& row) {
    if (!serves_many(row)) return;
    const bool one_source = row.srcs.count > 0 && !row.srcs.slot[0].pairwise;
    rules_.push_back({row.kind, row.kind, one_source ? Form::fan : Form::join, row.kind});
  }

  /// One sum instead of several. A basic one goes into those that take sources of the same kinds.
  void add_sums(const OpInfo& row) {
    if (!is_sum(row)) return;
    rules_.push_back({copy, row.kind, Form::sum, row.kind});
    for (const OpInfo& left : op_table()) {
      if (!is_sum(left) || !left.made_of.empty() || left.src_text != row.src_text) continue;
      rules_.push_back({left.kind, row.kind, Form::sum, row.kind});
    }
  }

  /// An op that is made of others: a sum and where it goes, which may be several far ends; or what
  /// a port does in one request.
  void add_fusion(const OpInfo& row) {
    const size_t space = row.made_of.rfind(' ');
    if (space == row.made_of.npos) return;
    const OpInfo& left = first_of(row.made_of.substr(0, space));
    const OpInfo& right = first_of(row.made_of.substr(space + 1));
    if (!right.moves_data()) {
      rules_.push_back({left.kind, right.kind, Form::queue, row.kind});
    } else if (is_sum(left)) {
      rules_.push_back({left.kind, right.kind, Form::send, row.kind});
      const bool again = right.dsts.slot[0].kind == SlotKind::remote;
      if (again) rules_.push_back({row.kind, right.kind, Form::send, row.kind});
    }
  }

  /// Copies that need not be made.
  void add_moves(const OpInfo& row) {
    if (row.has(kApplies)) return;  // its results are several, and each has its place
    if (reads_here(row)) rules_.push_back({copy, row.kind, Form::through, row.kind});
    if (has_result_here(row)) rules_.push_back({row.kind, copy, Form::retarget, row.kind});
  }

  /// A sum that is handed to a row function before it is stored. One that goes elsewhere, too, is
  /// no such sum: there it would be another value.
  void add_rows(const OpInfo& row) {
    if (!is_sum(row) || !row.made_of.empty()) return;
    for (const OpInfo& right : op_table()) {
      if (right.has(kApplies)) rules_.push_back({row.kind, right.kind, Form::rows, row.kind});
    }
  }

  /// Puts the rules of a pair together.
  void index() {
    static_assert(kKinds <= 64);
    std::ranges::stable_sort(rules_, {}, [](const Rule& r) { return pair_of(r.left, r.right); });
    for (size_t i = 0; i < rules_.size(); ++i) {
      Row& row = by_pair_[pair_of(rules_[i].left, rules_[i].right)];
      if (row.count++ == 0) row.first = static_cast<uint8_t>(i);
      lefts_of_[static_cast<size_t>(rules_[i].right)] |= KindBits{1}
                                                         << static_cast<size_t>(rules_[i].left);
    }
  }

  std::vector<Rule> rules_;
  std::array<Row, kKinds * kKinds> by_pair_{};
  std::array<KindBits, kKinds> lefts_of_{};
};

const Table kTable;

}  // namespace

std::span<const Rule> rules() { return kTable.all(); }

std::span<const Rule> rules(OpKind left, OpKind right) { return kTable.of(left, right); }

KindBits lefts_of(OpKind right) { return kTable.lefts_of(right); }

std::string print_rule(const Rule& rule) {
  std::string out(info(rule.left).name);
  out += " + ";
  out += info(rule.right).name;
  out += " -> ";
  out += info(rule.result).name;
  return out;
}

}  // namespace mscclc::fusion
