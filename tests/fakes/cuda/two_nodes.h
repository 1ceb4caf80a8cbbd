// A GPU of a fake driver on each of two nodes, with memory of both kinds on the far one, for tests
// of lanes between GPUs.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/shared_atomics.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/helpers/runtime/reports.h"

namespace mscclc::cuda {

constexpr uint32_t kFar = 3, kNear = 5;  ///< ranks

/// cuda:0 on node 0 and cuda:1 on node 1. Lanes go from the near one to the far one.
struct TwoNodes {
  /// `bytes`: of each piece of memory; `patience`: with what takes far too long.
  TwoNodes(World& world, uint64_t bytes, std::chrono::milliseconds patience)
      : far_reports{patience},
        near_reports{patience},
        world(world),
        bytes(bytes),
        patience(patience) {
    ::setenv("MSCCLC_SOCKET_IFNAME", "=lo", 1);
    world.node = 1;
    far = world.open(0, 1);
    world.node = 0;
    near = world.open(0, 0);
    to = link(*near, *far);
    from = link(*far, *near);
    on_gpu = far->allocate(bytes, "memory", diagnostics);
    on_host = far->allocate_visible(bytes, "memory", diagnostics);
    source = near->allocate(bytes, "input", diagnostics);
    REQUIRE((on_gpu != nullptr && on_host != nullptr && source != nullptr));
    gpu = reach(*on_gpu);
    host = reach(*on_host);
  }

  std::unique_ptr<LaneEnd> await_lane() {
    return far->await_lane({.rank = kNear, .link = from, .failed = far_reports.callback()},
                           diagnostics);
  }
  std::unique_ptr<Lane> open_lane(std::span<const uint8_t> offer) {
    return near->open_lane(
        {.rank = kFar, .offer = offer, .link = to, .failed = near_reports.callback()}, diagnostics);
  }

  /// What a block sees there; what is on a GPU only the driver may touch.
  std::vector<uint8_t> there(const Memory& memory, uint64_t offset, uint64_t count) {
    if (&memory != on_host.get()) {
      return world.fake.bytes_at(address_of(memory.data()) + offset, count);
    }
    // Word by word, as it was written: what orders the two is a message, which no sanitizer sees.
    std::vector<uint64_t> words;
    for (uint64_t at = offset / 8 * 8; at < offset + count; at += 8) {
      words.push_back(load_acquire<uint64_t>(memory.data() + at));
    }
    const auto* first = reinterpret_cast<const uint8_t*>(words.data()) + offset % 8;
    return {first, first + count};
  }
  uint64_t word(const Memory& memory, uint64_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, there(memory, offset, sizeof value).data(), sizeof value);
    return value;
  }
  /// Waits for a count as a block does.
  void await(const Memory& memory, uint64_t offset, uint64_t value) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (word(memory, offset) < value) {
      REQUIRE(text() + near_reports.text() + far_reports.text() == said);
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // others need the driver, too
    }
  }
  std::string text() const { return text_of(diagnostics); }

  Diagnostics diagnostics;
  std::string said;  ///< what is said when all is well
  Reports far_reports, near_reports;
  World& world;
  const uint64_t bytes;
  const std::chrono::milliseconds patience;
  std::unique_ptr<CudaDevice> far, near;
  Link to, from;
  std::unique_ptr<Memory> on_gpu, on_host, source;  ///< the far one's, and the near one's
  std::unique_ptr<Memory> gpu, host;                ///< on_gpu and on_host for the near one

 private:
  static Link link(CudaDevice& from, CudaDevice& to) {
    Diagnostics problems;
    const auto name = to.link_name(problems), own = from.link_name(problems);
    REQUIRE((name && own));
    const auto link = from.link_to(*name, problems);
    REQUIRE(link);
    CHECK(link->lanes);
    CHECK(!link->access);
    CHECK(text_of(problems) == "");
    return *link;
  }
  std::unique_ptr<Memory> reach(const Memory& memory) {
    const auto handle = far->export_memory(memory.data(), bytes, diagnostics);
    INFO(text());
    REQUIRE(handle);
    return near->reach_memory(*handle, diagnostics);
  }
};

/// Bytes to put.
inline std::vector<uint8_t> pattern(size_t count, uint64_t seed) {
  std::vector<uint8_t> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>((i + seed) * 2654435761u >> 16);
  return data;
}

}  // namespace mscclc::cuda
