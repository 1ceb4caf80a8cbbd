#include "tests/explore/steps.h"

#include <algorithm>

#include "ir/program/access.h"
#include "ir/program/applied.h"
#include "ir/program/flag_regions.h"

namespace mscclc::explorer {
namespace {

using Kind = Step::Kind;

/// More steps of one call are not looked at.
constexpr size_t kMaxSteps = 20000;

class Maker {
 public:
  Maker(const Program& program, const ExploreOptions& options, Serving serving)
      : program_(program), options_(options), serving_(serving), shape_(program, options.bytes) {}

  std::optional<Model> make() {
    number();
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      if (!add_rank(r)) return std::nullopt;
    }
    for (Process& p : model_.processes) {
      for (Step& s : p.steps) {
        const bool accesses = s.kind == Kind::access || s.kind == Kind::post ||
                              s.kind == Kind::begin || s.kind == Kind::end ||
                              s.kind == Kind::raise || s.kind == Kind::take;
        if (accesses) {
          s.event = model_.events++;
          model_.rank_of_event.push_back(p.rank);
          model_.of_event.push_back(&s);
        }
        for (const Element& e : s.elements) {
          for (const Cell& c : e.dsts) s.writes_packets |= c.packets != PacketFormat::none;
        }
      }
    }
    return std::move(model_);
  }

 private:
  void number() {
    for (const Rank& rank : program_.ranks) {
      std::vector<Cell>& firsts = first_cells_.emplace_back();
      for (const Buffer& b : rank.buffers) {
        const uint32_t cells = b.chunks * shape_.cells(b);
        firsts.push_back({model_.cells, cells, b.copies, b.packets});
        model_.cells += cells * b.copies;
      }
      model_.first_channel.push_back(model_.channels);
      model_.first_semaphore.push_back(model_.semaphores);
      model_.channels += static_cast<uint32_t>(rank.channels.size());
      model_.semaphores += static_cast<uint32_t>(rank.semaphores.size());
    }
    for (const Rank& rank : program_.ranks) {
      for (const Channel& c : rank.channels) {
        model_.partner.push_back(c.partner == kNone ? kNone
                                                    : model_.first_channel[c.peer] + c.partner);
        model_.credits.push_back(c.credits);
      }
      for (const Semaphore& s : rank.semaphores) model_.initial.push_back(s.initial);
    }
  }

  bool in_place(uint32_t rank) const {
    return options_.placed.empty() ? options_.in_place : options_.placed[rank];
  }

  /// The cell with byte `offset` of a chunk.
  Cell cell(uint32_t rank, uint32_t buffer, uint32_t chunk, uint64_t offset) const {
    const auto alias = in_place(rank) ? program_.contract.alias(rank) : std::nullopt;
    const auto& own = program_.ranks[rank].buffers;
    if (alias && buffer < kFirstScratch) {  // both lie in the larger one
      const uint32_t outer = own[kOutput].chunks > own[kInput].chunks ? kOutput : kInput;
      if (buffer != outer) {
        chunk += outer == kInput ? alias->input_chunk : alias->output_chunk;
        buffer = outer;
      }
    }
    Cell c = first_cells_[rank][buffer];
    c.first += chunk * shape_.cells(own[buffer]) + static_cast<uint32_t>(offset / shape_.grain());
    return c;
  }

  /// Part of a chunk that an op moves at once: the chunks' place in the op, and a byte in them.
  struct Spot {
    uint32_t chunk;
    uint64_t offset;
  };

  /// The cells of an operand: several at a switch, none where the chunk is not that long.
  void add_cells(uint32_t rank, const Op& op, const Operand& o, Spot at,
                 std::vector<Cell>& out) const {
    const Rank& own = program_.ranks[rank];
    const Buffer& buffer = program_.buffer_of(rank, o);
    const uint32_t chunk = o.first + at.chunk;
    if (buffer.units != 0 && op.loop != kNone) {
      const uint64_t unit = shape_.unit(op.loop), round = at.offset / unit;
      at.offset -= (round - round % buffer.units) * unit;
    }
    if (o.channel != kNone && own.channels[o.channel].kind == ChannelKind::switch_) {
      for (const int64_t q : program_.values(own.channels[o.channel].group)) {
        const auto member = static_cast<uint32_t>(q);
        const uint32_t theirs = member_buffer(program_, member, own.buffers[o.buffer], o.buffer);
        out.push_back(cell(member, theirs, chunk, at.offset));
      }
      return;
    }
    const uint32_t owner = program_.owner_of(rank, o);
    const bool plain = buffer.packets == PacketFormat::none;
    if (plain && at.offset >= shape_.length(owner, o.buffer, chunk)) return;
    out.push_back(cell(owner, o.buffer, chunk, at.offset));
  }

  /// Whose chunks an operand's are as long as.
  uint32_t owner(uint32_t rank, const Operand& o) const {
    const bool at_switch =
        o.channel != kNone && program_.ranks[rank].channels[o.channel].kind == ChannelKind::switch_;
    return at_switch ? rank : program_.owner_of(rank, o);
  }

  /// Does the spot lie beyond the end of a plain chunk?
  bool ends_before(uint32_t rank, std::span<const Operand> operands, Spot at) const {
    return std::ranges::any_of(operands, [&](const Operand& o) {
      return program_.buffer_of(rank, o).packets == PacketFormat::none &&
             at.offset >= shape_.length(owner(rank, o), o.buffer, o.first + at.chunk);
    });
  }

  /// The packets of an op's operands; ops without go by plain bytes.
  PacketFormat format_of(uint32_t rank, const Op& op) const {
    for (const Operand& o : program_.all_operands(op)) {
      const PacketFormat format = program_.buffer_of(rank, o).packets;
      if (format != PacketFormat::none) return format;
    }
    return PacketFormat::none;
  }

  /// How long chunk `i` of an op over plain bytes is: as its shortest operand.
  uint64_t plain_length(uint32_t rank, std::span<const Operand> operands, uint32_t i) const {
    uint64_t length = shape_.longest();
    for (const Operand& o : operands) {
      length = std::min(length, shape_.length(owner(rank, o), o.buffer, o.first + i));
    }
    return length;
  }

  /// Is it an op over one chunk, and not at a switch?
  bool walks_alone(uint32_t rank, const Op& op) const {
    return std::ranges::all_of(program_.all_operands(op), [&](const Operand& o) {
      return o.count == 1 && (o.channel == kNone || program_.ranks[rank].channels[o.channel].kind !=
                                                        ChannelKind::switch_);
    });
  }

  /// The strand that has to do with a byte of an op's own extent. Sums over one chunk, and packets,
  /// go round the strands from the extent's first piece on; other ops as an executor likes, which
  /// is drawn: by where their bytes lie, and what is left over at the end apart.
  uint32_t strand_of(uint32_t rank, const Op& op, PacketFormat format, uint64_t from_begin,
                     bool tail) const {
    const uint64_t piece = format == PacketFormat::none ? 16 : shape_.packet(format);
    uint64_t at = from_begin / piece;
    if (applies(op))
      return (at + 1) % kStrands;  // rows are dealt out as no packets and no sums are
    if (options_.dealing != 0) {
      const bool alike =
          format != PacketFormat::none || (info(op.kind).has(kReduces) && walks_alone(rank, op));
      const uint64_t drawn =
          (options_.dealing + rank * 31 + uint64_t{op.operands}) * 0x9e3779b97f4a7c15;
      if (!alike) at += drawn >> 63;
      if (!alike && tail) at += drawn >> 62;
    }
    return at % kStrands;
  }

  /// What a strand (kNone: the whole block) moves of operands that are moved together.
  void add_elements(uint32_t rank, const Op& op, std::span<const Operand> dsts,
                    std::span<const Operand> srcs, uint32_t strand,
                    std::vector<Element>& out) const {
    const PacketFormat format = format_of(rank, op);
    const Extent own = shape_.own(op, dsts[0].count, format, round_);
    const uint64_t stride = shape_.stride(format), grain = shape_.grain();
    for (uint64_t v = own.begin; v < own.end; v += grain) {
      const Spot at = {static_cast<uint32_t>(v / stride), v % stride};
      if (format == PacketFormat::none) {
        const uint64_t length =
            std::min(plain_length(rank, dsts, at.chunk), plain_length(rank, srcs, at.chunk));
        if (at.offset >= length) continue;
        const bool tail = length - at.offset < 16;
        if (strand != kNone && strand_of(rank, op, format, v - own.begin, tail) != strand) continue;
      } else if (strand != kNone && strand_of(rank, op, format, v - own.begin, false) != strand) {
        continue;
      }
      Element e;
      for (const Operand& o : dsts) add_cells(rank, op, o, at, e.dsts);
      for (const Operand& o : srcs) add_cells(rank, op, o, at, e.srcs);
      e.hollow = at.offset >= shape_.longest_data() || ends_before(rank, srcs, at) ||
                 ends_before(rank, dsts, at);
      out.push_back(std::move(e));
    }
  }

  std::vector<Element> elements(uint32_t rank, const Op& op, uint32_t strand) const {
    const auto dsts = program_.dsts(op), srcs = program_.srcs(op);
    std::vector<Element> out;
    if (!info(op.kind).srcs.slot[0].pairwise) {
      add_elements(rank, op, dsts, srcs, strand, out);
    } else {
      for (size_t i = 0; i < dsts.size(); ++i) {
        add_elements(rank, op, dsts.subspan(i, 1), srcs.subspan(i, 1), strand, out);
      }
    }
    return out;
  }

  void add(Kind kind, const Op& op, uint32_t index = 0, std::vector<Element> elements = {}) {
    process_->steps.push_back({kind, index, op.relaxed, std::move(elements), &op});
  }

  void add_sync(const Op& op) { add(Kind::sync, op, syncs_++); }

  /// Is target `i` of the op this strand's?
  bool serves(Kind kind, const Op& op, size_t i) const {
    const bool port = kind == Kind::post || kind == Kind::flush;
    if (serving_ == Serving::in_turns && !port) {
      const size_t number = &op - program_.ranks[process_->rank].ops.data();
      return process_->strand == (number + i) % kStrands;
    }
    const bool waits = kind == Kind::wait || kind == Kind::acquire || kind == Kind::await;
    return process_->strand == (waits || serving_ == Serving::by_one ? 0 : 1);
  }

  /// A step for each of the op's targets, if they are this strand's.
  void add_targets(Kind kind, const Op& op, std::span<const Operand> targets) {
    const uint32_t rank = process_->rank;
    for (size_t i = 0; i < targets.size(); ++i) {
      const Operand& o = targets[i];
      if (kind == Kind::release || kind == Kind::acquire) {
        if (serves(kind, op, i)) add(kind, op, model_.first_semaphore[rank] + o.first);
        continue;
      }
      const uint32_t end = model_.first_channel[rank] + o.channel;
      const bool port = program_.ranks[rank].channels[o.channel].kind == ChannelKind::port;
      const Kind step = kind == Kind::signal && port ? Kind::post : kind;
      if (serves(step, op, i)) add(step, op, step == Kind::signal ? model_.partner[end] : end);
    }
  }

  void add_flags(Kind kind, const Op& op) {
    const auto flags = program_.dsts(op);
    for (size_t i = 0; i < flags.size(); ++i) {
      if (!serves(kind, op, i)) continue;
      const uint32_t flag = flag_number(program_, flags[i].buffer, flags[i].first);
      add(kind, op, model_.flags_of_rank * process_->rank + flag);
    }
  }

  void add_posts(const Op& op) {
    if (!serves(Kind::post, op, 0)) return;
    const auto dsts = program_.dsts(op), srcs = program_.srcs(op);
    for (size_t i = 0; i < dsts.size(); ++i) {
      const size_t from = info(op.kind).srcs.slot[0].pairwise ? i : 0;
      std::vector<Element> out;
      add_elements(process_->rank, op, dsts.subspan(i, 1), srcs.subspan(from, 1), kNone, out);
      if (out.empty()) continue;  // beyond the end of its chunk; a post of nothing is a signal
      add(Kind::post, op, model_.first_channel[process_->rank] + dsts[i].channel, std::move(out));
    }
  }

  void add_move(const Op& op) {
    const uint32_t rank = process_->rank;
    const OpInfo& row = info(op.kind);
    const auto dsts = program_.dsts(op);
    const bool port = dsts[0].channel != kNone &&
                      program_.ranks[rank].channels[dsts[0].channel].kind == ChannelKind::port;
    std::vector<Element> own = elements(rank, op, process_->strand);
    if (row.has(kPolls)) add(Kind::poll, op, 0, own);
    if (!port) {
      add(Kind::access, op, 0, std::move(own));
    } else if (!row.has(kPolls)) {
      add_posts(op);
    } else {
      forward(op, std::move(own));
    }
    if (!row.has(kSignals)) return;
    add_targets(Kind::signal, op, dsts);  // by the thread that has posted; the others may lag
    if (row.has(kFlushes)) add_targets(Kind::flush, op, dsts);
  }

  /// Packets that a port sends on as they lie; a sentinel slot is emptied afterwards.
  void forward(const Op& op, std::vector<Element> own) {
    add_sync(op);
    add_posts(op);
    if (!is_sentinel(program_.buffer_of(process_->rank, program_.srcs(op)[0]).packets)) return;
    add_targets(Kind::flush, op, program_.dsts(op));
    add_sync(op);
    for (Element& e : own) e.dsts.clear();
    add(Kind::access, op, 0, std::move(own));
  }

  uint32_t barrier(uint32_t rank, const Op& op) {
    Barrier b{rank, {}};
    for (const Operand& o : program_.dsts(op)) b.blocks.push_back(o.first);
    std::sort(b.blocks.begin(), b.blocks.end());
    for (uint32_t i = 0; i < model_.barriers.size(); ++i) {
      if (model_.barriers[i].rank == rank && model_.barriers[i].blocks == b.blocks) return i;
    }
    model_.barriers.push_back(std::move(b));
    return static_cast<uint32_t>(model_.barriers.size() - 1);
  }

  void add_op(const Op& op) {
    const OpInfo& row = info(op.kind);
    if (row.moves_data()) return add_move(op);
    if (row.has(kSignals)) add_targets(Kind::signal, op, program_.dsts(op));
    if (row.has(kWaits)) add_targets(Kind::wait, op, program_.dsts(op));
    if (row.has(kFlushes)) add_targets(Kind::flush, op, program_.dsts(op));
    if (row.has(kReleases)) add_targets(Kind::release, op, program_.dsts(op));
    if (row.has(kAcquires)) add_targets(Kind::acquire, op, program_.dsts(op));
    if (row.has(kAwaitsFlags)) add_flags(Kind::await, op);
    if (row.has(kNotifiesFlags)) add_flags(Kind::notify, op);
    if (row.has(kSyncs)) add_sync(op);
    if (!row.has(kMeets)) return;
    if (process_->strand == 0) add(Kind::meet, op, barrier(process_->rank, op));
    add_sync(op);
  }

  /// The body of a pipeline as often as it has rounds. False if that is too much.
  bool add_ops(std::span<const Op> ops) {
    while (!ops.empty()) {
      const uint32_t loop = ops[0].loop;
      size_t body = 1;
      while (loop != kNone && body < ops.size() && ops[body].loop == loop) ++body;
      const uint64_t rounds = loop == kNone ? 1 : shape_.rounds(loop);
      for (round_ = 0; round_ < rounds; ++round_) {
        for (const Op& op : ops.first(body)) add_op(op);
        if (process_->steps.size() > kMaxSteps) return false;
      }
      round_ = 0;
      ops = ops.subspan(body);
    }
    return true;
  }

  /// The other side of each flag of a rank: what its declaration allows, and no more.
  void add_other_sides(uint32_t r) {
    model_.flags_of_rank = flag_total(program_);
    const uint32_t first = static_cast<uint32_t>(model_.flags.size());
    for (uint32_t a = 0; a < program_.flags.size(); ++a) {
      const FlagArray& array = program_.flags[a];
      for (uint32_t f = 0; f < array.count; ++f) {
        const FlagRegion region = flag_region(program_, r, a, f);
        const auto index = static_cast<uint32_t>(model_.flags.size());
        FlagModel& flag = model_.flags.emplace_back(FlagModel{array.raises, {}});
        Step step{array.of_output ? Kind::take : Kind::raise, index};
        for (const CallerCell& c : model_.buffers[region.buffer][r]) {
          const bool inside = c.chunk >= region.first && c.chunk < region.first + region.count;
          if (inside) step.region.push_back(c);
        }
        model_.processes.push_back({.kind = Process::Kind::other, .rank = r});
        model_.processes.back().steps = {std::move(step)};
        for (uint32_t b = 0; !array.of_output && b < program_.flags.size(); ++b) {
          for (uint32_t d = 0; program_.flags[b].of_output && d < program_.flags[b].count; ++d) {
            const bool below = d < f, declared = array.after == b;
            if (below || declared) flag.waits_for.push_back(first + flag_number(program_, b, d));
          }
        }
      }
    }
  }

  bool add_rank(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    for (const uint32_t side : {kInput, kOutput}) {
      std::vector<CallerCell>& cells = model_.buffers[side].emplace_back();
      for (uint32_t chunk = 0; chunk < rank.buffers[side].chunks; ++chunk) {
        for (uint64_t at = 0; at < shape_.length(r, side, chunk); at += shape_.grain()) {
          cells.push_back({cell(r, side, chunk, at), chunk, static_cast<uint32_t>(at)});
        }
      }
    }
    model_.processes.push_back({.kind = Process::Kind::caller, .rank = r});
    model_.processes.back().steps = {{Kind::begin}, {Kind::end}};
    add_other_sides(r);
    const std::vector<uint32_t> offsets = block_offsets(rank);
    for (uint32_t b = 0; b + 1 < offsets.size(); ++b) {
      for (uint32_t strand = 0; strand < kStrands && offsets[b] < offsets[b + 1]; ++strand) {
        process_ = &model_.processes.emplace_back(
            Process{.kind = Process::Kind::strand, .rank = r, .block = b, .strand = strand});
        syncs_ = 0;
        process_->steps.push_back({Kind::enter});
        if (!add_ops({rank.ops.begin() + offsets[b], rank.ops.begin() + offsets[b + 1]})) {
          return false;
        }
      }
    }
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      if (rank.channels[c].kind != ChannelKind::port) continue;
      for (const bool overtakes : {false, true}) {
        Process& proxy = model_.processes.emplace_back(
            Process{.kind = Process::Kind::proxy, .rank = r, .overtakes = overtakes});
        proxy.port = model_.first_channel[r] + c;
        proxy.steps = {{Kind::serve}};
      }
    }
    return true;
  }

  const Program& program_;
  const ExploreOptions& options_;
  const Serving serving_;
  const Shape shape_;
  Model model_;
  std::vector<std::vector<Cell>> first_cells_;
  Process* process_ = nullptr;
  uint32_t syncs_ = 0;
  uint64_t round_ = 0;  ///< of a pipeline
};

}  // namespace

bool can_model(const Program& program) {
  return std::ranges::all_of(program.ranks, [&](const Rank& rank) {
    return std::ranges::all_of(rank.ops, [&](const Op& op) {
      if (op.loop == kNone || !info(op.kind).moves_data()) return true;
      return std::ranges::all_of(program.all_operands(op), [&](const Operand& o) {
        return o.count == program.loops[op.loop].chunks;
      });
    });
  });
}

std::optional<Model> make_model(const Program& program, const ExploreOptions& options,
                                Serving serving) {
  return Maker(program, options, serving).make();
}

}  // namespace mscclc::explorer
