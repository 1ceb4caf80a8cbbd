// Ranks as text: declarations, then the ops in sections by place and loop.
#include "ir/print/print.h"

#include <algorithm>

#include "ir/print/print_parts.h"
#include "ir/program/applied.h"

namespace mscclc {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kMaxReserve = size_t{1} << 30;

class IrPrinter {
 public:
  explicit IrPrinter(const Program& program) : program_(program), ops_(program) {}

  std::string run() {
    print_header(out_, program_);
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const size_t before = out_.size();
      print_rank(r);
      // Ranks are much alike: the first shows how long the text will be.
      const size_t all = (out_.size() - before) * 17 / 16 * program_.ranks.size();
      if (r == 0) out_.reserve(std::min(all, kMaxReserve));
    }
    return out_.take();
  }

 private:
  void print_rank(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    ops_.begin_rank(r, true);
    out_ << "\nrank ";
    out_.number(r) << " {\n";
    print_declarations(rank);
    if (program_.split) {
      print_blocks(rank);
    } else {
      print_sections(rank);
    }
    out_ << "}\n";
  }

  void print_declarations(const Rank& rank) {
    for (size_t i = kFirstScratch; i < rank.buffers.size(); ++i) print_buffer(rank.buffers[i]);
    for (const Channel& c : rank.channels) print_channel(c);
    for (const Semaphore& s : rank.semaphores) {
      out_ << "  semaphore " << program_.text(s.label);
      if (s.initial != 0) (out_ << " = ").number(s.initial);
      out_ << '\n';
    }
    const bool declares =
        rank.buffers.size() > kFirstScratch || !rank.channels.empty() || !rank.semaphores.empty();
    if (declares && (!rank.ops.empty() || rank.blocks > 0)) out_ << '\n';
  }

  void print_buffer(const Buffer& b) {
    out_ << "  buffer " << program_.name_of(b.name) << '[';
    out_.number(b.chunks) << ']';
    const bool typed = b.form != rows::Form{};
    if (b.packets != PacketFormat::none || b.copies != 1 || b.units != 0 || typed) {
      out_ << ' ';
      Separator options(out_);
      if (b.packets != PacketFormat::none) options.next() << "packets: " << name(b.packets);
      if (b.copies != 1) (options.next() << "copies: ").number(b.copies);
      if (b.units != 0) (options.next() << "units: ").number(b.units);
      if (typed) options.next() << "type: " << form_name(program_, b.form);
    }
    out_ << '\n';
  }

  void print_channel(const Channel& c) {
    out_ << "  channel " << program_.text(c.label) << " = " << name(c.kind) << '(';
    if (c.kind == ChannelKind::switch_) {
      print_set(out_, program_.values(c.group));
    } else {
      out_.number(c.peer);
    }
    out_ << ')';
    if (c.partner != kNone) {
      out_ << " to " << program_.text(program_.ranks[c.peer].channels[c.partner].label);
    }
    if (c.credits != 0) (out_ << " credits: ").number(c.credits);
    out_ << '\n';
  }

  // ---- sections ----

  void indent() { out_.spaces(kIndent * depth_); }

  void open_loop(uint32_t loop, bool split_up) {
    indent();
    out_ << "pipeline unit: ";
    print_bytes(out_, program_.loops[loop].unit);
    if (program_.loops[loop].chunks != 1)
      (out_ << ", chunks: ").number(program_.loops[loop].chunks);
    if (split_up) (out_ << ", loop: ").number(loop_number(loop));
    out_ << " {\n";
    ++depth_;
  }

  void open_place(const Op& op) {
    indent();
    if (op.block != kNone) {
      (out_ << "tb ").number(op.block);
    } else {
      out_ << "group ";
      print_set(out_, program_.values(program_.groups[op.group]));
    }
    out_ << " {\n";
    ++depth_;
  }

  void close() {
    --depth_;
    indent();
    out_ << "}\n";
  }

  void print_op_line(const Op& op) {
    indent();
    ops_.print(out_, op);
    ops_.print_locations(out_, op);
    out_ << '\n';
  }

  /// Two groups are one place if they hold the same blocks, however often they were written.
  bool same_place(const Op& a, const Op& b) const {
    if (a.block != b.block) return false;
    if (a.group == b.group) return true;
    if (a.group == kNone || b.group == kNone) return false;
    return std::ranges::equal(program_.values(program_.groups[a.group]),
                              program_.values(program_.groups[b.group]));
  }

  static bool placed(const Op& op) { return op.block != kNone || op.group != kNone; }

  void print_sections(const Rank& rank) {
    count_runs(rank);
    const Op* last = nullptr;
    for (const Op& op : rank.ops) {
      const bool new_loop = op.loop != (last != nullptr ? last->loop : kNone);
      if (last != nullptr && placed(*last) && (new_loop || !same_place(*last, op))) close();
      if (new_loop && last != nullptr && last->loop != kNone) close();
      if (new_loop && op.loop != kNone) open_loop(op.loop, runs_[op.loop] > 1);
      if (placed(op) && (last == nullptr || new_loop || !same_place(*last, op))) open_place(op);
      print_op_line(op);
      last = &op;
    }
    if (last != nullptr && placed(*last)) close();
    if (last != nullptr && last->loop != kNone) close();
    if (rank.blocks > used_blocks(rank)) print_empty_block(rank.blocks - 1);
    for (const Op& op : rank.ops) {
      if (op.loop != kNone) runs_[op.loop] = 0;
    }
  }

  /// How often the ops of each loop of the rank are interrupted by others, plus one.
  void count_runs(const Rank& rank) {
    runs_.resize(program_.loops.size());
    numbered_loops_.clear();
    uint32_t last = kNone;
    for (const Op& op : rank.ops) {
      if (op.loop != last && op.loop != kNone) ++runs_[op.loop];
      last = op.loop;
    }
  }

  /// The k of `loop: k`: numbered per rank as they appear.
  uint32_t loop_number(uint32_t loop) {
    const auto found = std::find(numbered_loops_.begin(), numbered_loops_.end(), loop);
    const auto k = static_cast<uint32_t>(found - numbered_loops_.begin());
    if (found == numbered_loops_.end()) numbered_loops_.push_back(loop);
    return k;
  }

  uint32_t used_blocks(const Rank& rank) const {
    uint32_t used = 0;
    uint32_t last_group = kNone;
    for (const Op& op : rank.ops) {
      if (op.block != kNone) used = std::max(used, op.block + 1);
      if (op.group == kNone || op.group == last_group) continue;
      last_group = op.group;
      for (const int64_t b : program_.values(program_.groups[op.group])) {
        used = std::max(used, static_cast<uint32_t>(b) + 1);
      }
    }
    return used;
  }

  void print_empty_block(uint32_t block) {
    indent();
    (out_ << "tb ").number(block) << " {}\n";
  }

  void print_blocks(const Rank& rank) {
    auto op = rank.ops.begin();
    for (uint32_t b = 0; b < rank.blocks; ++b) {
      if (op == rank.ops.end() || op->block != b) {
        print_empty_block(b);
        continue;
      }
      open_place(*op);
      uint32_t loop = kNone;
      for (; op != rank.ops.end() && op->block == b; ++op) {
        if (op->loop != loop && loop != kNone) close();
        if (op->loop != loop && op->loop != kNone) open_loop(op->loop, false);
        loop = op->loop;
        print_op_line(*op);
      }
      if (loop != kNone) close();
      close();
    }
  }

  const Program& program_;
  TextWriter out_;
  OpPrinter ops_;
  size_t depth_ = 1;
  std::vector<uint32_t> runs_, numbered_loops_;
};

}  // namespace

std::string print_ir(const Program& program) { return IrPrinter(program).run(); }

}  // namespace mscclc
