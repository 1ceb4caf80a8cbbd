// One test per rule: a program with a single mistake, and the message about it.
#include "ir/verify/verify.h"

#include <catch2/catch.hpp>
#include <functional>

#include "ir/ops/trees.h"
#include "ir/report/summations.h"
#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::testing;

namespace {

/// Two ranks: a plain and two packet buffers each, channels of all kinds, everything paired.
struct Fixture : TestProgram {
  static constexpr uint32_t kScratch = 2, kLl16 = 3, kSentinel = 4;
  static constexpr uint32_t kMem = 0, kNet = 1, kSw = 2;
  Fixture() : TestProgram(2, 4) {
    for (const uint32_t r : {0u, 1u}) {
      buffer(r, "scratch", 4);
      buffer(r, "inbox", 4, PacketFormat::LL16);
      buffer(r, "slots", 4, PacketFormat::sentinel);
      channel(r, ChannelKind::memory, "ch", {1 - r}, 1 - r, kMem);
      channel(r, ChannelKind::port, "net", {}, 1 - r, kNet);
      switch_channel(r, "sw", {0, 1});
      semaphore(r, "done", {});
      program.ranks[r].blocks = 2;
    }
    program.loops = {{512, 1}};
    program.files = {"a.mscl"};
  }
};

/// What verify_structure says about the fixture after `change`.
std::string said(const std::function<void(Fixture&)>& change) {
  Fixture f;
  change(f);
  Diagnostics diagnostics;
  const bool good = verify_structure(f.program, diagnostics);
  CHECK(good == !diagnostics.has_errors());
  return render_text(diagnostics, Sources());
}

/// The same about one op of rank 0, without the note that repeats the op.
std::string said_of(
    OpKind kind, std::initializer_list<Operand> dsts, std::initializer_list<Operand> srcs = {},
    const std::function<void(Op&)>& change = [](Op&) {}) {
  std::string text = said([&](Fixture& f) { change(f.op_in(0, 0, kind, dsts, srcs)); });
  return text.substr(0, text.find('\n'));
}

constexpr uint32_t kScratch = Fixture::kScratch, kLl16 = Fixture::kLl16;
constexpr uint32_t kSentinel = Fixture::kSentinel;
constexpr uint32_t kMem = Fixture::kMem, kNet = Fixture::kNet, kSw = Fixture::kSw;

Op& copy_in(Fixture& f, uint32_t block) {
  return f.op_in(0, block, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
}

}  // namespace

TEST_CASE("right programs pass") {
  CHECK(said([](Fixture&) {}).empty());
  CHECK(said([](Fixture& f) {
          Op& op = copy_in(f, 1);
          op.loop = 0;
          op.part = 1;
          op.parts = 2;
          f.located(op, f.site(0, 3, 5, {"r"}), {0});
          f.op_in(0, 0, OpKind::signal, {end_of(kMem), end_of(kMem)}).relaxed = true;
          f.op_in(0, 0, OpKind::flush, {end_of(kNet)});
          f.op_in(0, 0, OpKind::release, {id(0)});
          f.op_in(0, 0, OpKind::barrier, {id(0), id(1)});
          f.op_in(0, 0, OpKind::sync, {});
          f.op_in(0, 0, OpKind::put_packets, {far(kNet, kLl16, 1)}, {local(kLl16, 0)});
          f.op_in(0, 0, OpKind::put_packets, {far(kMem, kLl16, 1)}, {local(kInput, 0)});
          f.op_in(0, 0, OpKind::reduce_packets, {local(kOutput, 2)},
                  {local(kLl16, 0), local(kInput, 2), local(kLl16, 1)})
              .complete = true;
          f.op_in(0, 0, OpKind::switch_reduce, {local(kOutput, 1)}, {far(kSw, kInput, 1)});
          f.op_in(0, 0, OpKind::get, {local(kScratch, 0), local(kOutput, 1)},
                  {far(kMem, kInput, 3), far(kMem, kInput, 1)});
        }).empty());
}

TEST_CASE("an error shows the place, the loop values, the op and where it runs") {
  CHECK(said([](Fixture& f) {
          Op& op = f.op_in(0, 1, OpKind::copy, {local(kOutput, 3, 2)}, {local(kInput, 0, 2)});
          f.located(op, f.site(0, 18, 5, {"r", "c"}), {0, 3});
        }) ==
        "a.mscl:18:5: error: 'output[3..5]' is outside 'output', which has 4 chunks\n"
        "a.mscl:18:5: note: when r = 0, c = 3\n"
        "a.mscl:18:5: note: in 'copy output[3..5] <- input[0..2]' (rank 0, tb 1)\n");
}

TEST_CASE("number of operands") {
  CHECK(said_of(OpKind::copy, {local(kOutput, 0)}) == "error: 'copy' takes 1 source; found 0");
  CHECK(said_of(OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0)}) ==
        "error: 'reduce' takes at least 2 sources; found 1");
  CHECK(said_of(OpKind::put, {far(kMem, kScratch, 0), far(kMem, kScratch, 1)},
                {local(kInput, 0), local(kInput, 1), local(kInput, 2)}) ==
        "error: 2 destinations, 3 sources");
  CHECK(said_of(OpKind::put, {}) == "error: 'put' needs a destination");
  CHECK(said_of(OpKind::signal, {}) == "error: 'signal' takes at least 1 operand; found 0");
  CHECK(said_of(OpKind::reduce_packets, {local(kOutput, 0)}, {local(kLl16, 0), local(kLl16, 1)}) ==
        "error: 'reduce_packets' takes one source that is not in packets; found 0");
}

TEST_CASE("reach and channels") {
  CHECK(said_of(OpKind::copy, {far(kMem, kOutput, 0)}, {local(kInput, 0)}) ==
        "error: 'copy' takes a chunk of this rank where 'ch[1].output[0]' stands");
  CHECK(said_of(OpKind::put, {local(kOutput, 0)}, {local(kInput, 0)}) ==
        "error: 'put' takes a chunk through a channel where 'output[0]' stands");
  CHECK(said_of(OpKind::get, {local(kOutput, 0)}, {far(kNet, kInput, 0)}) ==
        "error: 'get' needs a memory channel, 'net' is a port");
  CHECK(said_of(OpKind::put, {far(kSw, kOutput, 0)}, {local(kInput, 0)}) ==
        "error: 'put' needs a memory or port channel, 'sw' is a switch");
  CHECK(said_of(OpKind::flush, {end_of(kMem)}) ==
        "error: 'flush' needs a port channel, 'ch[1]' is a memory");
  CHECK(said_of(OpKind::signal, {end_of(kMem), end_of(kNet)}) ==
        "error: the channels of one op must be of one kind");
  CHECK(said([](Fixture& f) {
          f.program.ranks[1].buffers[kScratch].name = f.program.intern("other");
          f.op_in(0, 0, OpKind::switch_broadcast, {far(kSw, kScratch, 0)}, {local(kInput, 0)});
        }) ==
        "error: 'scratch' is not the same on rank 1\n"
        "note: in 'switch_broadcast sw.scratch[0] <- input[0]' (rank 0, tb 0)\n");

  // Addresses there are made as they are here: all of the layout is the same.
  const auto differs = [](const std::function<void(Buffer&)>& change) {
    return said([&](Fixture& f) {
      change(f.program.ranks[1].buffers[kScratch]);
      f.op_in(0, 0, OpKind::switch_broadcast, {far(kSw, kScratch, 0)}, {local(kInput, 0)});
    });
  };
  CHECK(differs([](Buffer&) {}) == "");
  for (const std::string& said :
       {differs([](Buffer& b) { b.copies = 2; }), differs([](Buffer& b) { b.units = 2; }),
        differs([](Buffer& b) { b.unit = 512; }),
        differs([](Buffer& b) { b.packets = PacketFormat::LL16; })}) {
    CHECK(said.starts_with("error: 'scratch' is not the same on rank 1\n"));
  }
  // Rows of different lengths begin elsewhere, however many chunks there are.
  CHECK(said([](Fixture& f) {
          f.program.contract = Contract();
          f.program.contract.kind = CollectiveKind::alltoallv;
          f.program.contract.ranks = 2;
          f.program.contract.counts = {1, 3, 3, 1};
          f.op_in(0, 0, OpKind::switch_broadcast, {far(kSw, kOutput, 0)}, {local(kScratch, 0)});
        }).starts_with("error: 'output' is not the same on rank 1\n"));
}

TEST_CASE("chunks") {
  CHECK(said_of(OpKind::copy, {local(kOutput, 4)}, {local(kInput, 0)}) ==
        "error: 'output[4]' is outside 'output', which has 4 chunks");
  CHECK(said_of(OpKind::copy, {local(kOutput, 0, 0)}, {local(kInput, 0)}) ==
        "error: an empty range of 'output'");
  CHECK(said_of(OpKind::copy, {local(kScratch, 0)}, {local(kInput, 0, 4)}) ==
        "error: 1 chunk <- 4 chunks");
  CHECK(said_of(OpKind::put, {far(kMem, kScratch, 0), far(kMem, kScratch, 0, 2)},
                {local(kInput, 0), local(kInput, 2)}) == "error: 1 chunk and 2 chunks");
  CHECK(said_of(OpKind::copy, {local(kOutput, 3)}, {local(kInput, 0)}) ==
        "error: 'output[3]' and 'input[0]' differ in size when the message does not divide");
  CHECK(said_of(OpKind::put, {far(kMem, kScratch, 0), far(kMem, kOutput, 1)},
                {local(kInput, 3), local(kInput, 2)}) ==
        "error: 'ch[1].output[1]' and 'input[2]' differ in size when the message does not divide");
}

TEST_CASE("the input is written only in place") {
  const auto said_where = [](InPlace in_place, bool foreign) {
    return said([&](Fixture& f) {
      f.program.contract.in_place = in_place;
      f.program.foreign = foreign;
      f.op_in(0, 0, OpKind::put, {far(kMem, kInput, 0)}, {local(kScratch, 0)});
    });
  };
  const auto refused = [&](InPlace in_place, bool foreign) {
    return said_where(in_place, foreign).find("'input' may be written only with 'inplace: true'") !=
           std::string::npos;
  };
  CHECK(refused(InPlace::either, false));
  CHECK(refused(InPlace::either, true));
  CHECK(refused(InPlace::no, false));
  // What a plan of MSCCL++ does to the input out of place is its own affair.
  CHECK_FALSE(refused(InPlace::no, true));
  CHECK_FALSE(refused(InPlace::yes, false));
}

TEST_CASE("packets") {
  CHECK(said_of(OpKind::copy, {local(kOutput, 0)}, {local(kLl16, 0)}) ==
        "error: 'inbox' holds packets; 'copy' takes none there");
  CHECK(said_of(OpKind::copy_packets, {local(kScratch, 0)}, {local(kInput, 0)}) ==
        "error: 'scratch' holds no packets; 'copy_packets' needs them");
  CHECK(said_of(OpKind::put_packets, {far(kNet, kLl16, 0)}, {local(kInput, 0)}) ==
        "error: 'input' holds no packets; 'put_packets' needs them");
  CHECK(said_of(OpKind::put_packets, {far(kMem, kLl16, 0)}, {local(kLl16, 0)}) ==
        "error: 'inbox' holds packets; 'put_packets' takes none there");
  CHECK(said_of(OpKind::read_put_packets, {far(kMem, kLl16, 0)}, {local(kSentinel, 0)}) ==
        "error: LL16 packets and sentinel packets in one op");
}

TEST_CASE("no op takes from a sentinel slot and stores into it") {
  const auto kept = [](Operand to, Operand from, const std::function<void(Op&)>& change) {
    return said_of(OpKind::reduce_copy_packets, {local(kScratch, 0, to.count), to},
                   {local(kInput, 0, to.count), from}, change);
  };
  const auto none = [](Op&) {};
  CHECK(
      said([](Fixture& f) {
        f.op_in(0, 0, OpKind::reduce_copy_packets, {local(kScratch, 0), local(kSentinel, 1)},
                {local(kInput, 0), local(kSentinel, 1)});
      }) ==
      "error: 'reduce_copy_packets' takes from 'slots[1]' and stores into 'slots[1]': machines may "
      "empty the slot before they store or after\n"
      "note: in 'reduce_copy_packets scratch[0], slots[1] <- input[0], slots[1]' (rank 0, tb 0)\n"
      "note: write two ops, one that takes from the slot and one that stores into it\n");
  CHECK(kept(local(kSentinel, 2), local(kSentinel, 1), none).empty());
  CHECK(kept(local(kLl16, 1), local(kLl16, 1), none)
            .empty());  // the flag is the same, before and after
  CHECK(kept(local(kSentinel, 1, 2), local(kSentinel, 0, 2), none)
            .starts_with("error: 'reduce_copy_packets' takes from 'slots[0..2]' and stores into "
                         "'slots[1..3]'"));
  // Halves of ranges that lie half a range apart have no byte in common, thirds less.
  const auto half = [](Op& op) { op.part = 1, op.parts = 2; };
  CHECK(kept(local(kSentinel, 1, 2), local(kSentinel, 0, 2), half).empty());
  CHECK_FALSE(kept(local(kSentinel, 1), local(kSentinel, 1), half).empty());
  CHECK_FALSE(kept(local(kSentinel, 1, 3), local(kSentinel, 0, 3), half).empty());
  // So have the halves of a group.
  CHECK(said([](Fixture& f) {
          f.program.groups.push_back(f.program.append(std::vector<int64_t>{0, 1}));
          Op& op = f.op_in(0, 0, OpKind::reduce_copy_packets,
                           {local(kScratch, 0, 2), local(kSentinel, 1, 2)},
                           {local(kInput, 0, 2), local(kSentinel, 0, 2)});
          op.block = kNone;
          op.group = 0;
        }).empty());
  // A switch stores here, too.
  CHECK(said_of(OpKind::switch_broadcast_packets, {far(kSw, kSentinel, 0)}, {local(kSentinel, 0)})
            .starts_with("error: 'switch_broadcast_packets' takes from 'slots[0]' and stores into "
                         "'sw.slots[0]'"));
  CHECK(said_of(OpKind::switch_broadcast_packets, {far(kSw, kSentinel, 1)}, {local(kSentinel, 0)})
            .empty());
  // At a far end it is another slot.
  CHECK(
      said_of(OpKind::read_put_packets, {far(kMem, kSentinel, 0)}, {local(kSentinel, 0)}).empty());
}

TEST_CASE("no op takes from a sentinel slot twice") {
  CHECK(said([](Fixture& f) {
          f.op_in(0, 0, OpKind::reduce_packets, {local(kScratch, 0)},
                  {local(kSentinel, 1), local(kInput, 0), local(kSentinel, 1)});
        }) ==
        "error: 'reduce_packets' takes from 'slots[1]' and from 'slots[1]': the first to read a "
        "sentinel slot empties it, and the second waits forever\n"
        "note: in 'reduce_packets scratch[0] <- slots[1], input[0], slots[1]' (rank 0, tb 0)\n"
        "note: take from the slot once, into a chunk of scratch, and use that twice\n");
  CHECK(said_of(OpKind::unpack_packets, {local(kScratch, 0), local(kScratch, 1)},
                {local(kSentinel, 0), local(kSentinel, 0)})
            .starts_with("error: 'unpack_packets' takes from 'slots[0]' and from 'slots[0]'"));
  CHECK(said_of(OpKind::unpack_packets, {local(kScratch, 0), local(kScratch, 1)},
                {local(kLl16, 0), local(kLl16, 0)})
            .empty());
  CHECK(
      said_of(OpKind::reduce_packets, {local(kScratch, 0, 2)},
              {local(kInput, 0, 2), local(kSentinel, 1, 2), local(kSentinel, 0, 2)})
          .starts_with("error: 'reduce_packets' takes from 'slots[1..3]' and from 'slots[0..2]'"));
}

TEST_CASE("no two moves of an op store into the same chunks") {
  CHECK(said([](Fixture& f) {
          f.op_in(0, 0, OpKind::put,
                  {far(kMem, kScratch, 2), far(kMem, kScratch, 1), far(kMem, kScratch, 2)},
                  {local(kInput, 0), local(kInput, 1), local(kInput, 2)});
        }) ==
        "error: two moves of one 'put' store into the same chunks, 'ch[1].scratch[2]' and "
        "'ch[1].scratch[2]': which of them is last is not certain\n"
        "note: in 'put ch[1].scratch[2], ch[1].scratch[1], ch[1].scratch[2] <- input[0], input[1], "
        "input[2]' (rank 0, tb 0)\n"
        "note: leave out one of them, or write two ops\n");
  const auto moved = [](Operand a, Operand b) {
    return said_of(OpKind::get, {a, b}, {far(kMem, kScratch, 0), far(kMem, kScratch, 1)});
  };
  CHECK(moved(local(kScratch, 0), local(kScratch, 1)).empty());
  CHECK_FALSE(moved(local(kScratch, 1), local(kScratch, 1)).empty());
  CHECK(moved(local(kOutput, 0), local(kScratch, 0)).empty());
  // Input and output coincide for certain if the contract says so; else the input is not written.
  for (const InPlace in_place : {InPlace::either, InPlace::no, InPlace::yes}) {
    const std::string found = said([&](Fixture& f) {
      f.program.contract.in_place = in_place;
      f.op_in(0, 0, OpKind::unpack_packets, {local(kOutput, 1), local(kInput, 1)},
              {local(kLl16, 0), local(kLl16, 1)});
    });
    const bool coincide = found.find("store into the same chunks") != std::string::npos;
    CHECK(coincide == (in_place == InPlace::yes));
    CHECK_FALSE(found.empty());
  }
}

TEST_CASE("lines do not go through ports") {
  const auto sent_as = [](PacketFormat format) {
    return said([&](Fixture& f) {
      for (Rank& rank : f.program.ranks) rank.buffers[kLl16].packets = format;
      f.op_in(0, 0, OpKind::put_packets, {far(kNet, kLl16, 1)}, {local(kLl16, 0)});
    });
  };
  CHECK(sent_as(PacketFormat::LL8).empty());
  CHECK(sent_as(PacketFormat::sentinel).empty());
  CHECK(sent_as(PacketFormat::LL128)
            .find("error: 'inbox' holds LL128 packets, whose lines a port does not keep whole; "
                  "LL8, LL16 and sentinel go through ports") != std::string::npos);
}

TEST_CASE("flags") {
  const auto copy_with = [](const std::function<void(Op&)>& change) {
    return said_of(OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)}, change);
  };
  CHECK(copy_with([](Op& op) { op.relaxed = true; }) ==
        "error: 'relaxed' cannot be combined with 'copy'");
  CHECK(copy_with([](Op& op) { op.reduce = ReduceOp::max; }) ==
        "error: 'op' cannot be combined with 'copy'");
  CHECK(copy_with([](Op& op) { op.complete = true; }) ==
        "error: 'complete' cannot be combined with 'copy'");
  CHECK(copy_with([](Op& op) { op.summation = Summation::tree; }) ==
        "error: 'tree' cannot be combined with 'copy'");
  CHECK(copy_with([](Op& op) { op.part = op.parts = 2; }) == "error: part 2 of 2");
  CHECK(said_of(OpKind::sync, {}, {}, [](Op& op) { op.parts = 2; }) ==
        "error: 'part' cannot be combined with 'sync'");
}

TEST_CASE("trees") {
  const auto tree = [](Op& op) { op.summation = Summation::tree; };
  CHECK(said_of(OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(kScratch, 0)}, tree)
            .empty());
  const std::string at_switch =
      "'switch_reduce' cannot be a 'tree': a switch adds up in an order of its own; 'read_reduce' "
      "reads "
      "the chunks of its ranks";
  CHECK(said_of(OpKind::switch_reduce, {local(kOutput, 1)}, {far(kSw, kInput, 1)}, tree) ==
        "error: " + at_switch);
  const auto fault = [](size_t sources) {
    return summation_fault(info(OpKind::reduce), Summation::tree, ReduceOp::call, sources);
  };
  CHECK(!fault(kMaxTreeSources));
  CHECK(
      fault(kMaxTreeSources + 1) ==
      "a 'tree' of 129 sources, where an op takes 128: add up 128 at a time, and then their sums");
}

TEST_CASE("exact sums") {
  const auto exact = [](Op& op) { op.summation = Summation::exact; };
  CHECK(said_of(OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(kScratch, 0)}, exact)
            .empty());
  CHECK(said_of(OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)}, exact) ==
        "error: 'exact' cannot be combined with 'copy'");
  CHECK(
      said_of(OpKind::switch_reduce, {local(kOutput, 1)}, {far(kSw, kInput, 1)}, exact) ==
      "error: 'switch_reduce' cannot be an 'exact' sum: a switch rounds as it likes; 'read_reduce' "
      "reads the chunks of its ranks");
  const auto fault = [](ReduceOp reduce, size_t sources) {
    return summation_fault(info(OpKind::reduce), Summation::exact, reduce, sources);
  };
  CHECK(!fault(ReduceOp::call, 4096));
  CHECK(!fault(ReduceOp::max, 3));
  CHECK(fault(ReduceOp::prod, 3) ==
        "no product is 'exact': leave the option out, or multiply two at a time");
  CHECK(fault(ReduceOp::sum, 4097) ==
        "an 'exact' sum of 4097 sources, where an op takes 4096: its parts would be rounded, so "
        "there is no other");
}

TEST_CASE("pipelines") {
  CHECK(said_of(OpKind::copy, {local(kOutput, 0, 2)}, {local(kInput, 0, 2)},
                [](Op& op) { op.loop = 0; }) == "error: 2 chunks in a pipeline over 1");
  CHECK(said_of(OpKind::unpack_packets, {local(kOutput, 0)}, {local(kLl16, 0)},
                [](Op& op) { op.loop = 0; }) == "error: packets inside a pipeline");
  CHECK(said([](Fixture& f) { f.program.loops[0].unit = 1000; }) ==
        "error: 'unit' 1000 is not a positive multiple of 16\n");
}

TEST_CASE("places") {
  CHECK(said_of(OpKind::sync, {}, {}, [](Op& op) { op.block = 7; }) == "error: rank 0 has no tb 7");
  CHECK(said_of(OpKind::barrier, {id(0), id(9)}) == "error: rank 0 has no tb 9");
  CHECK(said_of(OpKind::barrier, {id(0), id(0)}) == "error: tb 0 appears twice in the barrier");
  CHECK(said_of(OpKind::barrier, {id(1)}) == "error: tb 0 is not one of the barrier's blocks");
  const auto shared = [](uint32_t block) {
    return said([&](Fixture& f) {
      const Op first = f.op_in(0, 0, OpKind::barrier, {id(1), id(0)});
      Op& second = f.op_in(0, block, OpKind::barrier, {id(0)});
      second.operands = first.operands;
      second.dsts = first.dsts;
    });
  };
  CHECK(shared(1).empty());
  CHECK(shared(2).starts_with("error: tb 2 is not one of the barrier's blocks\n"));
  const auto grouped = [](std::vector<int64_t> blocks, uint32_t block) {
    return said([&](Fixture& f) {
      f.program.groups.push_back(f.program.append(blocks));
      Op& op = copy_in(f, 0);
      op.block = block;
      op.group = 0;
    });
  };
  CHECK(grouped({0, 1}, kNone).empty());
  CHECK(grouped({}, kNone).starts_with("error: an empty group\n"));
  CHECK(grouped({0, 0}, kNone) ==
        "error: tb 0 appears twice in the group\n"
        "note: in 'copy output[0] <- input[0]' (rank 0, group [0, 0])\n");
  CHECK(grouped({0, 2}, kNone).starts_with("error: rank 0 has no tb 2\n"));
  CHECK(grouped({0, 1}, 1).starts_with("error: the op is placed both in a block and in a group\n"));
}

TEST_CASE("split programs are sorted by block, loops in one piece") {
  CHECK(said([](Fixture& f) {
          f.program.split = true;
          copy_in(f, 1);
          copy_in(f, 0);
        }).starts_with("error: the op comes after those of tb 1\n"));
  CHECK(said([](Fixture& f) {
          f.program.split = true;
          copy_in(f, 0).block = kNone;
        }).starts_with("error: an op of a plan must be in a thread block\n"));
  const auto loops = [](std::vector<std::pair<uint32_t, uint32_t>> ops) {
    return said([&](Fixture& f) {
      f.program.split = true;
      for (const auto& [block, loop] : ops) copy_in(f, block).loop = loop;
    });
  };
  CHECK(loops({{0, 0}, {0, 0}, {0, kNone}, {1, 0}, {1, kNone}}).empty());
  CHECK(loops({{0, 0}, {1, 0}}).empty());
  CHECK(loops({{1, 0}, {1, kNone}, {1, 0}})
            .starts_with("error: the pipeline was left and is entered again\n"));
}

TEST_CASE("channels and their other ends") {
  const auto changed = [](const std::function<void(Channel&)>& change) {
    return said([&](Fixture& f) { change(f.program.ranks[0].channels[kMem]); });
  };
  CHECK(changed([](Channel& c) {
          c.peer = 7;
        }).starts_with("error: 'ch[1]' of rank 0 leads to rank 7, which does not exist\n"));
  CHECK(changed([](Channel& c) {
          c.peer = 0, c.partner = kNone;
        }).starts_with("error: 'ch[1]' of rank 0 leads to its own rank\n"));
  CHECK(changed([](Channel& c) {
          c.partner = 9;
        }).starts_with("error: 'ch[1]' of rank 0 has no other end on rank 1\n"));
  CHECK(changed([](Channel& c) { c.partner = kNet; })
            .starts_with("error: 'ch[1]' of rank 0 is a memory channel; its other end, 'net' of "
                         "rank 1, is a port\n"));
  CHECK(changed([](Channel& c) { c.partner = kNone; }) ==
        "error: 'ch[0]' of rank 1 ends at 'ch[1]' of rank 0, which ends elsewhere\n");
}

TEST_CASE("switches") {
  const auto with_group = [](std::vector<int64_t> group) {
    return said(
        [&](Fixture& f) { f.program.ranks[0].channels[kSw].group = f.program.append(group); });
  };
  CHECK(
      with_group({0, 2}).starts_with("error: 'sw' of rank 0 lists rank 2, which does not exist\n"));
  CHECK(with_group({1}).find("error: 'sw' of rank 0 does not list its own rank\n") !=
        std::string::npos);
  CHECK(with_group({0, 0}).find("error: 'sw' of rank 0 lists rank 0 twice\n") != std::string::npos);
  CHECK(with_group({1, 0}) ==
        "error: 'sw' of rank 0 lists rank 1, which has no switch channel of the same ranks\n"
        "error: 'sw' of rank 1 lists rank 0, which has no switch channel of the same ranks\n");
}

TEST_CASE("names and buffers of a rank") {
  CHECK(said([](Fixture& f) { f.buffer(0, "inbox", 1); }) ==
        "error: 'inbox' of rank 0 is declared twice\n");
  CHECK(said([](Fixture& f) { f.buffer(0, "done", 1); }) ==
        "error: 'done' of rank 0 is declared twice\n");
  CHECK(said([](Fixture& f) { f.semaphore(0, "done", {}); }) ==
        "error: 'done' of rank 0 is declared twice\n");
  CHECK(said([](Fixture& f) { f.semaphore(0, "done", {1}); }).empty());
  CHECK(said([](Fixture& f) { f.program.ranks[1].buffers[kScratch].copies = 0; }) ==
        "error: 'scratch' of rank 1 has 0 copies\n");
  CHECK(said([](Fixture& f) { f.program.ranks[1].buffers[kInput].chunks = 3; }) ==
        "error: 'input' of rank 1 has 3 chunks, the contract says 4\n");
  CHECK(said([](Fixture& f) { f.program.ranks[1].buffers[kInput].packets = PacketFormat::LL8; }) ==
        "error: 'input' of rank 1 cannot hold packets\n");
  CHECK(said([](Fixture& f) { f.program.ranks[1].buffers[kScratch].kind = BufferKind::input; }) ==
        "error: 'scratch' of rank 1 is out of place\n");
  CHECK(said([](Fixture& f) { f.program.ranks[1].buffers.clear(); }) ==
        "error: rank 1 has no input and output\n");
}

TEST_CASE("contracts") {
  const auto with = [](const std::function<void(Program&)>& change) {
    return said([&](Fixture& f) { change(f.program); });
  };
  CHECK(with([](Program& p) { p.contract.ranks = 3; }) ==
        "error: the contract is about 3 ranks, the program has 2\n");
  CHECK(with([](Program& p) { p.contract.root = 2; }) == "error: root 2 is not a rank\n");
  CHECK(with([](Program& p) { p.contract.chunks = {0}; }) == "error: 'chunks' is 0\n");
  CHECK(with([](Program& p) {
          p.contract.chunks = {1, 2, 3};
        }) == "error: 'chunks' has more than two dimensions\n");
  CHECK(with([](Program& p) {
          p.contract.chunks = {1u << 20, 1u << 20};
        }) == "error: 'chunks' makes too many chunks\n");
  CHECK(with([](Program& p) { p.launch.threads = 33; }) ==
        "error: 'threads' is 33; a thread block has 32 to 1024, in whole warps\n");
  CHECK(with([](Program& p) { p.launch.threads = 2048; }) ==
        "error: 'threads' is 2048; a thread block has 32 to 1024, in whole warps\n");
  CHECK(with([](Program& p) { p.launch.align = 0; }) == "error: 'align' is 0\n");
  CHECK(with([](Program& p) {
          p.contract.kind = CollectiveKind::alltoallv;
          p.contract.counts = {1, 2, 3};
        }) == "error: 'counts' has 3 numbers; 2 ranks need 4\n");
  CHECK(with([](Program& p) {
          p.contract.kind = CollectiveKind::alltoallv;
          p.contract.counts = {1, 2, 3, -1};
        }) == "error: -1 in 'counts' is out of range\n");
  const auto promising = [&](std::vector<Promise> promises) {
    return with([&](Program& p) {
      p.contract.kind = CollectiveKind::custom;
      p.contract.input = p.contract.output = {4};
      p.contract.promises = std::move(promises);
    });
  };
  CHECK(promising({{{0, 1}, false, {{1, 3}}}, {{1, 0}, true, {{1, 3}, {0, 0}}}}).empty());
  CHECK(promising({{{0, 4}, false, {{1, 3}}}}) ==
        "error: 'ensure output[4] at 0' is outside the output\n");
  CHECK(promising({{{0, 1}, false, {{2, 3}}}}) ==
        "error: input[3] at 2 in 'ensure output[1] at 0' is outside the input\n");
  CHECK(promising({{{0, 1}, false, {}}}) == "error: 'ensure output[1] at 0' needs one input\n");
  CHECK(promising({{{0, 1}, false, {{1, 3}}}, {{0, 1}, false, {{1, 3}}}}) ==
        "error: two 'ensure' for output[1] at 0\n");
  CHECK(promising({{{1, 0}, false, {{1, 3}}}, {{0, 1}, false, {{1, 3}}}}) ==
        "error: 'ensure output[1] at 0' is not sorted by rank\n");
}

TEST_CASE("ids out of range are reported, not followed") {
  const auto op_with = [](const std::function<void(Op&)>& change) {
    const std::string text = said([&](Fixture& f) { change(copy_in(f, 0)); });
    return text.substr(0, text.find('\n'));
  };
  CHECK(op_with([](Op& op) { op.kind = OpKind::pipeline; }) == "error: a pipeline is not an op");
  CHECK(op_with([](Op& op) { op.operands = 99; }) == "error: the operands are missing");
  CHECK(op_with([](Op& op) { op.group = 3; }) == "error: the group is not declared");
  CHECK(op_with([](Op& op) { op.loop = 3; }) == "error: the pipeline is not declared");
  CHECK(op_with([](Op& op) {
          op.locations = {5, 1};
        }) == "error: 'copy' of rank 0: its locations are missing");
  CHECK(said_of(OpKind::acquire, {id(3)}) == "error: semaphore 3 is not declared");
  CHECK(said_of(OpKind::wait, {end_of(8)}) == "error: channel 8 is not declared");
  CHECK(said_of(OpKind::wait, {local(kInput, 0)}) == "error: a channel is missing");
  CHECK(said_of(OpKind::copy, {local(9, 0)}, {local(kInput, 0)}) ==
        "error: rank 0 has no buffer 9");
  CHECK(said_of(OpKind::put, {far(kMem, 9, 0)}, {local(kInput, 0)}) ==
        "error: rank 1 has no buffer 9");
  CHECK(said([](Fixture& f) {
          f.program.ranks[0].channels[0].label.keys = {9999, 1};
        }) == "error: names or keys of what rank 0 declares are missing\n");
  CHECK(said([](Fixture& f) {
          f.program.groups.push_back({9999, 1});
        }) == "error: the blocks of a group are missing\n");
}

TEST_CASE("of millions of faults some are reported") {
  Fixture f;
  for (int i = 0; i < 5000; ++i)
    f.op_in(0, 0, OpKind::copy, {local(kOutput, 4 + i)}, {local(0, 0)});
  Diagnostics diagnostics;
  CHECK_FALSE(verify_structure(f.program, diagnostics));
  CHECK(diagnostics.all().size() == 200);
}

TEST_CASE("sizes whose products do not fit are refused") {
  const auto with_units = [](uint32_t units, uint64_t unit) {
    return said([&](Fixture& f) {
      Buffer& buffer = f.program.ranks[0].buffers[kScratch];
      buffer.units = units;
      buffer.unit = unit;
    });
  };
  CHECK(with_units(2, 512) == "");
  CHECK(with_units(4, uint64_t{1} << 62).find("at most 1024 of") != std::string::npos);
  CHECK(with_units(65536, 512).find("at most 1024 of") != std::string::npos);
  CHECK(said([](Fixture& f) {
          f.program.loops[0].unit = uint64_t{1} << 62;
        }).find("is more than") != std::string::npos);
}

TEST_CASE("counts and chunks together make no more chunks than there can be") {
  const auto ragged = [](int64_t count, uint32_t chunks) {
    return said([&](Fixture& f) {
      f.program.contract.kind = CollectiveKind::alltoallv;
      f.program.contract.counts = {0, count, count, 0};
      f.program.contract.chunks = {chunks};
    });
  };
  CHECK(ragged(65536, 65536).find("too many chunks") != std::string::npos);
  CHECK(ragged(2, 4).find("too many chunks") == std::string::npos);
}
