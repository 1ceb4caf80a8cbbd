// What a caller must not do is an error that says so; what looks forbidden and is not, works.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "compiler/compile.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

std::shared_ptr<const Program> ring() {
  const CompiledWorld world("allreduce_ring", {{"R", "2"}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

TEST_CASE("no bootstrap, no device") {
  Diagnostics diagnostics;
  CHECK(Communicator::create(nullptr, make_host_device(diagnostics), {}, diagnostics) == nullptr);
  CHECK(testing::text(diagnostics) == "error: a communicator needs a bootstrap; it is nullptr\n");
  const auto open = [](uint32_t rank, Diagnostics& d) {
    return rank == 0 ? make_host_device(d) : nullptr;
  };
  auto bootstraps = make_in_process_bootstraps(2, testing::kPatience);
  std::string said[2];
  const auto be = [&](uint32_t rank) {
    Diagnostics problems;
    const auto made =
        Communicator::create(std::move(bootstraps[rank]), open(rank, problems), {}, problems);
    said[rank] = made != nullptr ? "it is made" : testing::text(problems);
  };
  std::thread other(be, 1);
  be(0);
  other.join();
  CHECK(said[1] == "error: a communicator needs a device; it is nullptr\n");
  CHECK(said[0] ==
        "error: rank 1 cannot create a communicator: a communicator needs a device; it is "
        "nullptr\n");
}

TEST_CASE("no plan") {
  const auto plan = ring();
  const auto said = testing::threads(2, [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto given = communicator.rank() == 0 ? nullptr : plan;
    const auto loaded = communicator.load(given, {}, diagnostics);
    return loaded != nullptr ? "it is loaded" : testing::text(diagnostics);
  });
  CHECK(said[0] == "error: there is no plan; it is nullptr\n");
  CHECK(said[1] == "error: rank 0 cannot take the plan: there is no plan; it is nullptr\n");
}

TEST_CASE("a plan for messages that no machine has") {
  const auto plan = ring();
  for (const uint64_t bytes : {uint64_t{1} << 48, UINT64_MAX - 7, UINT64_MAX}) {
    const auto said = testing::threads(2, [&](Communicator& communicator) {
      Diagnostics diagnostics;
      const auto loaded = communicator.load(plan, {.max_bytes = bytes}, diagnostics);
      return loaded != nullptr ? "it is loaded" : testing::text(diagnostics);
    });
    const std::string wanted =
        "error: a plan for messages of " + std::to_string(bytes) + " bytes, which is 256 TiB";
    for (const std::string& of_rank : said) CHECK(of_rank.starts_with(wanted));
  }
}

TEST_CASE("a call of another kind than its plan's, or of a count instead of bytes") {
  const auto plan = ring();
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics loading, other_kind, count_only, right;
    const auto loaded = communicator.load(plan, {.max_bytes = 64}, loading);
    if (loaded == nullptr) return testing::text(loading);
    const auto memory = communicator.device().allocate(128, "buffers", loading);
    CollectiveCall call = {.bytes = 64, .input = memory->data(), .output = memory->data() + 64};
    call.kind = CollectiveKind::broadcast;
    if (loaded->bind(call, other_kind)) return "a broadcast is bound to an allreduce";
    call.kind = CollectiveKind::allreduce;
    call.bytes = 0;
    call.count = 16;
    if (loaded->bind(call, count_only)) return "a count is bound";
    call.bytes = 64;
    if (!loaded->bind(call, right)) return testing::text(right);
    for (const Diagnostics* refused : {&other_kind, &count_only}) {
      if (refused->all().at(0).code != "bad-call") return "refused by another code";
    }
    return testing::text(other_kind) + testing::text(count_only);
  });
  for (const std::string& of_rank : said) {
    CHECK(of_rank ==
          "error: a call of broadcast; the plan is one of allreduce\n"
          "error: a call of a plan says how many bytes its message has, not a count\n");
  }
}

/// Three ranks' sum in their order, in two ops: of f32, nothing is rounded that would not be.
const char* const kSumInTwoOps = R"(program t
collective custom(ranks: 3, input: 1, output: 1, order: ranks)
ensure     output[0] at 0 = reduce(input[0] at p for p in 0..3)
launch     fuse: false
rank 0 {
  buffer s[1..3] packets: LL16, copies: 2
  buffer t[1]
  channel c[p in 1..3] = memory(p) to c
  tb 0 {
    reduce_packets t[0] <- input[0], s[1]
    reduce_packets output[0] <- t[0], s[2]
    signal c[1], c[2] relaxed
  }
}
rank r in 1..3 {
  channel c = memory(0) to c[r]
  tb 0 { put_packets c.s[r] <- input[0] ; wait c relaxed }
}
)";

TEST_CASE("a plan that promises an order takes no type whose sums it rounds on the way") {
  Sources sources;
  const FileId file = sources.add("t.mscl", kSumInTwoOps);
  Diagnostics diagnostics;
  auto compiled = compile(sources, file, {}, {}, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(compiled);
  const auto plan = std::make_shared<const Program>(*std::move(compiled));
  const auto said = testing::threads(3, [&](Communicator& communicator) -> std::string {
    std::string text;
    for (const bool keeps : {true, false}) {
      Diagnostics loading;
      const auto loaded = communicator.load(plan, {.max_bytes = 64, .keeps_order = keeps}, loading);
      if (loaded == nullptr) return testing::text(loading);
      const auto memory = communicator.device().allocate(128, "buffers", loading);
      for (const Dtype dtype : {Dtype::f32, Dtype::i32, Dtype::bf16}) {
        Diagnostics problems;
        const bool bound = static_cast<bool>(loaded->bind(
            {.bytes = 64, .dtype = dtype, .input = memory->data(), .output = memory->data() + 64},
            problems));
        text += bound ? "bound\n" : testing::text(problems);
      }
    }
    return text;
  });
  for (const std::string& of_rank : said) {
    CHECK(of_rank ==
          "bound\nbound\n"
          "error: the plan promises 'order: ranks' and rounds sums of 'bf16' on the way: take a "
          "type that is added up in itself, such as f32, or a plan that adds up in one op\n"
          "bound\nbound\nbound\n");
  }
}

// Rank 0 is inside load() until rank 1 comes; rank 1 comes when a second thread of rank 0 has got
// its error.
TEST_CASE("two threads inside one communicator get an error") {
  const auto plan = ring();
  std::atomic<bool> refused = false;
  std::string second;
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    std::thread other;
    if (communicator.rank() == 0) {
      other = std::thread([&] {
        Diagnostics own;
        while (communicator.check(own)) std::this_thread::yield();
        second = testing::text(own);
        refused = true;
      });
    } else {
      while (!refused) std::this_thread::yield();
    }
    std::unique_ptr<Executable> loaded;
    while (loaded == nullptr) {  // the other thread may have been inside just now
      diagnostics = {};
      loaded = communicator.load(plan, {.max_bytes = 64}, diagnostics);
      if (loaded == nullptr && diagnostics.all()[0].code != "two-threads") break;
    }
    if (other.joinable()) other.join();
    return loaded == nullptr ? testing::text(diagnostics) : "";
  });
  CHECK(said[0] == "");
  CHECK(said[1] == "");
  CHECK(second ==
        "error: another thread is inside this communicator\n"
        "note: a communicator, and everything made from it, is for one thread at a time; only "
        "abort() may come from any\n");
}

// Rank 0's call waits for rank 1's while its executable goes. Rank 1 launches after that.
TEST_CASE("an executable may be destroyed while its calls run") {
  const auto plan = ring();
  std::atomic<bool> destroyed = false;
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    constexpr uint64_t kBytes = 4096;
    const auto memory = device.allocate(2 * kBytes, "buffers", diagnostics);
    auto loaded = communicator.load(plan, {.max_bytes = kBytes}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    auto* in = reinterpret_cast<float*>(memory->data());
    auto* out = reinterpret_cast<float*>(memory->data() + kBytes);
    std::fill_n(in, kBytes / sizeof(float), 1.0f + static_cast<float>(communicator.rank()));
    const StreamHandle stream = device.create_stream(diagnostics);
    while (communicator.rank() == 1 && !destroyed) std::this_thread::yield();
    const BoundCall call = loaded->bind({.bytes = kBytes, .input = in, .output = out}, diagnostics);
    if (!call || !loaded->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    loaded.reset();
    destroyed = true;
    const bool done = communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    return std::count(out, out + kBytes / sizeof(float), 3.0f) == kBytes / sizeof(float) ? ""
                                                                                         : "wrong";
  };
  CHECK(testing::run_threads(2, body) == "");
}

// Rank 1's call writes to rank 0's buffer, and waits for rank 0's call, while rank 1's registration
// goes; rank 0 launches after that. As processes: what is unmapped is gone.
TEST_CASE("a registered buffer may be destroyed while calls run") {
  const CompiledWorld world("allgather_direct", {{"R", "2"}});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    constexpr uint64_t kBytes = 8192, kCount = kBytes / sizeof(uint32_t);
    const uint32_t rank = communicator.rank();
    const auto memory = device.allocate(2 * kBytes, "buffers", diagnostics);
    auto buffer = communicator.register_buffer(memory->data(), 2 * kBytes, diagnostics);
    const auto loaded =
        communicator.load(plan, {.max_bytes = kBytes, .zero_copy = true}, diagnostics);
    if (buffer == nullptr || loaded == nullptr) return testing::text(diagnostics);
    auto* in = reinterpret_cast<uint32_t*>(memory->data());
    auto* out = reinterpret_cast<uint32_t*>(memory->data() + kBytes);
    std::fill_n(in, kCount / 2, rank + 1);
    const BoundCall call = loaded->bind(
        {.bytes = kBytes, .dtype = Dtype::u32, .input = in, .output = out}, diagnostics);
    const StreamHandle stream = device.create_stream(diagnostics);
    if (!call || stream == nullptr) return testing::text(diagnostics);
    const auto launch = [&] { return loaded->launch(call, stream, diagnostics); };
    if (rank == 1 && !launch()) return testing::text(diagnostics);
    if (rank == 1) buffer.reset();
    if (!communicator.bootstrap().barrier("rank 1 has let go", diagnostics)) return "no barrier";
    if (rank == 0 && !launch()) return testing::text(diagnostics);
    const bool done = communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    const bool right = std::count(out, out + kCount / 2, 1u) == kCount / 2 &&
                       std::count(out + kCount / 2, out + kCount, 2u) == kCount / 2;
    return right && communicator.bootstrap().barrier("all have looked", diagnostics) ? "" : "wrong";
  };
  CHECK(testing::run_processes(2, body) == "");
}

// Rank 0's call waits for rank 1's while its communicator goes, which waits for the call.
TEST_CASE("a communicator may be destroyed while calls run") {
  const auto plan = ring();
  std::atomic<bool> launched = false;
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    static std::unique_ptr<Memory> memory[2];
    auto& own = memory[communicator.rank()];
    own = communicator.device().allocate(8192, "buffers", diagnostics);
    auto loaded = communicator.load(plan, {.max_bytes = 4096}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const BoundCall call = loaded->bind(
        {.bytes = 4096, .input = own->data(), .output = own->data() + 4096}, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    while (communicator.rank() == 1 && !launched) std::this_thread::yield();
    if (!call || !loaded->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    launched = true;
    return "";  // the stream is the device's, which goes with the communicator
  };
  CHECK(testing::run_threads(2, body) == "");
}

}  // namespace
}  // namespace mscclc
