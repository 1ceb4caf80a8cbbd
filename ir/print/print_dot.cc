// Pictures for Graphviz. A small program is drawn op by op: what runs after what in a block
// (black), signal to wait (blue), release to acquire (green), barriers (grey), writer of a packet
// to its reader (red); ends of channels are ellipses. Of a large one only the channels are drawn.
#include <algorithm>
#include <map>
#include <tuple>

#include "ir/print/print.h"
#include "ir/print/print_parts.h"
#include "ir/program/access.h"

namespace mscclc {
namespace {

constexpr size_t kMaxOps = 600;     // more is no picture any more
constexpr size_t kMaxEdges = 2000;  // of the drawing of channels

struct OpId {
  uint32_t rank, op;
  auto operator<=>(const OpId&) const = default;
};

TextWriter& print_node(TextWriter& out, OpId id) {
  (out << 'r').number(id.rank) << "_op";
  return out.number(id.op);
}

TextWriter& print_end(TextWriter& out, uint32_t rank, uint32_t channel) {
  (out << 'r').number(rank) << "_ch";
  return out.number(channel);
}

/// Blocks of an op's place: one, those of its group, or none.
std::vector<int64_t> blocks_of(const Program& program, const Op& op) {
  if (op.block != kNone) return {op.block};
  if (op.group == kNone) return {};
  const auto blocks = program.values(program.groups[op.group]);
  return {blocks.begin(), blocks.end()};
}

class OpDrawing {
 public:
  OpDrawing(const Program& program, TextWriter& out) : program_(program), out_(out) {}

  void draw() {
    out_ << "  node [shape=box, fontname=monospace, fontsize=10]\n";
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) draw_rank(r);
    draw_channels();
    draw_program_order();
    draw_matches();
    draw_packets();
  }

 private:
  void draw_rank(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    (out_ << "  subgraph cluster_r").number(r) << " {\n    label=\"rank ";
    out_.number(r) << "\"\n";
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      print_end(out_ << "    ", r, c) << " [shape=ellipse, label=";
      out_ << '"' << program_.text(rank.channels[c].label);
      if (rank.channels[c].kind == ChannelKind::switch_) {
        print_set(out_ << " = switch(", program_.values(rank.channels[c].group));
        out_ << ')';
      }
      out_ << "\"]\n";
    }
    std::map<std::vector<int64_t>, std::vector<uint32_t>> places;
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      places[blocks_of(program_, rank.ops[i])].push_back(i);
    }
    uint32_t n = 0;
    for (const auto& [blocks, ops] : places) draw_place(r, n++, blocks, ops);
    out_ << "  }\n";
  }

  void draw_place(uint32_t r, uint32_t n, const std::vector<int64_t>& blocks,
                  const std::vector<uint32_t>& ops) {
    if (!blocks.empty()) {
      (out_ << "    subgraph cluster_r").number(r) << '_';
      out_.number(n) << " {\n      label=\"";
      if (blocks.size() == 1) {
        (out_ << "tb ").number(blocks[0]);
      } else {
        print_set(out_ << "group ", blocks);
      }
      out_ << "\"\n";
    }
    for (const uint32_t i : ops) draw_op({r, i});
    if (!blocks.empty()) out_ << "    }\n";
  }

  void draw_op(OpId id) {
    const Op& op = op_at(id);
    print_node(out_ << "      ", id) << " [label=";
    print_string(out_, print_op(program_, id.rank, op));
    if (op.loop != kNone) out_ << ", style=rounded, tooltip=\"in a pipeline\"";
    out_ << "]\n";
  }

  void draw_channels() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const std::vector<Channel>& channels = program_.ranks[r].channels;
      for (uint32_t c = 0; c < channels.size(); ++c) {
        const Channel& ch = channels[c];
        if (ch.partner == kNone || std::tie(r, c) > std::tie(ch.peer, ch.partner)) continue;
        print_end(out_ << "  ", r, c) << " -> ";
        print_end(out_, ch.peer, ch.partner) << " [dir=none, style=dotted, label=";
        out_ << name(ch.kind) << "]\n";
      }
    }
  }

  void draw_program_order() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const Rank& rank = program_.ranks[r];
      std::map<int64_t, uint32_t> last;  // by block
      for (uint32_t i = 0; i < rank.ops.size(); ++i) {
        std::vector<uint32_t> before;
        for (const int64_t b : blocks_of(program_, rank.ops[i])) {
          const auto [found, first] = last.try_emplace(b, i);
          if (!first) before.push_back(found->second);
          found->second = i;
        }
        std::sort(before.begin(), before.end());
        before.erase(std::unique(before.begin(), before.end()), before.end());
        for (const uint32_t b : before) edge({r, b}, {r, i}, "");
      }
    }
  }

  /// The k-th signal meets the k-th wait of the partner, the k-th release the k-th acquire (after
  /// what the semaphore begins with), the k-th barrier of a block those of the others.
  void draw_matches() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<OpId>> signals, releases;
    for_each_op([&](OpId id, const Op& op) {
      for (const Operand& o : program_.dsts(op)) {
        if (info(op.kind).has(kSignals)) signals[{id.rank, o.channel}].push_back(id);
        if (info(op.kind).has(kReleases)) releases[{id.rank, o.first}].push_back(id);
      }
    });
    std::map<std::pair<uint32_t, uint32_t>, size_t> taken_signals, taken_releases;
    std::map<std::pair<uint32_t, std::vector<int64_t>>, std::map<uint32_t, size_t>> arrivals;
    std::map<std::tuple<uint32_t, std::vector<int64_t>, size_t>, OpId> meetings;
    for_each_op([&](OpId id, const Op& op) {
      const Rank& rank = program_.ranks[id.rank];
      if (info(op.kind).has(kMeets)) return draw_barrier(id, op, arrivals, meetings);
      for (const Operand& o : program_.dsts(op)) {
        if (info(op.kind).has(kWaits)) {
          const Channel& ch = rank.channels[o.channel];
          const size_t k = taken_signals[{id.rank, o.channel}]++;
          match(signals[{ch.peer, ch.partner}], k, id, "color=blue");
        }
        if (info(op.kind).has(kAcquires)) {
          const size_t k = taken_releases[{id.rank, o.first}]++;
          const size_t initial = rank.semaphores[o.first].initial;
          if (k >= initial) match(releases[{id.rank, o.first}], k - initial, id, "color=green");
        }
      }
    });
  }

  template <class Arrivals, class Meetings>
  void draw_barrier(OpId id, const Op& op, Arrivals& arrivals, Meetings& meetings) {
    std::vector<int64_t> blocks;
    for (const Operand& o : program_.dsts(op)) blocks.push_back(o.first);
    const size_t k = arrivals[{id.rank, blocks}][op.block]++;
    const auto [before, first] = meetings.try_emplace({id.rank, blocks, k}, id);
    if (first) return;
    edge(before->second, id, "color=grey, dir=none");
    before->second = id;
  }

  void draw_packets() {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<OpId>> writers;
    const auto for_each_slot = [&](bool write, auto&& visit) {
      std::vector<Access> accesses;
      for_each_op([&](OpId id, const Op& op) {
        accesses.clear();
        append_accesses(program_, id.rank, op, accesses);
        for (const Access& a : accesses) {
          if (!a.packets || a.write != write) continue;
          for (uint32_t i = 0; i < a.count; ++i)
            visit(id, std::tuple(a.rank, a.buffer, a.first + i));
        }
      });
    };
    for_each_slot(true, [&](OpId id, const auto& slot) { writers[slot].push_back(id); });
    std::map<std::pair<OpId, OpId>, bool> drawn;
    for_each_slot(false, [&](OpId reader, const auto& slot) {
      for (const OpId writer : writers[slot]) {
        if (drawn.try_emplace({writer, reader}).second) edge(writer, reader, "color=red");
      }
    });
  }

  void match(const std::vector<OpId>& givers, size_t k, OpId taker, std::string_view style) {
    if (k < givers.size()) edge(givers[k], taker, style);
  }

  void edge(OpId from, OpId to, std::string_view style) {
    print_node(out_ << "  ", from) << " -> ";
    print_node(out_, to);
    if (!style.empty()) out_ << " [" << style << ']';
    out_ << '\n';
  }

  const Op& op_at(OpId id) const { return program_.ranks[id.rank].ops[id.op]; }

  template <class F>
  void for_each_op(F&& f) const {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (uint32_t i = 0; i < program_.ranks[r].ops.size(); ++i) f(OpId{r, i}, op_at({r, i}));
    }
  }

  const Program& program_;
  TextWriter& out_;
};

/// One edge per pair of ranks and kind of channel, with the number of channels on it.
void draw_channels_only(const Program& program, TextWriter& out) {
  size_t edges = 0;
  for (uint32_t r = 0; r < program.ranks.size() && edges < kMaxEdges; ++r) {
    (out << "  r").number(r) << " [label=\"rank ";
    out.number(r) << "\"]\n";
    std::map<std::pair<uint32_t, ChannelKind>, uint32_t> channels;
    for (const Channel& c : program.ranks[r].channels) {
      // The partner's rank draws it if it comes first.
      if (c.peer != kNone && (c.peer > r || c.partner == kNone)) ++channels[{c.peer, c.kind}];
    }
    for (const auto& [to, count] : channels) {
      if (++edges > kMaxEdges) break;
      (out << "  r").number(r) << " -> r";
      out.number(to.first) << " [dir=none, label=\"";
      out.number(count) << ' ' << name(to.second) << "\"]\n";
    }
  }
  if (edges >= kMaxEdges)
    (out << "  // not all channels are drawn: ").number(kMaxEdges) << " edges\n";
}

}  // namespace

std::string print_dot(const Program& program) {
  size_t ops = 0;
  for (const Rank& rank : program.ranks) ops += rank.ops.size();
  TextWriter out;
  out << "digraph ";
  print_string(out, program.name);
  out << " {\n";
  if (ops <= kMaxOps) {
    OpDrawing(program, out).draw();
  } else {
    (out << "  // ").number(ops) << " ops are too many to draw: only the channels are shown\n";
    draw_channels_only(program, out);
  }
  out << "}\n";
  return out.take();
}

}  // namespace mscclc
