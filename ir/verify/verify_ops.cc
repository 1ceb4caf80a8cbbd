// Ops against their rows of the op table: operands, chunks, channels, packets, flags, places.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/print/print.h"
#include "ir/program/access.h"
#include "ir/program/applied.h"
#include "ir/program/flag_regions.h"
#include "ir/report/coinciding.h"
#include "ir/report/summations.h"
#include "ir/verify/row_faults.h"
#include "ir/verify/verify_parts.h"

namespace mscclc {
namespace {

/// "2 sources", "1 source"
std::string counted(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// "memory or port"
std::string channel_kinds(uint8_t kinds) {
  std::string out;
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
    if ((kinds & bit(kind)) == 0) continue;
    if (!out.empty()) out += " or ";
    out += name(kind);
  }
  return out;
}

/// "LL8, LL16 and sentinel": the formats that go through ports.
std::string port_formats() {
  std::string out;
  std::string_view last;
  for (const PacketFormatInfo& row : packet_formats()) {
    if (!row.goes_everywhere()) continue;
    if (!last.empty()) out += fmt::format("{}{}", out.empty() ? "" : ", ", last);
    last = row.name;
  }
  return fmt::format("{} and {}", out, last);
}

class OpCheck {
 public:
  OpCheck(const Program& program, uint32_t rank, ProgramReport& report)
      : program_(program),
        rank_(program.ranks[rank]),
        id_(rank),
        report_(report),
        left_loops_(program.loops.size(), kNone) {}

  void run() {
    for (const Op& op : rank_.ops) {
      if (report_.enough()) return;
      check(op);
      last_ = &op;
    }
  }

 private:
  // Each step returns false if the next ones make no sense.
  void check(const Op& op) {
    op_ = &op;
    row_ = &info(op.kind);
    if (check_ids() && check_counts() && check_operands(row_->dsts, program_.dsts(op)) &&
        check_operands(row_->srcs, program_.srcs(op)) && check_applied()) {
      check_place();
      check_flags();
      if (row_->moves_data()) check_chunks();
      if (row_->has(kMeets)) check_barrier();
      if (row_->has_flags()) check_flag_op();
    }
  }

  // ---- ids, without which an op cannot even be printed ----

  bool check_ids() {
    const Op& op = *op_;
    if (op.kind == OpKind::pipeline) return unprintable("op-kind", "a pipeline is not an op");
    if (!program_.operands.has(op.operands, uint64_t{op.dsts} + op.srcs)) {
      return unprintable("op-operands", "the operands are missing");
    }
    if (op.group != kNone && op.group >= program_.groups.size()) {
      return unprintable("op-group", "the group is not declared");
    }
    if (op.loop != kNone && op.loop >= program_.loops.size()) {
      return unprintable("op-loop", "the pipeline is not declared");
    }
    for (const auto& side :
         {std::pair{&row_->dsts, program_.dsts(op)}, std::pair{&row_->srcs, program_.srcs(op)}}) {
      for (const Operand& o : side.second) {
        if (!check_operand_ids(side.first->slot[0].kind, o)) return false;
      }
    }
    const bool right =
        applies(op) ? may_apply(*row_) && applied_fits(program_, op) : !row_->has(kApplies);
    if (!right) return unprintable("op-rows", "what it applies is missing, or it applies nothing");
    if (applies(op) && !check_applied_ids()) return false;
    return check_locations();
  }

  bool check_applied_ids() {
    const Applied what = applied(program_, *op_);
    const auto all = [&](std::span<const int64_t> values, uint32_t operands) {
      return std::ranges::all_of(values, [&](int64_t v) {
        const RowValue value = Applied::value(v);
        return v >= -int64_t{kNone} && v < int64_t{kNone} &&
               value.index < (value.external ? program_.externals.size() : operands);
      });
    };
    // Of a sum, 0 stands for all operands of a side.
    const bool sums = !row_->has(kApplies);
    return (all(what.results, sums ? 1 : op_->dsts) && all(what.params, sums ? 1 : op_->srcs)) ||
           unprintable("op-rows", "an operand or external of a row function is missing");
  }

  bool check_applied() {
    if (!row_->moves_data()) return true;
    const auto fault = applies(*op_) ? applied_fault(program_, id_, *op_)
                                     : types_fault(program_, id_, op_->kind, op_->loop != kNone,
                                                   program_.dsts(*op_), program_.srcs(*op_));
    return !fault || error(fault->code, fault->message);
  }

  bool check_operand_ids(SlotKind kind, const Operand& o) {
    if (kind == SlotKind::block) return true;
    if (kind == SlotKind::flag) {
      return (o.buffer < program_.flags.size() && o.first < program_.flags[o.buffer].count) ||
             unprintable("op-flags", fmt::format("flag {} is not declared", o.first));
    }
    if (kind == SlotKind::semaphore) {
      return o.first < rank_.semaphores.size() ||
             unprintable("op-semaphore", fmt::format("semaphore {} is not declared", o.first));
    }
    if (o.channel != kNone && o.channel >= rank_.channels.size()) {
      return unprintable("op-channel", fmt::format("channel {} is not declared", o.channel));
    }
    if (kind == SlotKind::channel) {
      return o.channel != kNone || unprintable("op-channel", "a channel is missing");
    }
    const bool at_switch =
        o.channel != kNone && rank_.channels[o.channel].kind == ChannelKind::switch_;
    const uint32_t owner = at_switch ? id_ : program_.owner_of(id_, o);
    return o.buffer < program_.ranks[owner].buffers.size() ||
           unprintable("op-buffer", fmt::format("rank {} has no buffer {}", owner, o.buffer));
  }

  bool check_locations() {
    const Slice s = op_->locations;
    if (!program_.locations.has(s.first, s.count)) {
      return unlocated("its locations are missing");
    }
    for (const Location& location : program_.locations.of(s)) {
      if (location.site >= program_.sites.size()) return unlocated("its site is missing");
      const Site& site = program_.sites[location.site];
      if (site.file >= program_.files.size()) return unlocated("its file is missing");
      if (location.values.count != site.variables.size() ||
          !program_.integers.has(location.values.first, location.values.count)) {
        return unlocated("values of its loop variables are missing");
      }
    }
    return true;
  }

  // ---- operands against slots ----

  bool check_counts() {
    const size_t dsts = op_->dsts, srcs = op_->srcs;
    if (row_->srcs.count > 0 && row_->srcs.slot[0].pairwise) {
      if (dsts == 0)
        return error("op-operands", fmt::format("'{}' needs a destination", row_->name));
      return dsts == srcs ||
             error("op-operands",
                   fmt::format("{}, {}", counted(dsts, "destination"), counted(srcs, "source")));
    }
    return check_count(row_->dsts, dsts, row_->moves_data() ? "destination" : "operand") &&
           check_count(row_->srcs, srcs, "source");
  }

  bool check_count(const Slots& slots, size_t n, std::string_view what) {
    const size_t least = slots.count;
    const bool many = least > 0 && slots.slot[least - 1].many;
    if (n == least || (many && n > least)) return true;
    return error("op-operands", fmt::format("'{}' takes {}{}; found {}", row_->name,
                                            many ? "at least " : "", counted(least, what), n));
  }

  bool check_operands(const Slots& slots, std::span<const Operand> operands) {
    size_t plain = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      const SlotKind kind = slots.slot[0].kind;
      if (kind == SlotKind::block) {
        if (o.first >= rank_.blocks) {
          return error("op-block", fmt::format("rank {} has no tb {}", id_, o.first));
        }
      } else if (kind == SlotKind::channel) {
        if (!check_channel(o)) return false;
      } else if (kind != SlotKind::semaphore && kind != SlotKind::flag) {
        const PacketFormat format = program_.buffer_of(id_, o).packets;
        const Slot& slot = slots.of(i, format != PacketFormat::none);
        if (!check_reach(slot, o) || !check_range(o) || !check_packets(slot, o)) return false;
        plain += format == PacketFormat::none;
      }
    }
    if (slots.count > 0 && slots.slot[0].floating && plain != 1) {
      return error(
          "op-operands",
          fmt::format("'{}' takes one source that is not in packets; found {}", row_->name, plain));
    }
    return true;
  }

  bool check_channel(const Operand& o) {
    const Channel& c = rank_.channels[o.channel];
    if ((bit(c.kind) & row_->channels) == 0) {
      return error("op-channel", fmt::format("'{}' needs a {} channel, '{}' is a {}", row_->name,
                                             channel_kinds(row_->channels), program_.text(c.label),
                                             name(c.kind)));
    }
    const Operand& first = program_.operands[op_->operands];
    const Operand& leader = first.channel != kNone ? first : o;
    if (rank_.channels[leader.channel].kind != c.kind) {
      return error("op-channel", "the channels of one op must be of one kind");
    }
    return true;
  }

  /// A chunk is here or at a far end, as the slot says.
  bool check_reach(const Slot& slot, const Operand& o) {
    if (slot.kind == SlotKind::local) {
      return o.channel == kNone ||
             error("op-reach", fmt::format("'{}' takes a chunk of this rank where '{}' stands",
                                           row_->name, text(o)));
    }
    if (o.channel == kNone) {
      return error("op-reach", fmt::format("'{}' takes a chunk through a channel where '{}' stands",
                                           row_->name, text(o)));
    }
    if (!check_channel(o)) return false;
    return slot.kind != SlotKind::switched || check_members(o);
  }

  bool check_members(const Operand& o) {
    const Buffer& mine = rank_.buffers[o.buffer];
    for (const int64_t q : program_.values(rank_.channels[o.channel].group)) {
      const auto member = static_cast<uint32_t>(q);
      const uint32_t theirs = member_buffer(program_, member, mine, o.buffer);
      if (theirs != kNone && laid_out_alike(mine, member, theirs)) continue;
      return error("op-switch",
                   fmt::format("'{}' is not the same on rank {}", program_.name_of(mine.name), q));
    }
    return true;
  }

  /// An op's addresses at a member are made as they are here.
  bool laid_out_alike(const Buffer& a, uint32_t member, uint32_t theirs) const {
    const Buffer& b = program_.ranks[member].buffers[theirs];
    if (a.kind != BufferKind::scratch) {
      const Side side = a.kind == BufferKind::input ? Side::input : Side::output;
      return program_.contract.laid_out_alike(side, id_, member);
    }
    return a.packets == b.packets && a.copies == b.copies && a.units == b.units &&
           a.unit == b.unit && a.form == b.form;
  }

  bool check_range(const Operand& o) {
    const Buffer& b = program_.buffer_of(id_, o);
    if (o.count == 0)
      return error("chunk-range", fmt::format("an empty range of '{}'", name_of(b)));
    if (uint64_t{o.first} + o.count <= b.chunks) return true;
    return error("chunk-range", fmt::format("'{}' is outside '{}', which has {}", text(o),
                                            name_of(b), counted(b.chunks, "chunk")));
  }

  bool check_packets(const Slot& slot, const Operand& o) {
    const Buffer& b = program_.buffer_of(id_, o);
    const bool wanted = slot.packets || (slot.port_packets && uses_port());
    if (wanted && !info(b.packets).goes_everywhere() && uses_port()) {
      return error("port-lines", fmt::format("'{}' holds {} packets, whose lines a port does not "
                                             "keep whole; {} go through ports",
                                             name_of(b), name(b.packets), port_formats()));
    }
    if (wanted == (b.packets != PacketFormat::none)) return true;
    if (wanted) {
      return error("op-packets",
                   fmt::format("'{}' holds no packets; '{}' needs them", name_of(b), row_->name));
    }
    return error("op-packets",
                 fmt::format("'{}' holds packets; '{}' takes none there", name_of(b), row_->name));
  }

  bool uses_port() const {
    const Operand& first = program_.operands[op_->operands];
    return first.channel != kNone && rank_.channels[first.channel].kind == ChannelKind::port;
  }

  // ---- chunks against one another ----

  void check_chunks() {
    PacketFormat format = PacketFormat::none;
    const Operand* plain = nullptr;  // the first of input or output
    const bool pairwise = row_->srcs.slot[0].pairwise;
    const std::span<const Operand> dsts = program_.dsts(*op_), srcs = program_.srcs(*op_);
    for (size_t i = 0; i < dsts.size() + srcs.size(); ++i) {
      const Operand& o = program_.operands.at(op_->operands)[i];
      const Buffer& b = program_.buffer_of(id_, o);
      if (o.count != chunks()) {
        error("chunk-count",
              fmt::format("{} {} {}", counted(chunks(), "chunk"), i < dsts.size() ? "and" : "<-",
                          counted(o.count, "chunk")));
        return;
      }
      if (b.units != 0 && !check_units(b)) return;
      if (b.packets != PacketFormat::none) {
        if (format != PacketFormat::none && format != b.packets) {
          error("packet-format",
                fmt::format("{} packets and {} packets in one op", name(format), name(b.packets)));
          return;
        }
        format = b.packets;
      }
      if (pairwise || b.kind == BufferKind::scratch) continue;
      if (plain != nullptr && !check_sizes(*plain, o)) return;
      plain = &o;
    }
    for (size_t i = 0; pairwise && i < srcs.size(); ++i) {
      if (is_callers(dsts[i]) && is_callers(srcs[i]) && !check_sizes(dsts[i], srcs[i])) return;
    }
    check_loop(format);
    check_coinciding();
    check_input();
  }

  /// Where a call's placement is open, the input is the output of some calls and not of others, and
  /// an op that stores there would change what only some callers may find changed.
  void check_input() {
    const InPlace in_place = program_.contract.in_place;
    if (in_place == InPlace::yes || (in_place == InPlace::no && program_.foreign)) return;
    for (const Operand& o : program_.dsts(*op_)) {
      if (program_.buffer_of(id_, o).kind != BufferKind::input) continue;
      error("input-written", "'input' may be written only with 'inplace: true'");
      return;
    }
  }

  /// Chunks of the first destination: as many as of every chunk operand.
  uint32_t chunks() const { return program_.operands[op_->operands].count; }

  bool is_callers(const Operand& o) const {
    return program_.buffer_of(id_, o).kind != BufferKind::scratch;
  }

  /// Both must be equally long for every message.
  bool check_units(const Buffer& b) {
    const Loop* loop = op_->loop == kNone ? nullptr : &program_.loops[op_->loop];
    if (loop != nullptr && loop->chunks == 1 && loop->unit == b.unit) return true;
    error("buffer-units", fmt::format("'{}' holds units of another pipeline, or of none",
                                      program_.name_of(b.name)));
    return false;
  }

  bool check_sizes(const Operand& a, const Operand& b) {
    const Contract& contract = program_.contract;
    if (contract.kind == CollectiveKind::none || contract.even_only) return true;
    for (uint32_t i = 0; i < a.count; ++i) {
      if (size_class(a, i) == size_class(b, i)) continue;
      return error("chunk-size", fmt::format("'{}' and '{}' differ in size when the message does "
                                             "not divide",
                                             text(a), text(b)));
    }
    return true;
  }

  uint64_t size_class(const Operand& o, uint32_t i) const {
    const bool at_switch =
        o.channel != kNone && rank_.channels[o.channel].kind == ChannelKind::switch_;
    const uint32_t owner = at_switch ? id_ : program_.owner_of(id_, o);
    const Side side = o.buffer == kInput ? Side::input : Side::output;
    return program_.contract.size_class(side, owner, o.first + i);
  }

  void check_loop(PacketFormat format) {
    if (op_->loop == kNone) return;
    const uint32_t wanted = program_.loops[op_->loop].chunks;
    if (chunks() != wanted) {
      error("pipeline-chunks",
            fmt::format("{} in a pipeline over {}", counted(chunks(), "chunk"), wanted));
    } else if (format != PacketFormat::none) {
      error("pipeline-packets", "packets inside a pipeline");
    }
  }

  void check_coinciding() {
    uint64_t pieces = std::max<uint64_t>(op_->parts, 1);
    if (op_->group != kNone) pieces *= program_.groups[op_->group].count;
    const auto found =
        find_coinciding(program_, id_, op_->kind, pieces, program_.dsts(*op_), program_.srcs(*op_));
    if (found) report_.error(found->code, id_, *op_, found->message, found->remedy);
  }

  void check_flag_op() {
    if (const auto fault = flag_op_fault(program_, op_->kind, op_->loop, program_.dsts(*op_)))
      error("op-flags", *fault);
  }

  // ---- places and flags ----

  void check_place() {
    const Op& op = *op_;
    if (op.block != kNone && op.group != kNone) {
      error("op-place", "the op is placed both in a block and in a group");
    }
    if (op.block != kNone && op.block >= rank_.blocks) {
      error("op-block", fmt::format("rank {} has no tb {}", id_, op.block));
    }
    if (op.group != kNone) check_group(program_.values(program_.groups[op.group]));
    if (!program_.split) return;
    if (op.block == kNone) {
      error("op-place", "an op of a plan must be in a thread block");
    } else if (last_ != nullptr && last_->block != kNone && last_->block > op.block) {
      error("op-order", fmt::format("the op comes after those of tb {}", last_->block));
    } else {
      check_contiguous();
    }
  }

  void check_group(std::span<const int64_t> blocks) {
    if (blocks.empty()) error("op-group", "an empty group");
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] < 0 || blocks[i] >= rank_.blocks) {
        error("op-block", fmt::format("rank {} has no tb {}", id_, blocks[i]));
      } else if (std::find(blocks.begin(), blocks.begin() + i, blocks[i]) != blocks.begin() + i) {
        error("op-group", fmt::format("tb {} appears twice in the group", blocks[i]));
      }
    }
  }

  /// In a split program the ops of a loop stand together in each block.
  void check_contiguous() {
    const uint32_t loop = op_->loop;
    const bool same_block = last_ != nullptr && last_->block == op_->block;
    if (same_block && last_->loop != loop && last_->loop != kNone) {
      left_loops_[last_->loop] = op_->block;
    }
    if (loop != kNone && left_loops_[loop] == op_->block && !(same_block && last_->loop == loop)) {
      error("pipeline-interrupted", "the pipeline was left and is entered again");
    }
  }

  void check_flags() {
    const Op& op = *op_;
    if (op.relaxed && row_->relaxed.empty()) flag_error("relaxed");
    if (op.reduce != ReduceOp::call && !row_->has(kReduces)) flag_error("op");
    if (op.complete && !row_->has(kReduces)) flag_error("complete");
    if (op.summation != Summation::in_turn) check_summation();
    if (op.parts > 0 && !row_->moves_data()) flag_error("part");
    if (op.part >= op.parts && (op.part != 0 || op.parts != 0)) {
      error("op-part", fmt::format("part {} of {}", op.part, op.parts));
    }
  }

  void check_summation() {
    if (!row_->has(kReduces)) return flag_error(name(op_->summation));
    const auto fault = summation_fault(*row_, op_->summation, op_->reduce, op_->srcs);
    if (fault) error("op-flag", fault->text());
  }

  void flag_error(std::string_view flag) {
    error("op-flag", fmt::format("'{}' cannot be combined with '{}'", flag, row_->name));
  }

  void check_barrier() {
    const std::vector<uint32_t>& blocks = barrier_blocks();
    for (size_t i = 1; i < blocks.size(); ++i) {
      if (blocks[i] != blocks[i - 1]) continue;
      error("barrier-blocks", fmt::format("tb {} appears twice in the barrier", blocks[i]));
    }
    if (op_->block != kNone && !std::ranges::binary_search(blocks, op_->block)) {
      error("barrier-blocks", fmt::format("tb {} is not one of the barrier's blocks", op_->block));
    }
  }

  /// In order. The ops of a barrier's blocks may share one list, which is sorted once.
  const std::vector<uint32_t>& barrier_blocks() {
    const std::span<const Operand> list = program_.dsts(*op_);
    const auto [found, fresh] = barriers_.try_emplace({op_->operands, op_->dsts});
    std::vector<uint32_t>& blocks = found->second;
    if (!fresh) return blocks;
    for (const Operand& operand : list) blocks.push_back(operand.first);
    std::ranges::sort(blocks);
    return blocks;
  }

  // ---- words ----

  std::string_view name_of(const Buffer& b) const { return program_.name_of(b.name); }

  std::string text(const Operand& o) const { return print_chunks(program_, id_, o); }

  bool error(std::string code, std::string message) {
    report_.error(std::move(code), id_, *op_, std::move(message));
    return false;
  }

  bool unprintable(std::string code, std::string message) {
    if (check_locations()) {
      report_.error_unprintable(std::move(code), id_, *op_, std::move(message));
    }
    return false;
  }

  bool unlocated(std::string_view what) {
    report_.error("op-location", {}, fmt::format("'{}' of rank {}: {}", row_->name, id_, what));
    return false;
  }

  const Program& program_;
  const Rank& rank_;
  uint32_t id_;
  ProgramReport& report_;
  const Op* op_ = nullptr;
  const OpInfo* row_ = nullptr;
  const Op* last_ = nullptr;
  std::map<std::pair<size_t, size_t>, std::vector<uint32_t>> barriers_;  ///< barrier_blocks()
  std::vector<uint32_t> left_loops_;  ///< the block whose part of the loop is over
};

}  // namespace

void verify_ops(const Program& program, uint32_t rank, ProgramReport& report) {
  OpCheck(program, rank, report).run();
}

}  // namespace mscclc
