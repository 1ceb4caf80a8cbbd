// A rank of a plan as it is before a call, for tests: fitted, and with addresses.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "executor/block_programs.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {

/// A fitted rank of a plan, with a different address for each base and channel.
struct FittedRank {
  FittedRank(TestProgram& t, uint32_t r, uint64_t bytes) : program(t.program) {
    Diagnostics diagnostics;
    REQUIRE(lower(t.program, device, diagnostics));
    fit_to_size(bytes);
    rank = &device.ranks[r];
    for (size_t i = 0; i < rank->bases.size(); ++i) {
      bases.push_back({reinterpret_cast<uint8_t*>(0x100000 * (i + 1)), rank->bases[i].copy_stride,
                       rank->bases[i].copies});
    }
    for (size_t i = 0; i < t.program.ranks[r].channels.size(); ++i) {
      const bool port = t.program.ranks[r].channels[i].kind == ChannelKind::port;
      ends.push_back({reinterpret_cast<uint64_t*>(0x100 * (i + 1)),
                      reinterpret_cast<uint64_t*>(0x1000000 * (i + 1)), 0, port ? 1u : 0u});
    }
  }
  void fit_to_size(uint64_t bytes) {
    Diagnostics diagnostics;
    REQUIRE(mscclc::fit_to_size(device, program, {.part_bytes = bytes}, diagnostics));
  }
  bool pack(BlockPrograms& programs, uint32_t least_stride = 0) {
    return programs.pack(*rank, {bases, ends, semaphores, barriers}, WaitSlots(*rank),
                         least_stride);
  }
  const Program& program;
  DeviceProgram device;
  RankProgram* rank = nullptr;
  std::vector<device::BaseAddress> bases;
  std::vector<device::ChannelEnd> ends;
  uint64_t semaphores[64] = {};
  device::Barrier barriers[16] = {};
};

}  // namespace mscclc::testing
