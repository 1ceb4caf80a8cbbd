#include "tests/helpers/plans/random_plan.h"

#include <algorithm>
#include <random>
#include <string>

#include "ir/report/coinciding.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(seed), ranks_(pick(1, 5)), made_(ranks_, 1), program_(made_.program) {}

  Program run() {
    make_header();
    make_buffers();
    make_channels();
    for (uint32_t r = 0; r < ranks_; ++r) {
      const uint32_t semaphores = pick(0, 3);
      for (uint32_t s = 0; s < semaphores; ++s) {
        made_.semaphore(r, s == 1 ? "odd" : "done", keys(s), pick(0, 2));
      }
      make_ops(r);
    }
    return std::move(program_);
  }

 private:
  uint32_t pick(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random_);
  }
  bool chance(uint32_t percent) { return pick(1, 100) <= percent; }
  /// Keys that differ for different `i`.
  std::vector<int64_t> keys(uint32_t i) {
    std::vector<int64_t> out = {static_cast<int64_t>(i)};
    if (arity_ == 2) out.push_back(-int64_t{i} * 7);
    return out;
  }

  void make_header() {
    arity_ = pick(1, 2);
    program_.name = chance(50) ? "random" : "rändom \"quoted\"\n";
    program_.description = chance(50) ? "" : "two\nlines";
    program_.split = true;
    program_.foreign = chance(25);
    for (const char* file : {"a.mscl", "lib/b.mscl"}) {
      if (chance(90) || !program_.files.empty()) program_.files.push_back(file);
    }
    make_contract();
    Select& s = program_.select;
    if (chance(50)) s.sizes = {pick(0, 1000), uint64_t{pick(1000, 2000)} << pick(0, 40)};
    if (chance(50)) s.dtypes = {Dtype::f16, Dtype::e4m3b15};
    if (chance(50)) s.ops = {ReduceOp::max};
    if (chance(50)) s.tags = {"fast", ""};
    s.priority = -static_cast<int64_t>(pick(0, 3));
    Launch& l = program_.launch;
    l.threads = kWarpThreads * pick(1, 32);
    l.instances = pick(1, 4);
    l.policy = static_cast<Policy>(pick(0, 1));
    l.align = chance(80) ? 16 : 48;
    l.reuse_scratch = chance(20);
    l.fuse = chance(50);
  }

  void make_contract() {
    Contract& c = program_.contract;
    c.chunks = {pick(1, 3), pick(1, 2)};
    c.in_place = static_cast<InPlace>(pick(0, 2));
    c.even_only = true;
    c.order = static_cast<SumOrder>(pick(0, 3));
    switch (pick(0, 3)) {
      case 0:
        c.kind = CollectiveKind::broadcast;
        c.root = ranks_ - 1;
        break;
      case 1:
        c.kind = CollectiveKind::alltoallv;
        for (uint32_t i = 0; i < ranks_ * ranks_; ++i) c.counts.push_back(pick(0, 2));
        break;
      case 2:
        c.kind = CollectiveKind::sendrecv;
        c.shift = -1;
        break;
      default:
        c.kind = CollectiveKind::custom;
        c.input = {pick(1, 4), pick(1, 3)};
        c.output = {chance(90) ? pick(2, 9) : 0};
        if (c.output[0] == 0 || chance(50)) break;
        c.promises.push_back({{0, 0}, true, {{ranks_ - 1, 0}, {0, 0}}});
        c.promises.push_back({{0, 1}, false, {{0, 0}}});
        break;
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      std::vector<Buffer>& buffers = program_.ranks[r].buffers;
      buffers[kInput].chunks = c.shape(Side::input, r).chunks();
      buffers[kOutput].chunks = c.shape(Side::output, r).chunks();
    }
  }

  PacketFormat format() {
    constexpr auto kLast = static_cast<uint32_t>(packet_formats().size());
    return chance(60) ? PacketFormat::LL16 : static_cast<PacketFormat>(pick(1, kLast));
  }

  /// Two buffers are alike on all ranks, for switches; others differ in number and size.
  void make_buffers() {
    const uint32_t stage = pick(1, 4), slots = pick(1, 4), copies = pick(1, 2);
    const uint32_t stage_copies = chance(80) ? 1 : copies;
    const PacketFormat slot_format = format();
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (chance(40)) made_.buffer(r, "before", pick(0, 5), PacketFormat::none, pick(1, 3));
      made_.buffer(r, "stage", stage, PacketFormat::none, stage_copies);
      if (chance(30)) made_.buffer(r, "other", pick(1, 4), format(), copies);
      const uint32_t index = made_.buffer(r, "slots", slots, slot_format, copies);
      const int64_t dims[] = {1, slots};
      if (chance(50)) program_.ranks[r].buffers[index].dims = program_.append(dims);
    }
  }

  // ---- channels: declared in random order on each rank ----

  struct Wanted {
    ChannelKind kind;
    uint32_t peer;
    int pair;  ///< two ends with one number belong together; -1: alone
    std::vector<int64_t> group;
  };

  void make_channels() {
    std::vector<std::vector<Wanted>> wanted(ranks_);
    int pairs = 0;
    for (uint32_t a = 0; a < ranks_; ++a) {
      for (uint32_t b = a + 1; b < ranks_; ++b) {
        for (uint32_t n = pick(0, 4); n > 0; --n) {
          const ChannelKind kind = chance(65) ? ChannelKind::memory : ChannelKind::port;
          const bool alone = chance(15);
          if (!alone || chance(60)) wanted[a].push_back({kind, b, alone ? -1 : pairs, {}});
          if (!alone || chance(60)) wanted[b].push_back({kind, a, alone ? -1 : pairs, {}});
          ++pairs;
        }
      }
    }
    for (uint32_t n = pick(0, 2); n > 0; --n) add_switch(wanted);
    std::vector<std::pair<uint32_t, uint32_t>> first_end(pairs, {kNone, kNone});
    for (uint32_t r = 0; r < ranks_; ++r) {
      std::shuffle(wanted[r].begin(), wanted[r].end(), random_);
      for (const Wanted& w : wanted[r]) declare(r, w, first_end);
    }
  }

  void add_switch(std::vector<std::vector<Wanted>>& wanted) {
    std::vector<int64_t> group;
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (chance(70)) group.push_back(r);
    }
    for (const int64_t r : group) wanted[r].push_back({ChannelKind::switch_, kNone, -1, group});
  }

  void declare(uint32_t rank, const Wanted& w,
               std::vector<std::pair<uint32_t, uint32_t>>& first_end) {
    const uint32_t index = static_cast<uint32_t>(program_.ranks[rank].channels.size());
    const std::string family = w.kind == ChannelKind::switch_ ? "sw"
                               : w.kind == ChannelKind::port  ? "net"
                                                              : "ch";
    made_.channel(rank, w.kind, family + std::to_string(pick(0, 1)), keys(index), w.peer);
    Channel& channel = program_.ranks[rank].channels[index];
    if (w.kind == ChannelKind::switch_) channel.group = program_.append(w.group);
    if (w.kind == ChannelKind::port && chance(20)) channel.credits = pick(1, 3);
    if (w.pair < 0) return;
    auto& [other_rank, other] = first_end[static_cast<size_t>(w.pair)];
    if (other_rank == kNone) {
      other_rank = rank;
      other = index;
      return;
    }
    channel.partner = other;
    program_.ranks[other_rank].channels[other].partner = index;
  }

  // ---- ops ----

  void make_ops(uint32_t rank) {
    const uint32_t blocks = pick(0, 4);
    program_.ranks[rank].blocks = blocks;
    for (uint32_t b = 0; b < blocks; ++b) {
      uint32_t loop = kNone;
      for (uint32_t n = pick(0, 12); n > 0; --n) {
        if (chance(25)) loop = loop == kNone ? new_loop() : kNone;
        make_op(rank, b, loop);
      }
    }
  }

  uint32_t new_loop() {
    program_.loops.push_back({uint64_t{program_.launch.align} << pick(0, 3), pick(1, 2)});
    return static_cast<uint32_t>(program_.loops.size() - 1);
  }

  void make_op(uint32_t rank, uint32_t block, uint32_t loop) {
    // Of row functions tests/rows has programs.
    const auto picked = static_cast<OpKind>(pick(0, static_cast<uint32_t>(OpKind::pipeline) - 1));
    const OpKind kind = picked == OpKind::apply ? OpKind::copy : picked;
    const OpInfo& row = info(kind);
    Op op;
    op.kind = kind;
    op.block = block;
    op.loop = loop;
    op.relaxed = !row.relaxed.empty() && chance(50);
    std::vector<Operand> dsts, srcs;
    const bool made =
        row.moves_data() ? make_move(rank, op, dsts, srcs) : make_control(rank, op, dsts);
    if (!made || find_coinciding(program_, rank, kind, op.parts, dsts, srcs)) return;
    const InPlace in_place = program_.contract.in_place;
    const bool kept = in_place == InPlace::either || (in_place == InPlace::no && !program_.foreign);
    const auto is_input = [&](const Operand& o) {
      return program_.buffer_of(rank, o).kind == BufferKind::input;
    };
    if (row.moves_data() && kept && std::ranges::any_of(dsts, is_input)) return;
    program_.set_operands(op, dsts, srcs);
    locate(op);
    program_.ranks[rank].ops.push_back(op);
  }

  bool make_control(uint32_t rank, const Op& op, std::vector<Operand>& dsts) {
    const OpInfo& row = info(op.kind);
    const Rank& r = program_.ranks[rank];
    if (row.dsts.count == 0) return true;
    if (row.has(kMeets)) {
      dsts.push_back(id(op.block));
      for (uint32_t b = 0; b < r.blocks; ++b) {
        if (b != op.block && chance(50)) dsts.push_back(id(b));
      }
      if (chance(20)) std::shuffle(dsts.begin(), dsts.end(), random_);
      return true;
    }
    const uint32_t count = pick(1, 3);
    const ChannelKind kind =
        chance(60) && (row.channels & kMemory) != 0 ? ChannelKind::memory : ChannelKind::port;
    for (uint32_t i = 0; i < count; ++i) {
      if (row.has(kReleases) || row.has(kAcquires)) {
        if (r.semaphores.empty()) return false;
        dsts.push_back(id(pick(0, static_cast<uint32_t>(r.semaphores.size()) - 1)));
      } else {
        const uint32_t channel = any_channel(rank, kind);
        if (channel == kNone) return false;
        dsts.push_back(end_of(channel));
      }
    }
    return true;
  }

  uint32_t any_channel(uint32_t rank, ChannelKind kind) {
    std::vector<uint32_t> fitting;
    const std::vector<Channel>& channels = program_.ranks[rank].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind == kind) fitting.push_back(c);
    }
    if (fitting.empty()) return kNone;
    return fitting[pick(0, static_cast<uint32_t>(fitting.size()) - 1)];
  }

  bool make_move(uint32_t rank, Op& op, std::vector<Operand>& dsts, std::vector<Operand>& srcs) {
    const OpInfo& row = info(op.kind);
    const uint8_t kinds = row.channels;
    channel_kind_ = (kinds & kSwitch) != 0 ? ChannelKind::switch_
                    : (kinds & kPort) != 0 && (chance(40) || (kinds & kMemory) == 0)
                        ? ChannelKind::port
                        : ChannelKind::memory;
    format_ = PacketFormat::none;
    chunks_ = op.loop != kNone ? program_.loops[op.loop].chunks : pick(1, 2);
    const uint32_t many = chance(5) ? 12 : pick(1, 3);
    if (!fill(rank, row.dsts, many, dsts) || !fill(rank, row.srcs, many, srcs)) return false;
    if (row.srcs.slot[0].floating) {
      std::rotate(srcs.begin(), srcs.begin() + 1,
                  srcs.begin() + pick(1, static_cast<uint32_t>(srcs.size())));
    }
    if (op.loop != kNone && format_ != PacketFormat::none) return false;
    if (chance(20)) {
      op.parts = static_cast<uint16_t>(pick(1, 3));
      op.part = static_cast<uint16_t>(pick(0, op.parts - 1u));
    }
    if (row.has(kReduces)) {
      op.reduce = chance(60) ? ReduceOp::call : static_cast<ReduceOp>(pick(0, 5));
      op.complete = chance(30);
      if (row.channels != kSwitch && op.reduce != ReduceOp::prod && chance(30)) {
        op.summation = chance(50) ? Summation::tree : Summation::exact;
      }
    }
    return true;
  }

  /// One operand for each slot of a side, `many` for one that takes many.
  bool fill(uint32_t rank, const Slots& slots, uint32_t many, std::vector<Operand>& out) {
    for (uint32_t s = 0; s < slots.count; ++s) {
      const Slot& slot = slots.slot[s];
      const uint32_t count = slot.many || slot.pairwise ? many : 1;
      for (uint32_t i = 0; i < count; ++i) {
        Operand o;
        if (!choose(rank, slot, o)) return false;
        out.push_back(o);
      }
    }
    return true;
  }

  bool choose(uint32_t rank, const Slot& slot, Operand& o) {
    uint32_t owner = rank;
    if (slot.kind != SlotKind::local) {
      o.channel = any_channel(rank, channel_kind_);
      if (o.channel == kNone) return false;
      if (slot.kind == SlotKind::remote) owner = program_.ranks[rank].channels[o.channel].peer;
    }
    const bool port = channel_kind_ == ChannelKind::port;
    const bool packets = slot.packets || (slot.port_packets && port);
    std::vector<uint32_t> fitting;
    const std::vector<Buffer>& buffers = program_.ranks[owner].buffers;
    for (uint32_t b = 0; b < buffers.size(); ++b) {
      const std::string_view name = program_.name_of(buffers[b].name);
      const bool common = b < kFirstScratch ? alike(b) : name == "stage" || name == "slots";
      const bool format_fits = format_ == PacketFormat::none || buffers[b].packets == format_;
      if ((buffers[b].packets != PacketFormat::none) != packets || buffers[b].chunks < chunks_ ||
          (packets && !format_fits) || (port && !info(buffers[b].packets).goes_everywhere()) ||
          (slot.kind == SlotKind::switched && !common)) {
        continue;
      }
      fitting.push_back(b);
    }
    if (fitting.empty()) return false;
    o.buffer = fitting[pick(0, static_cast<uint32_t>(fitting.size()) - 1)];
    if (packets) format_ = buffers[o.buffer].packets;
    o.count = chunks_;
    o.first = pick(0, buffers[o.buffer].chunks - chunks_);
    return true;
  }

  /// True if input or output is cut alike on all ranks.
  bool alike(uint32_t buffer) const {
    const Side side = buffer == kInput ? Side::input : Side::output;
    for (uint32_t r = 1; r < ranks_; ++r) {
      if (!program_.contract.laid_out_alike(side, 0, r)) return false;
    }
    return true;
  }

  /// Gives the op locations: none, one, a run, or a mixture.
  void locate(Op& op) {
    if (program_.files.empty() || chance(20)) return;
    const uint32_t files = static_cast<uint32_t>(program_.files.size());
    while (program_.sites.size() < 4) {
      const uint32_t n = static_cast<uint32_t>(program_.sites.size());
      made_.site(pick(0, files - 1), pick(1, 90), pick(1, 90));
      const std::vector<std::string_view> names = {"r", "p", "step"};
      for (uint32_t v = 0; v < n; ++v) {
        program_.sites.back().variables.push_back(program_.intern(names[v]));
      }
    }
    for (uint32_t runs = pick(1, 3); runs > 0; --runs) {
      const uint32_t site = pick(0, 3), length = chance(50) ? 1 : pick(2, 9);
      std::vector<int64_t> values(program_.sites[site].variables.size());
      for (int64_t& v : values) v = static_cast<int64_t>(pick(0, 5)) - 2;
      const int64_t step = static_cast<int64_t>(pick(0, 4)) - 2;
      for (uint32_t i = 0; i < length; ++i) {
        made_.located(op, site, values);
        if (!values.empty()) values.back() += chance(95) ? step : 11;
      }
    }
  }

  std::mt19937_64 random_;
  uint32_t ranks_;
  TestProgram made_;
  Program& program_;
  uint32_t arity_ = 1;
  ChannelKind channel_kind_ = ChannelKind::memory;  ///< of the op being made
  PacketFormat format_ = PacketFormat::none;
  uint32_t chunks_ = 1;
};

}  // namespace

Program random_plan(uint64_t seed) { return Generator(seed).run(); }

}  // namespace mscclc::testing
