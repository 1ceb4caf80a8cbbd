// The tables of ops, data types, packet formats: complete and consistent.
#include "ir/ops/ops.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "ir/ops/summations.h"

using namespace mscclc;

TEST_CASE("every wire name of MSCCL++'s format is found") {
  constexpr std::string_view kPeer[] = {
      "nop",    "barrier",   "signal", "wait",     "rlxsignal",   "rlxwait",    "flush",  "put",
      "pws",    "pwsf",      "get",    "copy",     "re",          "res",        "rre",    "rres",
      "cpkt",   "upkt",      "ppkt",   "rppkt",    "repkt",       "respkt",     "recpkt", "recspkt",
      "gstore", "gstorepkt", "glres",  "pipeline", "sem_acquire", "sem_release"};
  STATIC_REQUIRE(std::size(kPeer) == 30);
  for (const std::string_view wire : kPeer) {
    bool relaxed = false;
    const auto kind = find_wire_op(wire, relaxed);
    INFO(wire);
    REQUIRE(kind);
    CHECK((relaxed ? info(*kind).relaxed : info(*kind).wire) == wire);
    CHECK(relaxed == wire.starts_with("rlx"));
  }
  bool relaxed = false;
  CHECK_FALSE(find_wire_op("glre", relaxed));
  CHECK_FALSE(find_wire_op("", relaxed));
}

TEST_CASE("rows are found by name and by kind, names are unique") {
  std::set<std::string_view> names, wires;
  for (const OpInfo& op : op_table()) {
    CHECK(find_op(op.name) == op.kind);
    CHECK(info(op.kind).name == op.name);
    CHECK(names.insert(op.name).second);
    if (!op.wire.empty()) CHECK(wires.insert(op.wire).second);
    CHECK_FALSE(op.summary.empty());
    CHECK_FALSE(op.summary.ends_with('.'));
  }
  CHECK_FALSE(find_op("putt"));
}

TEST_CASE("fusions name their parts") {
  for (const OpInfo& op : op_table()) {
    std::string_view rest = op.made_of;
    int parts = 0;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      INFO(op.name << " is made of " << rest.substr(0, end));
      CHECK(find_op(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++parts;
    }
    CHECK(parts != 1);
  }
}

TEST_CASE("slots parse as they are written") {
  const OpInfo& recspkt = info(OpKind::reduce_copy_send_packets);
  REQUIRE(recspkt.dsts.count == 3);
  CHECK(recspkt.dsts.slot[0].kind == SlotKind::local);
  CHECK_FALSE(recspkt.dsts.slot[0].packets);
  CHECK(recspkt.dsts.slot[1].packets);
  CHECK(recspkt.dsts.slot[2].kind == SlotKind::remote);
  CHECK(recspkt.dsts.slot[2].packets);
  CHECK(recspkt.dsts.slot[2].many);
  REQUIRE(recspkt.srcs.count == 2);
  CHECK(recspkt.srcs.slot[0].floating);
  CHECK_FALSE(recspkt.srcs.slot[0].packets);

  const OpInfo& ppkt = info(OpKind::put_packets);
  CHECK(ppkt.srcs.slot[0].pairwise);
  CHECK(ppkt.srcs.slot[0].port_packets);
  CHECK_FALSE(ppkt.srcs.slot[0].packets);
  CHECK(info(OpKind::sync).dsts.count == 0);
  CHECK_FALSE(info(OpKind::sync).moves_data());
  CHECK(info(OpKind::put).moves_data());
  CHECK_FALSE(info(OpKind::signal).moves_data());
}

TEST_CASE("operands fall into slots") {
  const Slots& sources = info(OpKind::reduce_packets).srcs;
  CHECK(&sources.of(0, true) == &sources.slot[1]);
  CHECK(&sources.of(2, false) == &sources.slot[0]);
  const Slots& destinations = info(OpKind::reduce_copy_send_packets).dsts;
  CHECK(&destinations.of(1, true) == &destinations.slot[1]);
  CHECK(&destinations.of(5, true) == &destinations.slot[2]);
}

TEST_CASE("shapes of rows agree with what the op does") {
  for (const OpInfo& op : op_table()) {
    INFO(op.name);
    const auto uses = [&op](SlotKind kind) {
      for (const Slots* side : {&op.dsts, &op.srcs}) {
        for (const Slot& slot : *side) {
          if (slot.kind == kind) return true;
        }
      }
      return false;
    };
    const bool far = uses(SlotKind::remote) || uses(SlotKind::channel);
    CHECK(far == ((op.channels & (kMemory | kPort)) != 0));
    CHECK(uses(SlotKind::switched) == ((op.channels & kSwitch) != 0));
    CHECK((op.cost == CostClass::kControl) == !op.moves_data());
    if (!op.relaxed.empty()) CHECK((op.has(kSignals) || op.has(kWaits)));
  }
}

TEST_CASE("data types by name and alias") {
  CHECK(find_dtype("bf16") == Dtype::bf16);
  CHECK(find_dtype("float") == Dtype::f32);
  CHECK(find_dtype("float8_e5m2") == Dtype::e5m2);
  CHECK_FALSE(find_dtype("float8"));
  CHECK_FALSE(find_dtype(""));
  for (const DtypeInfo& t : dtype_table()) {
    CHECK(find_dtype(t.name) == t.dtype);
    CHECK(info(t.accumulate).accumulate == t.accumulate);
  }
}

TEST_CASE("reductions, packet formats and channel kinds by name") {
  CHECK(find_reduce_op("avg") == ReduceOp::avg);
  CHECK_FALSE(find_reduce_op("call"));
  CHECK(find_packet_format("sentinel") == PacketFormat::sentinel);
  CHECK_FALSE(find_packet_format("none"));
  CHECK(find_channel_kind("switch") == ChannelKind::switch_);
  CHECK(name(ChannelKind::port) == "port");
  CHECK(bit(ChannelKind::switch_) == kSwitch);
}

TEST_CASE("summations are rows of a table") {
  CHECK(name(Summation::in_turn).empty());
  CHECK(summations().size() == 2);
  for (const SummationInfo& row : summations()) {
    INFO(row.name);
    CHECK(&info(row.summation) == &row);
    CHECK(find_summation(row.name) == row.summation);
    CHECK(row.most_in_line < row.most_sources);
    CHECK_FALSE(row.summary.empty());
  }
  CHECK_FALSE(find_summation(""));
  CHECK_FALSE(find_summation("trees"));
}

TEST_CASE("packet formats are rows of a table") {
  CHECK(info(PacketFormat::LL128).data == 120);
  CHECK(info(PacketFormat::LL8).wire == 32);
  CHECK(name(PacketFormat::none) == "none");
  for (const PacketFormatInfo& row : packet_formats()) {
    INFO(row.name);
    CHECK(&info(row.format) == &row);
    CHECK(find_packet_format(row.name) == row.format);
    CHECK(row.data <= row.wire);
    CHECK(row.whole <= row.wire);
    CHECK((row.wire % 16 == 0 && row.wire % row.store == 0));
    CHECK(is_sentinel(row.format) == (row.mark == PacketMark::sentinel));
    CHECK_FALSE(row.summary.empty());
  }
}
