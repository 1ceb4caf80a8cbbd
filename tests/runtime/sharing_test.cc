// Several communicators, plans, streams and calls in one process; buffers of all kinds; and what is
// left when all is gone.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ir/support/sanitized.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_processes;
using testing::run_threads;

std::shared_ptr<const Program> shared_plan(std::string_view name, const char* ranks) {
  const CompiledWorld world(name, {{"R", ranks}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

/// A call of an allreduce of u32: every rank gives rank + 1 + i in element i.
struct Sum {
  static constexpr uint64_t kMax = 4096;
  std::unique_ptr<Memory> memory;
  uint32_t* in = nullptr;
  uint32_t* out = nullptr;

  Sum(Device& device, Diagnostics& diagnostics)
      : memory(device.allocate(2 * kMax, "buffers", diagnostics)),
        in(reinterpret_cast<uint32_t*>(memory->data())),
        out(reinterpret_cast<uint32_t*>(memory->data() + kMax)) {}
  void fill(uint32_t rank, uint64_t bytes, uint32_t salt) {
    for (uint32_t i = 0; i < bytes / 4; ++i) in[i] = rank + 1 + i * salt, out[i] = 0xdeadbeef;
  }
  bool right(uint32_t ranks, uint64_t bytes, uint32_t salt) const {
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      if (out[i] != ranks * (ranks + 1) / 2 + ranks * i * salt) return false;
    }
    return true;
  }
  CollectiveCall call(uint64_t bytes) const {
    return {.bytes = bytes, .dtype = Dtype::u32, .input = in, .output = out};
  }
};

TEST_CASE("calls of several plans and sizes run one after another without waiting") {
  const std::vector<std::shared_ptr<const Program>> plans = {
      shared_plan("allreduce_ring", "4"), shared_plan("allreduce_2shot_packets", "4"),
      shared_plan("allreduce_2shot", "4")};
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const auto& plan : plans) {
      loaded.push_back(communicator.load(plan, {.max_bytes = Sum::kMax}, diagnostics));
      if (loaded.back() == nullptr) return testing::text(diagnostics);
    }
    std::vector<Sum> sums;
    std::vector<BoundCall> calls;
    std::vector<uint64_t> sizes;
    const StreamHandle stream = device.create_stream(diagnostics);
    for (uint32_t i = 0; i < 60; ++i) {
      sizes.push_back(4 * (1 + (i * 379) % (Sum::kMax / 4)));
      sums.emplace_back(device, diagnostics);
      sums.back().fill(communicator.rank(), sizes.back(), i);
      calls.push_back(loaded[i % 3]->bind(sums.back().call(sizes.back()), diagnostics));
      if (!calls.back()) return testing::text(diagnostics);
    }
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (!loaded[i % 3]->launch(calls[i], stream, diagnostics)) return testing::text(diagnostics);
    }
    const bool done = communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (!sums[i].right(4, sizes[i], i)) return fmt::format("call {} is wrong", i);
    }
    return "";
  };
  CHECK(run_threads(4, body) == "");
  CHECK(run_processes(4, body) == "");
}

// The first call waits for the others while all that come after it are bound: more than the
// executable keeps, so that it fills old ones anew.
TEST_CASE("a call may be dropped as soon as it is launched") {
  const auto plan = shared_plan("allreduce_ring", "2");
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    const auto loaded = communicator.load(plan, {.max_bytes = Sum::kMax}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    if (communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const StreamHandle stream = device.create_stream(diagnostics);
    std::vector<Sum> sums;
    const auto bytes_of = [](uint32_t i) { return 8 * (1 + uint64_t{i} * 379 % (Sum::kMax / 8)); };
    for (uint32_t i = 0; i < 150; ++i) {
      sums.emplace_back(device, diagnostics);
      sums.back().fill(communicator.rank(), bytes_of(i), i);
      const BoundCall call = loaded->bind(sums.back().call(bytes_of(i)), diagnostics);
      if (!call || !loaded->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    }
    const bool done = communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    for (uint32_t i = 0; i < sums.size(); ++i) {
      if (!sums[i].right(2, bytes_of(i), i)) return fmt::format("call {} is wrong", i);
    }
    return "";
  };
  CHECK(run_threads(2, body) == "");
  CHECK(run_processes(2, body) == "");
}

TEST_CASE("plans on several streams at once") {
  const auto plan = shared_plan("allreduce_ring", "2"),
             other = shared_plan("allreduce_2shot_packets", "2");
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    const auto first = communicator.load(plan, {.max_bytes = Sum::kMax}, diagnostics);
    const auto second = communicator.load(other, {.max_bytes = Sum::kMax}, diagnostics);
    if (first == nullptr || second == nullptr) return testing::text(diagnostics);
    Sum a(device, diagnostics), b(device, diagnostics);
    a.fill(communicator.rank(), 4000, 1);
    b.fill(communicator.rank(), 800, 2);
    const BoundCall on_first = first->bind(a.call(4000), diagnostics);
    const BoundCall on_second = second->bind(b.call(800), diagnostics);
    const StreamHandle one = device.create_stream(diagnostics),
                       two = device.create_stream(diagnostics);
    // In the opposite order on the two ranks: streams do not wait for each other.
    for (int i = 0; i < 200; ++i) {
      const bool swap = communicator.rank() == 1;
      (void)(swap ? second : first)
          ->launch(swap ? on_second : on_first, swap ? two : one, diagnostics);
      (void)(swap ? first : second)
          ->launch(swap ? on_first : on_second, swap ? one : two, diagnostics);
    }
    const bool done =
        communicator.synchronize(one, diagnostics) && communicator.synchronize(two, diagnostics);
    device.destroy_stream(one);
    device.destroy_stream(two);
    if (!done) return testing::text(diagnostics);
    return a.right(2, 4000, 1) && b.right(2, 800, 2) ? "" : "wrong";
  };
  CHECK(run_threads(2, body) == "");
  CHECK(run_processes(2, body) == "");
}

TEST_CASE("several communicators of one process") {
  const auto plan = shared_plan("allreduce_ring", "2");
  const auto use = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto loaded = communicator.load(plan, {.max_bytes = Sum::kMax}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    Sum sum(communicator.device(), diagnostics);
    sum.fill(communicator.rank(), 1000, 3);
    const BoundCall call = loaded->bind(sum.call(1000), diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    for (int i = 0; i < 50 && call; ++i) (void)loaded->launch(call, stream, diagnostics);
    (void)communicator.synchronize(stream, diagnostics);
    communicator.device().destroy_stream(stream);
    return sum.right(2, 1000, 3) ? testing::text(diagnostics) : "wrong";
  };
  std::vector<std::string> said(3);
  std::vector<std::thread> pairs;
  for (int i = 0; i < 3; ++i) pairs.emplace_back([&, i] { said[i] = run_threads(2, use); });
  for (std::thread& pair : pairs) pair.join();
  for (const std::string& what : said) CHECK(what == "");
}

/// Pointers of any alignment, of memory that no peer can map: calls go through staging.
TEST_CASE("buffers that are not registered") {
  for (const bool zero_copy : {false, true}) {
    const auto plan = shared_plan("allgather_direct", "3");
    const auto body = [&](Communicator& communicator) -> std::string {
      Diagnostics diagnostics;
      const auto loaded =
          communicator.load(plan, {.max_bytes = 3 * 999, .zero_copy = zero_copy}, diagnostics);
      if (loaded == nullptr) return testing::text(diagnostics);
      if (loaded->binds_together() != zero_copy) return "bind() is collective, or is not";
      const StreamHandle stream = communicator.device().create_stream(diagnostics);
      std::string wrong;
      for (const uint64_t n : {1u, 7u, 16u, 333u, 999u, 2u}) {
        const uint32_t rank = communicator.rank(), shift = 1 + 3 * rank;  // odd, not alike
        std::vector<uint8_t> in(n + 64, 0), out(3 * n + 64, 0x55);
        for (uint64_t i = 0; i < n; ++i) in[shift + i] = static_cast<uint8_t>(i * 7 + rank);
        const BoundCall call = loaded->bind({.bytes = 3 * n,
                                             .dtype = Dtype::u8,
                                             .input = in.data() + shift,
                                             .output = out.data() + shift},
                                            diagnostics);
        if (!call) return testing::text(diagnostics);
        (void)loaded->launch(call, stream, diagnostics);
        if (!communicator.synchronize(stream, diagnostics)) return testing::text(diagnostics);
        for (uint64_t i = 0; i < 3 * n; ++i) {
          if (out[shift + i] != static_cast<uint8_t>(i % n * 7 + i / n)) wrong = "wrong";
        }
        for (uint64_t i = 0; i < shift; ++i) wrong += out[i] == 0x55 ? "" : "before ";
        for (uint64_t i = shift + 3 * n; i < out.size(); ++i) {
          wrong += out[i] == 0x55 ? "" : "after ";
        }
      }
      communicator.device().destroy_stream(stream);
      return wrong;
    };
    INFO("zero copy: " << zero_copy);
    CHECK(run_processes(3, body) == "");
    CHECK(run_threads(3, body) == "");
  }
}

TEST_CASE("a call that comes again is not bound again") {
  const auto body = [plan = shared_plan("allreduce_ring", "2")](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto loaded = communicator.load(plan, {.max_bytes = Sum::kMax}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    Sum sum(communicator.device(), diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    std::string wrong;
    const auto run = [&](const BoundCall& call, uint64_t bytes) {
      sum.fill(communicator.rank(), bytes, 5);
      (void)loaded->launch(call, stream, diagnostics);
      (void)communicator.synchronize(stream, diagnostics);
      if (!sum.right(2, bytes, 5)) wrong += "wrong ";
    };
    const BoundCall kept = loaded->bind(sum.call(64), diagnostics);
    if (&loaded->bind(sum.call(64), diagnostics).state() != &kept.state()) wrong += "bound again ";
    if (&loaded->bind(sum.call(68), diagnostics).state() == &kept.state()) wrong += "mixed up ";
    // More than are kept: those that are not held are filled anew, this one stays as it is.
    for (uint64_t bytes = 4; bytes <= 4 * 100; bytes += 4) {
      run(loaded->bind(sum.call(bytes), diagnostics), bytes);
    }
    run(kept, 64);
    communicator.device().destroy_stream(stream);
    return wrong + testing::text(diagnostics);
  };
  CHECK(run_threads(2, body) == "");
}

/// What a wrong call says.
TEST_CASE("calls that the plan cannot do") {
  const auto body = [plan = shared_plan("allreduce_ring", "2")](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto loaded = communicator.load(plan, {.max_bytes = 4096}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    Sum sum(communicator.device(), diagnostics);
    CollectiveCall call = sum.call(8192);
    (void)loaded->bind(call, diagnostics);
    call = sum.call(6);
    (void)loaded->bind(call, diagnostics);
    call = sum.call(64);
    call.output = nullptr;
    (void)loaded->bind(call, diagnostics);
    call = sum.call(64);
    call.output = sum.in + 1;
    (void)loaded->bind(call, diagnostics);
    return testing::text(diagnostics);
  };
  const std::string expected =
      "error: a message of 8192 bytes; the plan was loaded for 4096 at most: load it with a larger "
      "max_bytes\n"
      "error: 6 bytes are not a message of u32 elements for 2 ranks; the next smaller one has 4\n"
      "error: rank 0 needs an output of 64 bytes\n"
      "error: input and output overlap, but not as they do in place for this collective\n";
  CHECK(testing::threads(2, body)[0] == expected);
}

size_t open_files() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

/// Lines of /proc/self/maps that are ours.
size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:mscclc") != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST_CASE("many communicators leave nothing behind") {
  const auto plan = shared_plan("allgather_direct", "2");
  const auto once = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto loaded = communicator.load(plan, {.max_bytes = 512, .zero_copy = true}, diagnostics);
    const auto memory = communicator.device().allocate(1024, "buffers", diagnostics);
    if (loaded == nullptr || memory == nullptr) return testing::text(diagnostics);
    const auto registered = communicator.register_buffer(memory->data(), 1024, diagnostics);
    const BoundCall call = loaded->bind(
        {.bytes = 512, .dtype = Dtype::u8, .input = memory->data(), .output = memory->data() + 512},
        diagnostics);
    return call ? "" : testing::text(diagnostics);
  };
  REQUIRE(run_threads(2, once) == "");
  const size_t files = open_files(), maps = mappings();
  for (int i = 0; i < testing::if_sanitized(100, 1000); ++i) {
    const std::string said = run_threads(2, once);
    if (!said.empty()) FAIL(said);
  }
  CHECK(open_files() == files);
  CHECK(mappings() == maps);
}

}  // namespace
}  // namespace mscclc
