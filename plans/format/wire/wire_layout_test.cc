#include "plans/format/wire/wire_layout.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using namespace testing;

std::vector<uint32_t> ids(const Program& program, uint32_t rank) {
  const WireLayout layout = lay_out(program);
  return {layout.channel_ids.begin() + layout.first_channel[rank],
          layout.channel_ids.begin() + layout.first_channel[rank + 1]};
}

}  // namespace

TEST_CASE("scratch: plain buffers first, then packets") {
  TestProgram t(1, 1);
  t.buffer(0, "a", 3, PacketFormat::LL16);
  t.buffer(0, "b", 2);
  t.buffer(0, "c", 1, PacketFormat::sentinel);
  t.buffer(0, "d", 4);
  const WireLayout layout = lay_out(t.program);
  CHECK(layout.buffer(0, 2).offset == 6);
  CHECK(layout.buffer(0, 3).offset == 0);
  CHECK(layout.buffer(0, 4).offset == 9);
  CHECK(layout.buffer(0, 5).offset == 2);
  CHECK(layout.scratch_chunks[0] == 10);
  CHECK(layout.packets);
}

TEST_CASE("scratch is doubled if a packet buffer has two copies, and none more") {
  const auto doubled = [](std::vector<std::pair<PacketFormat, uint32_t>> buffers) {
    TestProgram t(1, 1);
    for (const auto& [format, copies] : buffers) t.buffer(0, "b", 1, format, copies);
    return lay_out(t.program).double_scratch;
  };
  using enum PacketFormat;
  CHECK_FALSE(doubled({}));
  CHECK_FALSE(doubled({{LL16, 1}}));
  CHECK(doubled({{LL16, 2}}));
  CHECK(doubled({{LL16, 1}, {LL8, 2}}));
  CHECK_FALSE(doubled({{LL16, 2}, {LL8, 3}}));
  CHECK_FALSE(doubled({{LL16, 1}, {none, 2}}));  // plain ones count only where there are no packets
  CHECK(doubled({{none, 2}}));
  CHECK_FALSE(doubled({{sentinel, 2}}));
}

TEST_CASE("doubled scratch has as many chunks on all ranks, and halves that begin at 16 bytes") {
  using enum PacketFormat;
  const auto chunks = [](PacketFormat format, uint32_t copies, bool shared, bool foreign) {
    TestProgram t(3, 1);
    t.buffer(0, "b", 3, format, copies);
    t.buffer(1, "b", 9, format, copies);
    t.program.launch.reuse_scratch = shared;
    t.program.foreign = foreign;
    return lay_out(t.program).scratch_chunks;
  };
  const std::vector<uint64_t> own = {3, 9, 0};
  CHECK(chunks(LL16, 2, false, false) == std::vector<uint64_t>{16, 16, 16});
  CHECK(chunks(none, 2, false, false) == std::vector<uint64_t>{16, 16, 16});
  CHECK(chunks(LL16, 1, false, false) == own);  // one half
  CHECK(chunks(LL16, 2, true, false) == own);   // its size is fixed
  CHECK(chunks(LL16, 2, false, true) == own);   // stays what it was
}

TEST_CASE("channels keep their order where partners meet in it") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    t.channel(r, ChannelKind::memory, "a", {}, 1 - r, 0);
    t.channel(r, ChannelKind::port, "b", {}, 1 - r, 1);
    t.channel(r, ChannelKind::memory, "c", {}, 1 - r, 2);
  }
  CHECK(ids(t.program, 0) == std::vector<uint32_t>{0, 0, 1});
  CHECK(ids(t.program, 1) == std::vector<uint32_t>{0, 0, 1});
}

TEST_CASE("a ring of two ranks: the higher rank follows the lower") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    t.channel(r, ChannelKind::memory, "next", {}, 1 - r, 1);
    t.channel(r, ChannelKind::memory, "prev", {}, 1 - r, 0);
  }
  CHECK(ids(t.program, 0) == std::vector<uint32_t>{0, 1});
  CHECK(ids(t.program, 1) == std::vector<uint32_t>{1, 0});
}

TEST_CASE("ends without partner come last among those to their peer") {
  TestProgram t(3, 1);
  t.channel(0, ChannelKind::memory, "alone", {}, 1);
  t.channel(0, ChannelKind::memory, "other", {}, 2);
  t.channel(0, ChannelKind::memory, "pair", {}, 1, 0);
  t.channel(1, ChannelKind::memory, "pair", {}, 0, 2);
  CHECK(ids(t.program, 0) == std::vector<uint32_t>{2, 1, 0});
  CHECK(ids(t.program, 1) == std::vector<uint32_t>{0});
}

TEST_CASE("a switch has an entry for each type of buffer that any member uses it on") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, "stage", 1);
    if (r == 1) t.switch_channel(r, "second", {0, 1});
    t.switch_channel(r, "first", {0, 1});
    if (r == 0) t.switch_channel(r, "second", {0, 1});
  }
  t.op_in(0, 0, OpKind::switch_broadcast, {far(0, kOutput, 0)}, {local(kInput, 0)});
  t.op_in(1, 0, OpKind::switch_broadcast, {far(1, kFirstScratch, 0)}, {local(kInput, 0)});
  t.op_in(1, 0, OpKind::switch_broadcast, {far(0, kInput, 0)}, {local(kInput, 0)});
  const WireLayout layout = lay_out(t.program);
  const auto entries = [&](uint32_t rank) {
    std::vector<std::pair<uint32_t, char>> out;
    for (const WireSwitch& s : layout.switches[rank]) out.push_back({s.channel, letter(s.type)});
    return out;
  };
  using Entries = std::vector<std::pair<uint32_t, char>>;
  CHECK(entries(0) == Entries{{0, 'o'}, {0, 's'}, {1, 'i'}});
  CHECK(entries(1) == Entries{{1, 'o'}, {1, 's'}, {0, 'i'}});  // the order of the lowest member
  CHECK(layout.switch_id(1, 0, WireType::input) == 2);
  CHECK(layout.switch_id(1, 0, WireType::output) == kNone);
  CHECK(layout.switch_matched[1] == std::vector<bool>{true, true});
}

TEST_CASE("switches meet by label and ranks") {
  TestProgram t(3, 1);
  const std::vector<int64_t> two = {0, 1}, all = {0, 1, 2};
  for (const auto& [rank, name, group] : {std::tuple{0u, "c", all},
                                          {0u, "a", two},
                                          {0u, "b", two},
                                          {0u, "a", all},
                                          {1u, "b", two},
                                          {1u, "a", all},
                                          {1u, "c", two},
                                          {1u, "a", two},
                                          {1u, "c", all}}) {
    t.switch_channel(rank, name, group);
  }
  for (uint32_t s = 0; s < 5; ++s) {
    t.op_in(1, 0, OpKind::switch_broadcast, {far(s, kOutput, 0)}, {local(kInput, 0)});
  }
  const WireLayout layout = lay_out(t.program);
  std::vector<uint32_t> order;
  for (const WireSwitch& s : layout.switches[1]) order.push_back(s.channel);
  CHECK(layout.switch_matched[1] == std::vector<bool>{true, true, false, true, true});
  // As rank 0 declares them; the one that it does not declare is the last.
  CHECK(order == std::vector<uint32_t>{4, 3, 0, 1, 2});
}

}  // namespace mscclc
