// Packed programs say what the rank's arrays say, with indices of their own.
#include "executor/block_programs.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "executor/host/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using device::BaseAddress;
using device::BlockHeader;
using device::ChannelEnd;
using device::DeviceOp;
using device::DeviceOperand;
using device::Move;
using device::Run;

/// A patched rank of a plan, with addresses that tell bases and channels apart.
struct Patched {
  Patched(TestProgram& t, uint32_t r, uint64_t bytes) {
    Diagnostics diagnostics;
    REQUIRE(lower(t.program, device, diagnostics));
    patch(bytes, t.program);
    rank = &device.ranks[r];
    for (size_t i = 0; i < rank->bases.size(); ++i) {
      bases.push_back(
          {reinterpret_cast<uint8_t*>(0x1000 * (i + 1)), 64 * i, rank->bases[i].copies});
    }
    for (size_t i = 0; i < t.program.ranks[r].channels.size(); ++i) {
      ends.push_back({reinterpret_cast<uint64_t*>(0x100 * (i + 1)), nullptr, 0, i});
    }
  }
  void patch(uint64_t bytes, const Program& program) {
    Diagnostics diagnostics;
    REQUIRE(mscclc::patch(device, program, {.part_bytes = bytes}, diagnostics));
  }
  DeviceProgram device;
  RankProgram* rank;
  std::vector<BaseAddress> bases;
  std::vector<ChannelEnd> ends;
};

/// One packed program.
struct Unpacked {
  Unpacked(const BlockPrograms& programs, uint32_t block)
      : begin(programs.data() + uint64_t{block} * programs.stride()) {
    std::memcpy(&header, begin, sizeof header);
  }
  template <class T>
  const T& at(uint64_t offset, uint64_t i) const {
    return reinterpret_cast<const T*>(begin + offset)[i];
  }
  const uint8_t* begin;
  BlockHeader header;
};

bool names_channels(OpKind kind) {
  return kind == OpKind::signal || kind == OpKind::wait || kind == OpKind::flush;
}

void check_move(const Patched& p, const Unpacked& u, const Move& was, const Move& is) {
  const RankProgram& r = *p.rank;
  REQUIRE(is.dsts == was.dsts);
  REQUIRE(is.srcs == was.srcs);
  CHECK(is.begin == was.begin);
  CHECK(is.end == was.end);
  const uint32_t operands = uint32_t{is.dsts} + is.srcs;
  for (uint32_t k = 0; k < operands; ++k) {
    const DeviceOperand& from = r.operands[was.operands + k];
    const auto& to = u.at<DeviceOperand>(u.header.operands, is.operands + k);
    REQUIRE(to.members == from.members);
    CHECK(to.flags == from.flags);
    for (uint32_t m = 0; m < from.members; ++m) {
      CHECK(u.at<BaseAddress>(u.header.bases, to.base + m).address ==
            p.bases[from.base + m].address);
    }
    if (from.flags & device::kPort) {
      CHECK(u.at<uint32_t>(u.header.channels, to.channel) == from.channel);
    }
  }
  CHECK(is.like_last == was.like_last);
  REQUIRE(is.run_count == was.run_count);
  for (uint32_t i = 0; i < is.run_count; ++i) {
    const Run& from = r.runs[was.runs + i];
    const Run& to = u.at<Run>(u.header.runs, is.runs + i);
    CHECK(to.begin == from.begin);
    CHECK(to.size == from.size);
    CHECK(to.length == from.length);
    for (uint32_t k = 0; k < operands; ++k) {
      CHECK(u.at<uint64_t>(u.header.offsets, to.offsets + k) == r.offsets[from.offsets + k]);
    }
  }
}

void check_targets(const Patched& p, const Unpacked& u, const DeviceOp& was, const DeviceOp& is) {
  for (uint32_t i = 0; i < was.count; ++i) {
    const uint32_t from = p.rank->targets[was.first + i];
    const uint32_t to = u.at<uint32_t>(u.header.targets, is.first + i);
    if (!names_channels(was.kind)) {
      CHECK(to == from);
    } else {
      CHECK(u.at<uint32_t>(u.header.channels, to) == from);
      CHECK(u.at<ChannelEnd>(u.header.ends, to).arrived == p.ends[from].arrived);
    }
  }
}

void check_programs(const Patched& p, const BlockPrograms& programs) {
  const RankProgram& r = *p.rank;
  CHECK(programs.bytes() <= BlockPrograms::most_bytes(r));
  CHECK(programs.stride() % 16 == 0);
  REQUIRE(programs.bytes() == uint64_t{programs.stride()} * (r.block_begin.size() - 1));
  for (uint32_t b = 0; b + 1 < r.block_begin.size(); ++b) {
    const Unpacked u(programs, b);
    CHECK(u.header.align == r.align);
    REQUIRE(u.header.op_count == r.block_begin[b + 1] - r.block_begin[b]);
    for (uint32_t i = 0; i < u.header.op_count; ++i) {
      const DeviceOp& was = r.ops[r.block_begin[b] + i];
      const auto& is = u.at<DeviceOp>(u.header.ops, i);
      INFO("block " << b << ", op " << i);
      CHECK(is.source == was.source);
      REQUIRE(is.count == was.count);
      if (!info(was.kind).moves_data()) {
        CHECK(is.kind == was.kind);
        check_targets(p, u, was, is);
        continue;
      }
      for (uint32_t m = 0; m < was.count; ++m) {
        check_move(p, u, r.moves[was.first + m], u.at<Move>(u.header.moves, is.first + m));
      }
    }
  }
}

TEST_CASE("packed programs of packets, plain memory and ports") {
  for (int kind = 0; kind < 3; ++kind) {
    TestProgram t = kind == 0   ? one_shot(4, 4, PacketFormat::LL128)
                    : kind == 1 ? two_shot(4)
                                : exchange(ChannelKind::port);
    Patched p(t, 1, 1000);
    BlockPrograms programs;
    REQUIRE(programs.pack(*p.rank, p.bases, p.ends));
    check_programs(p, programs);
    // Again for a size with other runs.
    p.patch(16, t.program);
    REQUIRE(programs.pack(*p.rank, p.bases, p.ends));
    check_programs(p, programs);
  }
}

TEST_CASE("a block's program holds what it names, and no more") {
  TestProgram t = one_shot(8, 8, PacketFormat::LL16);
  Patched p(t, 3, 1 << 14);
  BlockPrograms programs;
  REQUIRE(programs.pack(*p.rank, p.bases, p.ends));
  // 2 ops, 8 moves, 23 operands, 8 runs, 23 offsets; bases: input, output, inbox, 7 peers'.
  CHECK(programs.stride() <= 88 + 2 * 20 + 8 * 32 + 23 * 16 + 8 * 32 + 23 * 8 + 10 * 32 + 16);
  CHECK(programs.uses() == (device::kUsesLL | device::kUsesSums));
}

TEST_CASE("kinds that do the same become one, but not behind ports") {
  TestProgram t = two_shot(4);
  Patched p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(programs.pack(*p.rank, p.bases, p.ends));
  const Unpacked u(programs, 0);
  CHECK(u.at<DeviceOp>(u.header.ops, 0).kind == OpKind::copy);    // put
  CHECK(u.at<DeviceOp>(u.header.ops, 3).kind == OpKind::reduce);  // reduce_send
  CHECK(programs.uses() == device::kUsesSums);

  TestProgram ports = exchange(ChannelKind::port);
  Patched q(ports, 0, 4096);
  REQUIRE(programs.pack(*q.rank, q.bases, q.ends));
  CHECK(Unpacked(programs, 0).at<DeviceOp>(Unpacked(programs, 0).header.ops, 3).kind ==
        OpKind::put);
  CHECK(programs.uses() == device::kUsesProxy);
}

TEST_CASE("programs can be made longer than they are") {
  TestProgram t = two_shot(2);
  Patched p(t, 0, 4096);
  BlockPrograms programs;
  REQUIRE(programs.pack(*p.rank, p.bases, p.ends, 5000));
  CHECK(programs.stride() == 5008);
}

}  // namespace
}  // namespace mscclc
