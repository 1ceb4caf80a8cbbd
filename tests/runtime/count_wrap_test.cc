// Calls on the host device whose numbers pass 2^32, of sizes that vary: packets with flags of 32
// bits, and others (docs/design/verification.md, "What counts reach").
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/core/communicator/executable.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint64_t kFlags = 0xffffffff;  ///< there are so many of 32 bits
constexpr uint64_t kLong = 4096;         ///< elements, at most

/// A rank that adds up numbers.
struct Adder {
  Communicator& communicator;
  Diagnostics diagnostics;
  std::unique_ptr<Executable> loaded;
  std::unique_ptr<Memory> memory;
  StreamHandle stream;

  Adder(Communicator& of, const std::shared_ptr<const Program>& plan)
      : communicator(of),
        loaded(of.load(plan, {.max_bytes = kLong * sizeof(uint32_t)}, diagnostics)),
        memory(of.device().allocate(2 * kLong * sizeof(uint32_t), "buffers", diagnostics)),
        stream(of.device().create_stream(diagnostics)) {}
  ~Adder() { communicator.device().destroy_stream(stream); }
  uint32_t* in() const { return reinterpret_cast<uint32_t*>(memory->data()); }
  uint32_t* out() const { return in() + kLong; }
  BoundCall bind(uint64_t count) {
    return loaded->bind(
        {.bytes = count * sizeof(uint32_t), .dtype = Dtype::u32, .input = in(), .output = out()},
        diagnostics);
  }
  /// The next call has this number, on all ranks.
  bool go_on_at(uint64_t number) {
    const BoundCall call = bind(kLong);
    if (!call) return false;
    const device::LaunchPlan& launch = call.state().launch;
    for (uint32_t b = 0; b < launch.blocks; ++b) launch.calls[b * launch.call_counts] = number;
    return communicator.bootstrap().barrier("all go on there", diagnostics);
  }
  /// "": the sums are right.
  std::string add(uint64_t count, uint32_t number) {
    for (uint64_t i = 0; i < count; ++i) {
      in()[i] = static_cast<uint32_t>(1000 * number + 10 * i + communicator.rank());
    }
    const BoundCall call = bind(count);
    if (!call || !loaded->launch(call, stream, diagnostics) ||
        !communicator.synchronize(stream, diagnostics)) {
      return testing::text(diagnostics);
    }
    for (uint64_t i = 0; i < count; ++i) {
      const auto sum = static_cast<uint32_t>(kRanks * (1000 * number + 10 * i) + 3);
      if (out()[i] == sum) continue;
      return fmt::format("call {} of {}: element {} is {}, not {}", number, count, i, out()[i],
                         sum);
    }
    return "";
  }
};

std::shared_ptr<const Program> adding_plan(const std::string& format) {
  const CompiledWorld world("allreduce_1shot", {{"R", std::to_string(kRanks)}, {"F", format}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

TEST_CASE("calls of sizes that vary are right round the end of 32 bits") {
  for (const char* format : {"LL8", "LL16", "LL128"}) {
    const auto plan = adding_plan(format);
    const auto body = [&](Communicator& communicator) -> std::string {
      Adder adder(communicator, plan);
      if (adder.loaded == nullptr || !adder.go_on_at(kFlags - 7)) {
        return testing::text(adder.diagnostics);
      }
      for (uint32_t i = 0; i < 16; ++i) {
        const std::string said = adder.add(i % 3 == 0 ? kLong : 64 << i % 4, i);
        if (!said.empty()) return said;
      }
      return "";
    };
    INFO(format);
    CHECK(testing::run_threads(kRanks, body) == "");
  }
}

// Slots of the long call hold the flag that the last one waits for, in the other copy of scratch.
TEST_CASE("the flag of a long call comes again in the other copy of scratch") {
  for (const char* format : {"LL8", "LL16"}) {
    const auto plan = adding_plan(format);
    const auto body = [&](Communicator& communicator) -> std::string {
      Adder adder(communicator, plan);
      if (adder.loaded == nullptr) return testing::text(adder.diagnostics);
      for (uint32_t i = 0; i < 8; ++i) {
        const uint64_t number = 100 + i + i / 4 * (kFlags - 4);
        const bool goes = i % 4 != 0 || adder.go_on_at(number);
        const std::string said = goes ? adder.add(kLong, i) : testing::text(adder.diagnostics);
        if (!said.empty()) return said;
      }
      return "";
    };
    INFO(format);
    CHECK(testing::run_threads(kRanks, body) == "");
  }
}

}  // namespace
}  // namespace mscclc
