#include "runtime/core/device/links.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr uint32_t kSlots = kFirstScratch;
constexpr uint32_t kMem = 0, kNet = 1, kSw = 2;

const Link kNvlink{LinkKind::nvlink, true, true, "by NVLink"};
const Link kPcie{LinkKind::pcie, true, false, "no native atomics"};

/// Two ranks with packets of a format and a channel of each kind.
TestProgram world(PacketFormat format) {
  TestProgram t(2, 2);
  t.program.split = true;
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, "slots", 2, format);
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, kMem);
    t.channel(r, ChannelKind::port, "net", {}, 1 - r, kNet);
    t.switch_channel(r, "sw", {0, 1});
  }
  return t;
}

/// What is said of rank 0's ops where `link` joins it to rank 1; "" if it is fine.
std::string said(const TestProgram& t, const Link& link) {
  Diagnostics diagnostics;
  const std::vector<Link> links = {Link{}, link};
  const bool fine = check_links(t.program, 0, links, diagnostics);
  const std::string text = render_text(diagnostics, Sources());
  CHECK(fine == text.empty());
  return text;
}

TEST_CASE("LL128 goes over NVLink, and not over PCIe") {
  TestProgram t = world(PacketFormat::LL128);
  t.op_in(0, 3, OpKind::put_packets, {far(kMem, kSlots, 0)}, {local(kInput, 0)});
  CHECK(said(t, kNvlink) == "");
  CHECK(said(t, Link{}) == "");
  CHECK(said(t, kPcie) ==
        "error: packets in LL128 from rank 0 to rank 1 need NVLink: elsewhere a line of 128 bytes "
        "may come in pieces (no native atomics)\n"
        "note: in 'put_packets ch.slots[0] <- input[0]' (rank 0, tb 3)\n"
        "note: use LL16 or LL8 there; 'mscclc select --links pcie' shows what the library takes\n");
}

TEST_CASE("LL128 of the rank's own, other packets and plain data go over any link") {
  TestProgram own = world(PacketFormat::LL128);
  own.op_in(0, 0, OpKind::copy_packets, {local(kSlots, 0)}, {local(kInput, 0)});
  own.op_in(0, 0, OpKind::put, {far(kMem, kOutput, 0)}, {local(kInput, 0)});
  own.op_in(0, 0, OpKind::signal, {end_of(kMem)});
  CHECK(said(own, kPcie) == "");
  for (const PacketFormatInfo& row : packet_formats()) {
    if (!row.goes_everywhere()) continue;
    TestProgram t = world(row.format);
    t.op_in(0, 0, OpKind::put_packets, {far(kMem, kSlots, 0)}, {local(kInput, 0)});
    CHECK(said(t, kPcie) == "");
  }
}

TEST_CASE("ports send LL128 over NVLink only, too") {
  TestProgram t = world(PacketFormat::LL128);
  t.op_in(0, 0, OpKind::read_put_packets, {far(kNet, kSlots, 0)}, {local(kSlots, 1)});
  CHECK(said(t, kNvlink) == "");
  CHECK(said(t, kPcie).find("packets in LL128 from rank 0 to rank 1 need NVLink") !=
        std::string::npos);
}

TEST_CASE("a peer that cannot be reached may be waited for, and nothing else") {
  const Link none{LinkKind::pcie, false, false, "cuda:0 and cuda:1 have no peer access"};
  TestProgram waits = world(PacketFormat::LL16);
  waits.op_in(0, 0, OpKind::wait, {end_of(kMem)});
  waits.op_in(0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  CHECK(said(waits, none) == "");
  TestProgram signals = world(PacketFormat::LL16);
  signals.op_in(0, 0, OpKind::signal, {end_of(kMem)});
  CHECK(said(signals, none) ==
        "error: rank 0 cannot reach the memory of rank 1: cuda:0 and cuda:1 have no peer access\n"
        "note: in 'signal ch' (rank 0, tb 0)\n"
        "note: plans need peer access between their GPUs; 'nvidia-smi topo -p2p r' shows which "
        "have it\n");
}

TEST_CASE("to another node ports lead, memory channels and switches do not") {
  const Link away{.kind = LinkKind::pcie,
                  .access = false,
                  .atomics = false,
                  .why = "it is on another node",
                  .lanes = true};
  const std::string remedy =
      "note: only port channels lead there: declare the channel as port(...), or take a plan for "
      "several nodes, such as the library's *_hier with 'gpus' set to the ranks of a node\n";
  TestProgram ports = world(PacketFormat::LL16);
  ports.op_in(0, 0, OpKind::put, {far(kNet, kOutput, 0)}, {local(kInput, 0)});
  ports.op_in(0, 0, OpKind::signal, {end_of(kNet)});
  CHECK(said(ports, away) == "");
  TestProgram puts = world(PacketFormat::LL16);
  puts.op_in(0, 0, OpKind::put, {far(kMem, kOutput, 0)}, {local(kInput, 0)});
  CHECK(said(puts, away) ==
        "error: rank 0 cannot reach the memory of rank 1: it is on another node\n"
        "note: in 'put ch.output[0] <- input[0]' (rank 0, tb 0)\n" +
            remedy);
  TestProgram switches = world(PacketFormat::LL16);
  switches.op_in(0, 0, OpKind::switch_broadcast, {far(kSw, kOutput, 0)}, {local(kInput, 0)});
  CHECK(said(switches, away) ==
        "error: rank 0 cannot reach the memory of rank 1: it is on another node\n"
        "note: in 'switch_broadcast sw.output[0] <- input[0]' (rank 0, tb 0)\n" +
            remedy);
}

TEST_CASE("signals are stored counts where the peer takes no atomics") {
  const TestProgram t = world(PacketFormat::LL16);
  const std::vector<Channel>& channels = t.program.ranks[0].channels;
  const std::vector<Link> pcie = {Link{}, kPcie}, nvlink = {Link{}, kNvlink};
  CHECK(needs_stored_signals(channels[kMem], pcie));
  CHECK_FALSE(needs_stored_signals(channels[kMem], nvlink));
  CHECK_FALSE(needs_stored_signals(channels[kNet], pcie));  // its proxy stores them anyway
  CHECK_FALSE(needs_stored_signals(channels[kSw], pcie));
}

}  // namespace
}  // namespace mscclc
