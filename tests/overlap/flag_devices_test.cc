// Plans with flags on the host device, beside threads that stand for GEMMs: output for output the
// bits of the simulator.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/simulator/cluster.h"
#include "ir/base/sanitized.h"
#include "tests/overlap/flag_plans.h"
#include "tests/overlap/gemm_side.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::FlagMemory;
using testing::GemmSide;
using testing::run_threads;

constexpr uint64_t kCalls = testing::if_sanitized(6, 24);
using Bytes = std::vector<uint8_t>;

struct NoCallHooks final : CallHooks {
  void before(uint32_t, uint64_t) override {}
  void after(uint32_t, uint64_t) override {}
};

/// What all ranks put into calls of one size, and what the simulator gives; by call and rank.
struct KnownCalls {
  uint64_t bytes = 0;  ///< of the message
  uint64_t part = 0;
  bool in_place = false;
  std::vector<std::vector<Bytes>> inputs, outputs;
};

Bytes some_floats(uint64_t bytes, uint64_t seed) {
  Dice dice(seed);
  std::vector<float> values(bytes / sizeof(float));
  for (float& value : values) value = (static_cast<float>(dice.below(65536)) - 32000.0f) / 3.0f;
  Bytes data(bytes);
  std::memcpy(data.data(), values.data(), values.size() * sizeof(float));
  return data;
}

KnownCalls known_calls(const Program& plan, uint64_t message, bool in_place, uint64_t calls) {
  KnownCalls known{.in_place = in_place, .inputs = {}, .outputs = {}};
  known.part = Chunking::part_for_message(plan.contract, message, sizeof(float));
  known.bytes = known.part * Chunking::parts_of_message(plan.contract);
  Cluster cluster(plan);
  Diagnostics diagnostics;
  NoCallHooks hooks;
  Call call{.part_bytes = known.part, .dtype = Dtype::f32};
  REQUIRE(cluster.build(diagnostics));
  REQUIRE(check_call(plan, call, diagnostics));
  REQUIRE(cluster.prepare(call, in_place, true, diagnostics));
  for (uint64_t c = 0; c < calls; ++c) {
    std::vector<Bytes>& inputs = known.inputs.emplace_back();
    std::vector<Bytes>& outputs = known.outputs.emplace_back();
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      inputs.push_back(some_floats(cluster.bytes(r, kInput), 1 + r + 100 * c));
      std::ranges::copy(inputs.back(), cluster.data(r, kInput));
    }
    const bool ran = cluster.run(1, 0, hooks, diagnostics);
    INFO(testing::said_of_flags(diagnostics));
    REQUIRE(ran);
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      const uint8_t* const data = cluster.data(r, kOutput);
      outputs.emplace_back(data, data + cluster.bytes(r, kOutput));
    }
  }
  return known;
}

/// Memory of a rank that its peers reach.
struct ReachedBuffer {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<RegisteredBuffer> registered;
  bool make(Communicator& communicator, uint64_t bytes, Diagnostics& diagnostics) {
    memory = communicator.device().allocate(bytes, "a buffer", diagnostics);
    if (memory == nullptr) return false;
    registered = communicator.register_buffer(memory->data(), bytes, diagnostics);
    return registered != nullptr;
  }
};

/// All calls of a rank, each beside a GEMM of its own.
struct RankBesideGemm {
  std::shared_ptr<const Program> plan;
  const std::vector<KnownCalls>& sizes;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const std::string said = run(communicator, diagnostics);
    return said.empty() ? "" : said + "\n" + testing::text(diagnostics);
  }

  std::string run(Communicator& communicator, Diagnostics& diagnostics) const {
    uint64_t most = 0;
    for (const KnownCalls& known : sizes) most = std::max(most, known.bytes);
    const auto executable = communicator.load(
        plan, {.max_bytes = most, .zero_copy = true, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return "not loaded";
    ReachedBuffer buffers[2];
    for (ReachedBuffer& buffer : buffers) {
      if (!buffer.make(communicator, most, diagnostics)) return "no buffer";
    }
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    FlagMemory flags(*plan);
    std::string said;
    uint64_t number = 0;
    for (const KnownCalls& known : sizes) {
      for (size_t c = 0; c < known.inputs.size() && said.empty(); ++c, ++number) {
        said =
            call(communicator, *executable, buffers, flags, known, c, number, stream, diagnostics);
      }
    }
    communicator.device().destroy_stream(stream);
    return said;
  }

  std::string call(Communicator& communicator, Executable& executable, ReachedBuffer* buffers,
                   FlagMemory& flags, const KnownCalls& known, size_t c, uint64_t number,
                   StreamHandle stream, Diagnostics& diagnostics) const {
    const uint32_t rank = communicator.rank();
    const Chunking chunking(plan->contract, known.part, plan->granule(Dtype::f32));
    const CallerBuffers callers = caller_buffers(plan->contract, chunking, rank, known.in_place);
    uint8_t* at[2] = {buffers[kInput].memory->data(), buffers[kOutput].memory->data()};
    if (callers.shared) at[1 - callers.outer] = at[callers.outer] + callers.inner_offset;
    const Bytes& input = known.inputs[c][rank];
    // Where no flags say so, it is there before.
    std::ranges::copy(input, at[kInput]);
    const BoundCall bound = executable.bind(
        {.bytes = known.bytes, .input = at[kInput], .output = at[kOutput], .flags = flags.given()},
        diagnostics);
    if (!bound) return "not bound";
    GemmSide gemm(*plan, rank, flags,
                  {.number = number,
                   .chunking = chunking,
                   .input = at[kInput],
                   .output = at[kOutput],
                   .made = input.data(),
                   .seed = number * 16 + rank});
    const bool launched = executable.launch(bound, stream, diagnostics) &&
                          communicator.synchronize(stream, diagnostics);
    if (!launched) std::abort();  // the GEMM might wait forever
    if (const std::string early = gemm.end(); !early.empty()) return early;
    if (!std::ranges::equal(known.outputs[c][rank],
                            std::span(at[kOutput], known.outputs[c][rank].size()))) {
      return fmt::format("call {} of {} bytes gives other bits than the simulator", number,
                         known.bytes);
    }
    return "";
  }
};

void check_beside_gemm(const Program& program, uint64_t calls = kCalls) {
  const auto plan = std::make_shared<const Program>(program);
  const bool may = plan->contract.in_place != InPlace::no && plan->contract.can_alias();
  std::vector<KnownCalls> sizes;
  for (const uint64_t bytes : {uint64_t{64} * plan->ranks.size(), uint64_t{70000}, uint64_t{900}}) {
    sizes.push_back(known_calls(*plan, bytes, may && bytes == 900, calls));
  }
  CHECK(run_threads(static_cast<uint32_t>(plan->ranks.size()), RankBesideGemm{plan, sizes}) == "");
}

TEST_CASE("plans of the library run beside GEMMs on the host device") {
  for (const char* const name : testing::kOverlapPrograms) {
    for (const char* const ranks : {"2", "3"}) {
      INFO(name << " of " << ranks << " ranks");
      check_beside_gemm(testing::flag_plan(testing::overlap_text(name), {{"R", ranks}}));
    }
  }
}

TEST_CASE("a runner of plans plays the other side in sequence, and sees what was not raised") {
  for (const char* const name : testing::kOverlapPrograms) {
    const auto plan = std::make_shared<const Program>(
        testing::flag_plan(testing::overlap_text(name), {{"R", "2"}}));
    INFO(name);
    CHECK(testing::run_processes(2, [&](Communicator& communicator) -> std::string {
            Diagnostics diagnostics;
            RankRunner runner(
                communicator, plan,
                {.load = {.max_bytes = 4096, .zero_copy = true, .proof = ProofPolicy::skip}});
            if (!runner.load(diagnostics)) return testing::text(diagnostics);
            for (const uint64_t bytes : {4096, 400}) {
              const RankResult result =
                  runner.run({.bytes = bytes, .in_place = false, .iterations = 3}, diagnostics);
              if (result.run.status != RunStatus::right) return testing::text(diagnostics);
            }
            return "";
          }) == "");
  }
  Program wrong = testing::flag_plan(testing::overlap_text("allgather_gemm"), {{"R", "2"}});
  wrong.flags[0].raises = 2;
  CHECK(run_threads(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics;
          RankRunner runner(
              communicator, std::make_shared<const Program>(wrong),
              {.load = {.max_bytes = 4096, .zero_copy = true, .proof = ProofPolicy::skip}});
          if (!runner.load(diagnostics)) return testing::text(diagnostics);
          const RankResult result = runner.run({.bytes = 400, .in_place = false}, diagnostics);
          const std::string said = testing::text(diagnostics);
          const bool found =
              result.run.status != RunStatus::right &&
              said.find("the flags 'ready' were not all raised 2 times in each of 1 calls") !=
                  std::string::npos;
          return found ? "" : "it was not found: " + said;
        }) == "");
}

TEST_CASE("flags are raised several times, have 64 bits, and are of the system's scope") {
  check_beside_gemm(testing::flag_plan(testing::overlap_text("gemm_reducescatter"),
                                       {{"R", "2"}, {"C", "3"}, {"K", "5"}}));
  std::string text = testing::overlap_text("gemm_allreduce");
  text.replace(text.find(", raises: K"), 11, ", raises: K, bits: 64, scope: system");
  check_beside_gemm(testing::flag_plan(text, {{"R", "2"}, {"K", "3"}}));
}

TEST_CASE("blocks await flags and raise others, in instances, too") {
  check_beside_gemm(testing::flag_plan(testing::kThrough));
  check_beside_gemm(testing::flag_plan(testing::kThrough, {{"I", "2"}}));
}

TEST_CASE("words of 32 bits wrap") {
  const auto plan = std::make_shared<const Program>(
      testing::flag_plan(testing::kThrough, {{"N", "1"}, {"K", "1048576"}}));
  constexpr uint64_t kWraps = 4100;  // times 2^20 raises are more than 2^32
  const std::string said = run_threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable = communicator.load(
        plan, {.max_bytes = 64, .zero_copy = true, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    FlagMemory flags(*plan);
    uint64_t memory[2] = {};
    for (uint64_t c = 0; c < kWraps; ++c) {
      const BoundCall bound = executable->bind(
          {.bytes = 8, .input = &memory[0], .output = &memory[1], .flags = flags.given()},
          diagnostics);
      if (!bound) return testing::text(diagnostics);
      memory[0] = ~c;
      flags.raise(0, 0, (1u << 20) - 1);
      if (!executable->launch(bound, stream, diagnostics)) return testing::text(diagnostics);
      memory[0] = c;
      flags.raise(0, 0);
      if (!communicator.synchronize(stream, diagnostics)) return testing::text(diagnostics);
      if (memory[1] != c || flags.word(1, 0) != c + 1) return fmt::format("call {}", c);
    }
    communicator.device().destroy_stream(stream);
    return "";
  });
  CHECK(said == "");
}

TEST_CASE("a block that waits for a flag too long says for which, and how often it was raised") {
  const auto plan = std::make_shared<const Program>(testing::flag_plan(
      testing::overlap_text("gemm_reducescatter"), {{"R", "2"}, {"C", "1"}, {"K", "4"}}));
  std::string said[2];
  run_threads(
      2,
      [&](Communicator& communicator) -> std::string {
        Diagnostics diagnostics;
        const auto executable =
            communicator.load(plan, {.max_bytes = 64, .proof = ProofPolicy::skip}, diagnostics);
        if (executable == nullptr) return testing::text(diagnostics);
        const StreamHandle stream = communicator.device().create_stream(diagnostics);
        FlagMemory flags(*plan);
        alignas(16) uint8_t memory[2][64] = {};
        const BoundCall bound = executable->bind(
            {.bytes = 64, .input = memory[0], .output = memory[1], .flags = flags.given()},
            diagnostics);
        if (!bound) return testing::text(diagnostics);
        for (uint32_t c = 0; c < 2; ++c)
          flags.raise(0, c, communicator.rank() == 0 && c == 1 ? 3 : 4);
        const bool ended = executable->launch(bound, stream, diagnostics) &&
                           communicator.synchronize(stream, diagnostics);
        said[communicator.rank()] = ended ? "it ended" : testing::text(diagnostics);
        communicator.device().destroy_stream(stream);
        return "";
      },
      std::chrono::milliseconds(400));
  INFO(said[0]);
  CHECK(said[0].find("'await tiles[1]'") != std::string::npos);
  CHECK(
      said[0].find("waits for the flag 'tiles[1]', whose word is 3 and must be 4: in this call it "
                   "was raised 3 of 4 times; the other side raises it when it has written chunk 1 "
                   "of the input") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
