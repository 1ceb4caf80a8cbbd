// Steps say what the rank's arrays say: the same accesses, at the same addresses, in every round
// and call.
#include "executor/block_programs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <tuple>

#include "executor/interpreter/dispatch.h"
#include "executor/testing/fitted_rank.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using device::BaseAddress;
using device::ChannelEnd;
using device::Frame;
using device::Step;
using device::StepHeader;
using device::StepKind;
using device::Steps;

/// What an op did: which op, where, how much or which target.
using Access = std::tuple<uint32_t, const void*, uint64_t, uint32_t>;

/// A machine that only writes down what it is asked for.
class Recorder {
 public:
  static constexpr uint32_t kTogether = 3;
  static constexpr bool kTrees = true;
  static constexpr uint32_t kLoad = 0;  ///< of plain data, beside packets
  struct Tile {};
  struct Sums {};
  struct Arith {
    bool adds_exactly() const { return true; }
    void start(Sums&, const Tile&, uint32_t) const {}
    void add(Sums&, const Tile&, uint32_t) const {}
    void finish(Sums&, Tile&, uint32_t) const {}
  };
  Recorder(const FittedRank& fitted, uint64_t call) : fitted_(fitted), call_(call) {}

  template <class Op>
  void enter(const Op& op) {
    source_ = op.source;
  }
  uint8_t* base(uint32_t i) const {
    const BaseAddress& b = fitted_.bases[i];
    return b.address + (b.copies > 1 ? call_ % b.copies * b.copy_stride : 0);
  }
  uint64_t call() const { return call_; }
  template <class Op>
  Arith arith(const Op&) const {
    return {};
  }
  struct TreeSums {
    uint32_t slices() const { return 1; }
    void start(uint32_t, const Tile&, uint32_t) {}
    void add(uint32_t, const Tile&, uint32_t) {}
    void merge(uint32_t) {}
    void finish(Tile&, uint32_t) {}
  };
  TreeSums tree_sums(const Arith&, uint32_t) { return {}; }
  struct ExactSums {
    uint32_t slices() const { return 1; }
    void start(const Tile&, uint32_t) {}
    void add(const Tile&, uint32_t) {}
    void finish(Tile&, uint32_t) {}
  };
  ExactSums exact_sums(const Arith&, uint32_t) { return {}; }
  template <PacketFormat F, class Stretch, class Fn>
  void for_each_piece(const Stretch& s, Fn fn) {
    fn(device::piece_of<F>(s, s.skip, static_cast<uint32_t>(s.count)));
  }
  template <class Fn>
  void for_each_target(uint32_t n, Fn fn) {
    for (uint32_t i = 0; i < n; ++i) fn(i);
  }
  template <class Fn>
  void for_each_post(uint32_t n, Fn fn) {
    for (uint32_t i = 0; i < n; ++i) fn(i);
  }
  template <PacketFormat F>
  void fetch(const device::Source* sources, uint32_t n, const device::Piece& piece, Tile*) {
    for (uint32_t i = 0; i < n; ++i) {
      note(sources[i].address, piece.bytes, sources[i].packets ? 1 : kLoad);
    }
  }
  void store(uint8_t* to, const device::Piece& piece, const Tile&) { note(to, piece.bytes, 2); }
  template <PacketFormat F>
  void write_packets(uint8_t* slot, const device::Piece& piece, const Tile&) {
    note(slot, piece.unit << 32 | piece.bytes, 3);
  }
  void empty_packets(uint8_t* units, uint32_t bytes) { note(units, bytes, 4); }
  void drop_minus_zeros(Tile&, uint32_t) const {}
  void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    note(to, bytes, 5);
    note(from, bytes, 6);
  }
  // By index as frames name them, or as targets: written down as addresses.
  void signal(uint32_t channel, bool relaxed) {
    note(fitted_.ends[channel].partner, channel, relaxed ? 7 : 8);
  }
  void signal(const device::StepTarget& t, bool relaxed) {
    note(t.address, t.index, relaxed ? 7 : 8);
  }
  void wait(uint32_t channel, bool) { note(fitted_.ends[channel].arrived, channel, 9); }
  void wait(const device::StepTarget& t, bool) { note(t.address, t.index, 9); }
  template <class ChannelOf>
  void flush(uint32_t n, ChannelOf channel_of) {
    for (uint32_t i = 0; i < n; ++i) note(nullptr, channel_of(i), 10);
  }
  void release(uint32_t s) { note(fitted_.semaphores + s, s, 11); }
  void release(const device::StepTarget& t) { note(t.address, t.index, 11); }
  void acquire(uint32_t s) { note(fitted_.semaphores + s, s, 12); }
  void acquire(const device::StepTarget& t) { note(t.address, t.index, 12); }
  void meet(uint32_t b) { note(fitted_.barriers + b, b, 13); }
  void meet(const device::StepTarget& t) { note(t.address, t.index, 13); }
  void sync() { note(nullptr, 0, 14); }
  template <class Flag>
  void await_flag(const Flag&) {}
  template <class Flag>
  void notify_flag(const Flag&) {}
  void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
    note(to, bytes, 100 + channel);
    note(from, bytes, 15);
  }

  std::vector<Access> seen;

 private:
  void note(const void* address, uint64_t count, uint32_t what) {
    seen.emplace_back(source_, address, count, what);
  }
  const FittedRank& fitted_;
  const uint64_t call_;
  uint32_t source_ = 0;
};

/// Moves of an op have no order among themselves, nor have an op's runs. What several moves load is
/// loaded once (Recorder::kLoad).
std::vector<Access> sorted_by_op(std::vector<Access> seen) {
  auto begin = seen.begin();
  for (auto at = seen.begin(); at != seen.end(); begin = at) {
    while (at != seen.end() && std::get<0>(*at) == std::get<0>(*begin)) ++at;
    std::sort(begin, at);
  }
  const auto is_again = [](const Access& a, const Access& b) {
    return a == b && std::get<3>(a) == Recorder::kLoad;
  };
  seen.erase(std::unique(seen.begin(), seen.end(), is_again), seen.end());
  return seen;
}

Steps steps_of(const BlockPrograms& programs, uint32_t block, uint32_t& count) {
  const uint8_t* at = programs.data() + uint64_t{block} * programs.stride();
  const auto* header = reinterpret_cast<const StepHeader*>(at);
  count = header->steps;
  return Steps(header);
}

void check_programs(const FittedRank& p, const BlockPrograms& programs) {
  const RankProgram& r = *p.rank;
  CHECK(programs.bytes() <= BlockPrograms::most_bytes(r));
  CHECK(programs.stride() % 16 == 0);
  REQUIRE(programs.bytes() == uint64_t{programs.stride()} * (r.block_begin.size() - 1));
  for (uint32_t b = 0; b + 1 < r.block_begin.size(); ++b) {
    for (const uint64_t call : {0, 1, 2, 7}) {
      INFO("block " << b << ", call " << call);
      Recorder was(p, call), is(p, call);
      const Frame frame{r.view()};
      device::run_ops(was, frame, r.ops.data() + r.block_begin[b],
                      r.block_begin[b + 1] - r.block_begin[b]);
      uint32_t count = 0;
      const Steps steps = steps_of(programs, b, count);
      device::run_ops(is, steps, steps.steps, count);
      CHECK(sorted_by_op(was.seen) == sorted_by_op(is.seen));
    }
  }
}

TEST_CASE("steps do what ops do, for every size") {
  std::vector<TestProgram> plans;
  plans.push_back(one_shot(4, 4, PacketFormat::LL128));
  plans.push_back(one_shot(8, 2, PacketFormat::sentinel));
  plans.push_back(two_shot(4));
  plans.push_back(two_shot_by_ports(4, PacketFormat::sentinel));
  plans.push_back(exchange(ChannelKind::port));
  plans.push_back(exchange(ChannelKind::memory));
  for (TestProgram& t : plans) {
    FittedRank p(t, 1, 1000);
    BlockPrograms programs;
    for (const uint64_t bytes : {1000, 16, 0, 4096, 100000, 1}) {
      INFO(t.program.name << ", " << bytes << " bytes");
      p.fit_to_size(bytes);
      REQUIRE(p.pack(programs));
      check_programs(p, programs);
    }
  }
}

TEST_CASE("what keeps a program from being packed is said") {
  TestProgram t = one_shot(2, 1, PacketFormat::LL16);
  FittedRank p(t, 0, 1000);
  BlockPrograms programs;
  std::vector<device::BaseAddress> bases = p.bases;
  const auto refusal_of_copies = [&](uint64_t stride, uint32_t copies) {
    p.bases = bases;
    for (device::BaseAddress& base : p.bases) {
      if (base.copies > 1) base.copy_stride = stride, base.copies = copies;
    }
    CHECK(!p.pack(programs));
    return std::string(programs.refusal());
  };
  CHECK(refusal_of_copies(uint64_t{1} << 38, 2) ==
        "the copies of a buffer would have 512 GiB together");
  CHECK(refusal_of_copies(1024, 65536) == "a buffer would have more than 65535 copies");
  p.bases = bases;
  CHECK(!p.pack(programs, uint32_t{1} << 31));
  CHECK(programs.refusal() == "the program of a thread block would have 2 GiB");
  CHECK(p.pack(programs));
  CHECK(programs.refusal() == "");
}

TEST_CASE("a block's program names offsets of 64 bits, of plain data and of packets") {
  constexpr uint32_t kChunks = 8192, kLast = kChunks - 1;
  constexpr uint64_t kChunk = 3 << 20;  // 24 GiB of data, 96 GiB of packets
  TestProgram t(1, kChunks);
  const uint32_t stage = t.buffer(0, "stage", kChunks);
  const uint32_t slots = t.buffer(0, "slots", kChunks, PacketFormat::LL16, 2);
  add_op(t, 0, 0, OpKind::copy, {local(stage, kLast)}, {local(kInput, kLast)});
  add_op(t, 0, 0, OpKind::copy_packets, {local(slots, kLast)}, {local(stage, kLast)});
  add_op(t, 0, 0, OpKind::unpack_packets, {local(kOutput, kLast)}, {local(slots, kLast)});
  FittedRank p(t, 0, kChunks * kChunk);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  check_programs(p, programs);
  const auto base_of = [&](uint32_t buffer) {
    const auto& bases = p.rank->bases;
    const auto found = std::ranges::find(bases, buffer, &device::Base::buffer);
    REQUIRE(found != bases.end());
    return static_cast<uint32_t>(found - bases.begin());
  };
  CHECK(p.bases[base_of(slots)].copy_stride >= 2 * kChunks * kChunk);
  for (const uint64_t call : {0, 1}) {
    Recorder seen(p, call);
    uint32_t count = 0;
    const Steps steps = steps_of(programs, 0, count);
    device::run_ops(seen, steps, steps.steps, count);
    const auto names = [&](uint32_t buffer, uint64_t offset) {
      return std::ranges::any_of(seen.seen, [&](const Access& access) {
        return std::get<1>(access) == seen.base(base_of(buffer)) + offset;
      });
    };
    CHECK(names(kInput, kLast * kChunk));
    CHECK(names(stage, kLast * kChunk));
    CHECK(names(kOutput, kLast * kChunk));
    CHECK(names(slots, 2 * kLast * kChunk));
  }
}

TEST_CASE("a block's program holds what it names, and no more") {
  TestProgram t = one_shot(8, 8, PacketFormat::LL16);
  FittedRank p(t, 3, 1 << 14);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  // One step for 7 puts of the same data, one for the sum: 7 + 1 and 1 + 8 operands.
  CHECK(programs.stride() <= sizeof(StepHeader) + 2 * sizeof(Step) + 17 * 16 + 16);
  CHECK(programs.uses() == (device::uses_of(PacketFormat::LL16) | device::kUsesSums));
}

TEST_CASE("moves that send the same data are one, with a destination for each") {
  TestProgram same = one_shot(4, 4, PacketFormat::LL16);
  FittedRank p(same, 1, 4096);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  uint32_t count = 0;
  Steps steps = steps_of(programs, 0, count);
  CHECK(steps.steps[0].count == 1);
  CHECK(steps.steps[0].dsts == 3);
  const device::StepOperand* operands = steps.operands + steps.steps[0].first;
  CHECK(std::set{operands[0].address, operands[1].address, operands[2].address}.size() == 3);
  CHECK(operands[3].address == p.bases[kInput + 1].address);

  TestProgram rows = two_shot_by_ports(4, PacketFormat::LL128);  // a row of its own to each
  FittedRank q(rows, 1, 4096);
  REQUIRE(q.pack(programs));
  steps = steps_of(programs, 0, count);
  CHECK(steps.steps[0].count == 3);
  CHECK(steps.steps[0].dsts == 1);
}

TEST_CASE("kinds that do the same become one") {
  TestProgram t = two_shot(4);
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  uint32_t count = 0;
  const Steps steps = steps_of(programs, 0, count);
  CHECK(steps.steps[0].kind == StepKind::copy);  // put
  CHECK(std::any_of(steps.steps, steps.steps + count,
                    [](const Step& s) { return s.kind == StepKind::reduce; }));  // reduce_send
  CHECK(programs.uses() == device::kUsesSums);

  TestProgram ports = exchange(ChannelKind::port);
  FittedRank q(ports, 0, 4096);
  REQUIRE(q.pack(programs));
  CHECK(programs.uses() == device::kUsesProxy);
}

TEST_CASE("signals of a memory channel whose end goes by the proxy are posted") {
  TestProgram t = exchange(ChannelKind::memory);
  FittedRank p(t, 0, 4096);
  const auto signals_post = [&](uint32_t& signals) {
    BlockPrograms programs;
    REQUIRE(p.pack(programs));
    CHECK(programs.uses() == (p.ends[0].port != 0 ? device::kUsesProxy : 0u));
    uint32_t count = 0, posts = 0;
    const Steps steps = steps_of(programs, 0, count);
    for (uint32_t i = 0; i < count; ++i) {
      const bool signal = steps.steps[i].kind == StepKind::signal;
      signals += signal;
      posts += (steps.steps[i].flags & device::kPosts) != 0;
      if (!signal) CHECK((steps.steps[i].flags & device::kPosts) == 0);
    }
    return posts;
  };
  uint32_t signals = 0;
  CHECK(signals_post(signals) == 0);
  CHECK(signals > 0);
  for (ChannelEnd& end : p.ends) end.port = 1;
  const uint32_t as_before = signals;
  signals = 0;
  CHECK(signals_post(signals) == as_before);
  CHECK(signals == as_before);
}

TEST_CASE("signals may go with the puts that they follow") {
  // Of rank 0's steps that put or signal by ports: kinds, and whether the next goes with them.
  using Posting = std::vector<std::pair<StepKind, bool>>;
  const auto posting = [](TestProgram t) {
    FittedRank p(t, 0, 4096);
    BlockPrograms programs;
    REQUIRE(p.pack(programs));
    uint32_t count = 0;
    const Steps steps = steps_of(programs, 0, count);
    Posting found;
    for (uint32_t i = 0; i < count; ++i) {
      const Step& step = steps.steps[i];
      if ((step.flags & device::kPosts) == 0 || step.kind == StepKind::flush) continue;
      found.emplace_back(step.kind, (step.flags & device::kWithSignals) != 0);
    }
    return found;
  };
  const Posting together = {{StepKind::copy, true}, {StepKind::signal, false}};
  const Posting apart = {{StepKind::copy, false}, {StepKind::signal, false}};
  TestProgram t = two_shot_by_ports(4, PacketFormat::LL128);
  CHECK(posting(t) == together);
  for (Op& op : t.program.ranks[0].ops) {
    if (op.kind != OpKind::signal) continue;
    const std::span<const Operand> before = t.program.dsts(op);
    std::vector<Operand> ends(before.begin(), before.end());
    std::swap(ends[0], ends[1]);  // another order than that of the puts
    t.program.set_operands(op, ends, {});
  }
  CHECK(posting(t) == apart);
  TestProgram twice = two_shot_by_ports(4, PacketFormat::LL128);  // one channel, several times
  for (Op& op : twice.program.ranks[0].ops) {
    const bool posts = op.kind == OpKind::put || op.kind == OpKind::signal;
    const std::span<const Operand> before = twice.program.dsts(op);
    const std::span<const Operand> loads = twice.program.srcs(op);
    std::vector<Operand> ends(before.begin(), before.end()), srcs(loads.begin(), loads.end());
    for (Operand& o : ends) {
      if (posts) o.channel = ends[0].channel;
    }
    twice.program.set_operands(op, ends, srcs);
  }
  CHECK(posting(twice) == apart);
  Posting exchanged = apart;
  exchanged.insert(exchanged.begin(), {StepKind::signal, false});
  CHECK(posting(exchange(ChannelKind::port)) == exchanged);  // the block meets between them
}

TEST_CASE("packets that ports send are distinguished from plain data beside packets") {
  const auto uses_of_rank_0 = [](TestProgram t) {
    FittedRank p(t, 0, 4096);
    BlockPrograms programs;
    REQUIRE(p.pack(programs));
    return programs.uses();
  };
  const uint32_t beside = uses_of_rank_0(two_shot_by_ports(4, PacketFormat::LL128));
  CHECK(beside == (device::uses_of(PacketFormat::LL128) | device::kUsesSums | device::kUsesProxy));
  const auto plan = std::ranges::find(op_plans(), "put_packets by port", &OpPlan::name);
  REQUIRE(plan != op_plans().end());
  const uint32_t sent = uses_of_rank_0(plan->build(PacketFormat::LL16));
  CHECK((sent & device::kUsesSentPackets) != 0);
}

TEST_CASE("copies that are no power of two are noted") {
  for (const uint32_t copies : {1, 2, 3, 4, 6, 8}) {
    INFO(copies << " copies");
    TestProgram t = one_shot(2, 4, PacketFormat::LL16, copies);
    FittedRank p(t, 0, 4096);
    BlockPrograms programs;
    REQUIRE(p.pack(programs));
    CHECK(((programs.uses() & device::kUsesCopies) != 0) == (copies == 3 || copies == 6));
  }
}

TEST_CASE("plain data that is not divided into 16 bytes is noted") {
  TestProgram t = two_shot(4);
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  CHECK((programs.uses() & device::kUsesUneven) == 0);
  p.fit_to_size(4096 + 4);
  REQUIRE(p.pack(programs));
  CHECK((programs.uses() & device::kUsesUneven) != 0);
  p.fit_to_size(4096);
  p.bases[0].address += 4;
  REQUIRE(p.pack(programs));
  CHECK((programs.uses() & device::kUsesUneven) != 0);
}

TEST_CASE("how the operands of sums lie is noted") {
  TestProgram t = two_shot(4);
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  const auto check = [&](uint32_t line, uint32_t shift) {
    REQUIRE(p.pack(programs));
    const auto* header = reinterpret_cast<const StepHeader*>(programs.data());
    CHECK(header->row_line == line);
    CHECK(header->row_shift == shift);
    CHECK(((programs.uses() & device::kUsesOdd) != 0) == (shift % 4 != 0));
  };
  const auto move = [&](uint64_t bytes) {
    for (BaseAddress& base : p.bases) base.address += bytes;
  };
  check(128, 0);
  move(36);
  check(128, 36);
  move(2);
  check(128, 38);
  move(2);
  p.bases[1].address += 16;
  check(16, 8);
  p.bases[1].address += 4;
  check(4, 0);
}

TEST_CASE("a copy ahead of an op that unpacks becomes one of its moves") {
  for (const PacketFormatInfo& row : packet_formats()) {
    const PacketFormat format = row.format;
    for (const bool sync : {false, true}) {
      INFO(static_cast<int>(format) << ", " << sync);
      TestProgram t = copy_and_unpack(format, sync);
      FittedRank p(t, 0, 4096);
      BlockPrograms programs;
      for (const uint64_t bytes : {32, 4096, 100000}) {
        p.fit_to_size(bytes);
        REQUIRE(p.pack(programs));
        uint32_t count = 0;
        const Steps steps = steps_of(programs, 0, count);
        if (sync || is_sentinel(format)) {
          CHECK(count == (sync ? 4 : 3));
          check_programs(p, programs);
          continue;
        }
        REQUIRE(count == 2);
        const Step& both = steps.steps[1];
        CHECK(both.kind == StepKind::move_packets);
        REQUIRE(both.count == 2);
        const device::StepOperand* operands = steps.operands + both.first;
        CHECK(operands[0].address == p.bases[2].address);  // output
        CHECK(operands[1].address == p.bases[1].address);  // input
        CHECK(operands[1].flags == 0);
        CHECK(operands[3].flags == device::kPackets);
      }
    }
  }
}

TEST_CASE("a copy at the end of a block goes beside the packets that the block sends before it") {
  struct Case {
    uint32_t ranks;
    PacketFormat format;
    bool same, more;
    uint32_t steps, count, dsts;  ///< of the first step
  };
  for (const Case& c : {Case{2, PacketFormat::LL16, true, false, 1, 1, 2},
                        Case{2, PacketFormat::LL128, false, false, 1, 2, 1},
                        Case{4, PacketFormat::LL16, true, false, 1, 1, 4},
                        Case{4, PacketFormat::LL16, false, false, 2, 1, 3},
                        Case{2, PacketFormat::LL16, true, true, 3, 1, 1},
                        Case{2, PacketFormat::sentinel, true, false, 2, 1, 1}}) {
    INFO(c.ranks << " ranks, " << static_cast<int>(c.format) << ", " << c.same << c.more);
    TestProgram t = put_and_copy(c.ranks, c.format, c.same, c.more);
    FittedRank p(t, 0, 4096);
    BlockPrograms programs;
    for (const uint64_t bytes : {32, 4096, 100000}) {
      p.fit_to_size(bytes);
      REQUIRE(p.pack(programs));
      uint32_t count = 0;
      const Steps steps = steps_of(programs, 0, count);
      REQUIRE(count == c.steps);
      const Step& first = steps.steps[0];
      CHECK(first.kind == StepKind::move_packets);
      CHECK(first.count == c.count);
      CHECK(first.dsts == c.dsts);
      if (c.steps != 1) continue;
      const device::StepOperand* last =
          steps.operands + first.first + first.count * (first.dsts + 1);
      CHECK(last[-1].address == p.bases[1].address + (c.same ? 0 : bytes / 2));
      CHECK(last[-2].address == p.bases.back().address);  // output
      CHECK(last[-2].flags == 0);
      CHECK(((last[-3].flags & device::kPackets) != 0) == c.same);
    }
  }
}

TEST_CASE("a put through a port ahead of an op that unpacks stays a step, as the proxy does it") {
  TestProgram t(2, 2);
  connect_all(t, ChannelKind::memory);
  connect_all(t, ChannelKind::port, "net");
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
    add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::put, {far(1, kOutput, 0)}, {local(kInput, 1)});
    add_op(t, r, 0, OpKind::unpack_packets, {local(kOutput, 1)}, {local(inbox, 0)});
  }
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(p.pack(programs));
  uint32_t count = 0;
  const Steps steps = steps_of(programs, 0, count);
  REQUIRE(count == 3);
  CHECK(steps.steps[1].kind == StepKind::copy);
  CHECK((steps.steps[1].flags & device::kPosts) != 0);
  check_programs(p, programs);
}

TEST_CASE("packets that 32 bits do not count are noted") {
  TestProgram t = one_shot(2, 1, PacketFormat::LL128);
  constexpr uint64_t kLine = 120;
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  for (const uint64_t lines : {device::kMaxShort, device::kMaxShort + 1, uint64_t{1} << 33}) {
    INFO(lines << " lines");
    p.fit_to_size(lines * kLine);
    REQUIRE(p.pack(programs));
    CHECK(((programs.uses() & device::kUsesLong) != 0) == (lines > device::kMaxShort));
  }
}

TEST_CASE("programs can be made longer than they are") {
  TestProgram t = two_shot(2);
  FittedRank p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(p.pack(programs, 5000));
  CHECK(programs.stride() == 5008);
}

}  // namespace
}  // namespace mscclc
