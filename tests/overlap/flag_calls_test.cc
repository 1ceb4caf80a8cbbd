// Calls of plans with flags: which are refused, with what, before anything is launched.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/overlap/flag_plans.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_threads;

/// A call of 'gemm_reducescatter' of two ranks and two chunks of a part, on memory that lives as
/// long.
struct GoodFlags {
  alignas(16) float memory[2][64] = {};
  alignas(8) uint32_t words[8] = {};
  std::vector<CallFlags> flags = {{.name = "tiles", .words = words, .count = 4}};
  CollectiveCall call{.bytes = 256, .input = memory[0], .output = memory[1], .flags = flags};
};

std::shared_ptr<const Program> plan_of(const std::string& name) {
  return std::make_shared<const Program>(
      testing::flag_plan(testing::overlap_text(name), {{"R", "2"}}));
}

std::string first_of(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::error) continue;
    return d.code + ": " + d.message + (d.notes.empty() ? "" : "\n" + d.notes[0].text);
  }
  return "nothing";
}

/// How a GPU answers that has so many multiprocessors.
class FewMultiprocessors final : public testing::ForwardingDevice {
 public:
  FewMultiprocessors(std::unique_ptr<Device> device, uint32_t multiprocessors)
      : ForwardingDevice(std::move(device)), multiprocessors_(multiprocessors) {}
  uint32_t multiprocessors() const override { return multiprocessors_; }

 private:
  const uint32_t multiprocessors_;
};

/// What rank 1 says when `body` has been run with a loaded plan on a device that has so many
/// multiprocessors, 0: any number.
template <class Body>
std::string with_plan(const std::string& name, uint32_t multiprocessors, bool zero_copy,
                      Body body) {
  std::string said;
  const auto plan = plan_of(name);
  const std::string ran = run_threads(
      2,
      [&](Communicator& communicator) -> std::string {
        Diagnostics diagnostics;
        const auto executable = communicator.load(
            plan, {.max_bytes = 1 << 16, .zero_copy = zero_copy, .proof = ProofPolicy::skip},
            diagnostics);
        if (executable != nullptr) body(*executable, diagnostics);
        if (communicator.rank() == 1) said = first_of(diagnostics);
        return "";
      },
      testing::kPatience,
      [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
        return std::make_unique<FewMultiprocessors>(testing::open_host(rank, diagnostics),
                                                    multiprocessors);
      });
  CHECK(ran == "");
  return said;
}

std::string bound(const CollectiveCall& call, uint32_t multiprocessors = 0,
                  const std::string& name = "gemm_reducescatter") {
  return with_plan(name, multiprocessors, false,
                   [&](Executable& executable, Diagnostics& diagnostics) {
                     (void)executable.bind(call, diagnostics);
                   });
}

TEST_CASE("a call names each array of flags once, as it is declared") {
  GoodFlags good;
  CallFlags& tiles = good.flags[0];
  CHECK(bound(good.call) == "nothing");
  good.call.flags = {};
  CHECK(bound(good.call) ==
        "bad-external: rank 1: the flags 'tiles' are missing: the call needs 4 words of 32 bits");
  good.call.flags = good.flags;
  tiles.words = nullptr;
  CHECK(bound(good.call) ==
        "bad-external: rank 1: the flags 'tiles' have no memory: the call needs "
        "4 words of 32 bits");
  tiles.words = good.words;
  tiles.count = 3;
  CHECK(bound(good.call) ==
        "bad-external: rank 1: the flags 'tiles' have 3 words: the call needs 4 words of 32 bits");
  tiles.count = 5;
  CHECK(bound(good.call) == "nothing");
  tiles.bits = 64;
  CHECK(bound(good.call) ==
        "bad-external: rank 1: the flags 'tiles' have words of 64 bits: the call "
        "needs 4 words of 32 bits");
  tiles.bits = 32;
  tiles.name = "ready";
  CHECK(bound(good.call) ==
        "bad-external: rank 1: 'gemm_reducescatter' declares no flags 'ready'; "
        "it has 'tiles'");
  tiles.name = "tiles";
  std::vector<CallFlags> twice = {tiles, tiles};
  good.call.flags = twice;
  CHECK(bound(good.call) == "bad-external: rank 1: the flags 'tiles' are given twice");
}

TEST_CASE("flags lie at multiples of their size, and apart from all else") {
  GoodFlags good;
  CallFlags& tiles = good.flags[0];
  tiles.words = reinterpret_cast<uint8_t*>(good.words) + 2;
  CHECK(bound(good.call) ==
        fmt::format("bad-external: rank 1: the flags 'tiles' begin at {}, no multiple of 4 bytes: "
                    "they must, as words are read and raised whole",
                    fmt::ptr(tiles.words)));
  tiles.words = good.memory[0] + 60;
  CHECK(bound(good.call) == "bad-external: rank 1: the flags 'tiles' overlap the input");
  tiles.words = good.memory[1] + 31;  // the output has 32 elements
  CHECK(bound(good.call) == "bad-external: rank 1: the flags 'tiles' overlap the output");
  tiles.words = good.memory[1] + 32;
  CHECK(bound(good.call) == "nothing");
}

TEST_CASE("only plans with flags take any, and what goes with them") {
  GoodFlags good;
  const auto refused = [&](const CollectiveCall& call) {
    return with_plan("../allreduce_1shot", 0, false, [&](Executable& x, Diagnostics& diagnostics) {
      (void)x.bind(call, diagnostics);
    });
  };
  CHECK(refused(good.call) ==
        "bad-external: rank 1: 'allreduce_1shot' declares no flags 'tiles'; it has none");
  good.call.flags = {};
  CHECK(refused(good.call) == "nothing");
  good.call.launch_order = LaunchOrder::plan_first;
  CHECK(refused(good.call) ==
        "bad-call: budget and launch_order are for plans with flags: this one has none");
}

TEST_CASE("all calls of an executable have the same words, and each counts") {
  GoodFlags good;
  std::vector<CallFlags> others = good.flags;
  others[0].words = good.words + 4;
  const std::string said = with_plan(
      "gemm_reducescatter", 0, false, [&](Executable& executable, Diagnostics& diagnostics) {
        const BoundCall first = executable.bind(good.call, diagnostics);
        const BoundCall again = executable.bind(good.call, diagnostics);
        CHECK(&first.state() == &again.state());
        CollectiveCall other = good.call;
        other.budget = 7;
        CHECK(&executable.bind(other, diagnostics).state() != &first.state());
        other.flags = others;
        CHECK(!executable.bind(other, diagnostics));
      });
  CHECK(said == fmt::format("bad-external: rank 1: the flags 'tiles' begin at {}, and at {} in the "
                            "plan's first call: words count all calls, so give the same array in "
                            "each, or load the plan again",
                            fmt::ptr(good.words + 4), fmt::ptr(good.words)));
  good.call.bytes = 0;
  CHECK(
      bound(good.call) ==
      "bad-external: rank 1: the flags 'tiles' would be raised in a call that moves nothing, which "
      "no device counts: leave out both the call and the other side");
}

TEST_CASE("flags are of buffers that calls do not copy") {
  const auto nothing = [](Executable&, Diagnostics&) {};
  const char* const kCopied =
      "flags-staged: the flags 'ready' of 'allgather_gemm' are of the output, which calls copy "
      "after "
      "their kernel\nload the plan for zero copy, and register the buffer on all ranks";
  CHECK(with_plan("allgather_gemm", 0, false, nothing) == kCopied);
  CHECK(with_plan("allgather_gemm", 0, true, nothing) == "nothing");
  CHECK(with_plan("allgather_gemm", 0, true, [&](Executable& executable, Diagnostics& diagnostics) {
          float memory[3][64] = {};
          uint32_t words[4] = {};
          CallFlags flags[] = {{.name = "ready", .words = words, .count = 4}};
          const CollectiveCall call{
              .bytes = 256, .input = memory[0], .output = memory[1], .flags = flags};
          CHECK(!executable.bind(call, diagnostics));
          // It was refused, so the words of the next call may be others.
          flags[0].words = memory[2];
          Diagnostics again;
          CHECK(!executable.bind(call, again));
          CHECK(first_of(again) == kCopied);
        }) == kCopied);
}

TEST_CASE("neither side waits forever for the other's room") {
  GoodFlags good;  // the plan has four blocks
  CHECK(bound(good.call, 5) == "nothing");
  CHECK(
      bound(good.call, 4) ==
      "flags-not-resident: 'gemm_reducescatter' has 4 thread blocks at rank 1, which hold as many "
      "multiprocessors while they wait for flags; the device has 4, and the other side needs some "
      "to raise them\ncompile it with fewer chunks or instances");
  good.call.budget = 4;
  CHECK(bound(good.call, 132) == "nothing");
  good.call.budget = 3;
  CHECK(
      bound(good.call, 132) ==
      "flags-not-resident: 'gemm_reducescatter' has 4 thread blocks at rank 1, which hold as many "
      "multiprocessors; the call's budget is 3\nleave the plan more of them, or compile it with "
      "fewer chunks or instances");
}

/// What rank 1 says of a call of a plan with flags of the output, of four blocks.
std::string bound_output(uint32_t multiprocessors, uint32_t budget, LaunchOrder order) {
  return with_plan("alltoall_gemm", multiprocessors, true,
                   [&](Executable& executable, Diagnostics& diagnostics) {
                     float memory[3][64] = {};
                     uint32_t words[4] = {};
                     const CallFlags flags[] = {{.name = "ready", .words = words, .count = 4}};
                     (void)executable.bind({.bytes = 256,
                                            .input = memory[0],
                                            .output = memory[1],
                                            .flags = flags,
                                            .budget = budget,
                                            .launch_order = order},
                                           diagnostics);
                   });
}

TEST_CASE("the other side waits for flags only of a plan that is resident, or finds room") {
  const auto answer = [](uint32_t multiprocessors, uint32_t budget, LaunchOrder order) {
    const std::string said = bound_output(multiprocessors, budget, order);
    return said.substr(0, said.find(':'));
  };
  // Nothing of it is about room where that is not limited: the buffers are not registered.
  CHECK(answer(0, 0, LaunchOrder::other_first) == "flags-staged");
  CHECK(answer(132, 0, LaunchOrder::plan_first) == "flags-staged");
  CHECK(answer(4, 0, LaunchOrder::plan_first) == "flags-staged");
  CHECK(answer(132, 4, LaunchOrder::other_first) == "flags-staged");
  CHECK(bound_output(132, 0, LaunchOrder::other_first) ==
        "flags-not-resident: 'alltoall_gemm' has 4 thread blocks at rank 1, which hold as many "
        "multiprocessors; the other side, which may hold all 132 before the plan begins, waits for "
        "its flags\nlaunch the plan first, and say so (launch_order: plan_first); or leave "
        "multiprocessors free, and say how many (budget: 4)");
}

}  // namespace
}  // namespace mscclc
