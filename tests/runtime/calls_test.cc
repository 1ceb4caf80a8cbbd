// Calls that are not the same on all ranks: a collective bind refuses them before anything is
// written, with MSCCLC_CHECK_CALLS=1 every launch does.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "runtime/api/device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint64_t kMax = 1 << 20;

std::shared_ptr<const Program> plan_of(std::string_view name, const char* ranks = "2") {
  const CompiledWorld world(name, {{"R", ranks}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

/// Input and output of a rank, one after the other, with memory after them that nothing may touch.
struct Buffers {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<RegisteredBuffer> registered;
  static constexpr uint64_t kAll = 4 * kMax;

  Buffers(Communicator& communicator, Diagnostics& diagnostics)
      : memory(communicator.device().allocate(kAll, "buffers", diagnostics)),
        registered(communicator.register_buffer(memory->data(), kAll, diagnostics)) {}
  CollectiveCall call(uint64_t bytes) const {
    return {.bytes = bytes, .input = memory->data(), .output = memory->data() + kMax};
  }
  bool is_untouched(uint64_t from) const {
    for (uint64_t i = from; i < kAll; ++i) {
      if (memory->data()[i] != 0) return false;
    }
    return true;
  }
};

/// What ranks of a zero-copy plan report when rank 1 makes another call than rank 0. After it
/// both make the same call: the communicator goes on.
std::string refused(const std::shared_ptr<const Program>& plan,
                    const std::function<void(CollectiveCall&)>& other) {
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics, again;
    const auto loaded =
        communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const Buffers buffers(communicator, diagnostics);
    CollectiveCall call = buffers.call(kMax / 4);
    if (communicator.rank() == 1) other(call);
    const BoundCall bound = loaded->bind(call, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    if (bound) {
      (void)loaded->launch(bound, stream, diagnostics);
      (void)communicator.synchronize(stream, diagnostics);
      if (!buffers.is_untouched(kMax + kMax / 4)) return "memory after the output is written";
    }
    const BoundCall right = loaded->bind(buffers.call(kMax / 4), again);
    if (!right || !loaded->launch(right, stream, again)) return testing::text(again);
    (void)communicator.synchronize(stream, again);
    communicator.device().destroy_stream(stream);
    return testing::text(diagnostics) + testing::text(again);
  });
  CHECK(said[0] == said[1]);
  return said[0];
}

std::string differ(const std::string& in, const std::string& zero, const std::string& one) {
  return fmt::format(
      "error: ranks bind different calls, which differ in {}: rank 0 has call 1 of {}; rank 1 has "
      "call 1 of {}\nnote: all ranks must make the same calls, in the same order\n",
      in, zero, one);
}

TEST_CASE("calls that differ between ranks are refused before anything is written") {
  const auto gather = plan_of("allgather_direct"), reduce = plan_of("allreduce_2shot");
  const std::string gathered = "'allgather_direct' (load 1), ",
                    reduced = "'allreduce_2shot' (load 1), ";
  CHECK(refused(gather, [](CollectiveCall& call) { call.bytes = kMax; }) ==
        differ("the message size", gathered + "262144 bytes of f32, out of place",
               gathered + "1048576 bytes of f32, out of place"));
  CHECK(refused(reduce, [](CollectiveCall& call) { call.dtype = Dtype::i32; }) ==
        differ("the type", reduced + "262144 bytes of f32, sum in f32, out of place",
               reduced + "262144 bytes of i32, sum in i32, out of place"));
  CHECK(refused(reduce, [](CollectiveCall& call) { call.op = ReduceOp::max; }) ==
        differ("the reduction", reduced + "262144 bytes of f32, sum in f32, out of place",
               reduced + "262144 bytes of f32, max in f32, out of place"));
  CHECK(refused(reduce, [](CollectiveCall& call) { call.accumulate = Dtype::f64; }) ==
        differ("the type to add up in", reduced + "262144 bytes of f32, sum in f32, out of place",
               reduced + "262144 bytes of f32, sum in f64, out of place"));
  CHECK(
      refused(reduce, [](CollectiveCall& call) { call.output = const_cast<void*>(call.input); }) ==
      differ("whether it is in place", reduced + "262144 bytes of f32, sum in f32, out of place",
             reduced + "262144 bytes of f32, sum in f32, in place"));
  // What a collective ignores may differ.
  CHECK(refused(gather, [](CollectiveCall& call) { call.op = ReduceOp::max; }) == "");
}

TEST_CASE("ranks that bind different plans get an error") {
  const auto one = plan_of("allgather_direct"), other = plan_of("allreduce_2shot");
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const LoadOptions options{.max_bytes = kMax, .zero_copy = true};
    const auto first = communicator.load(one, options, diagnostics),
               second = communicator.load(other, options, diagnostics);
    if (first == nullptr || second == nullptr) return testing::text(diagnostics);
    const Buffers buffers(communicator, diagnostics);
    (void)(communicator.rank() == 0 ? first : second)->bind(buffers.call(64), diagnostics);
    return testing::text(diagnostics);
  });
  CHECK(said[0] == said[1]);
  CHECK_THAT(said[0], Catch::Contains("which differ in the plan: rank 0 has call 1 of "
                                      "'allgather_direct' (load 1)"));
  CHECK_THAT(said[0], Catch::Contains("rank 1 has call 1 of 'allreduce_2shot' (load 2)"));
}

/// Changes what a rank says of its buffers when it binds a call.
class Liar final : public Bootstrap {
 public:
  explicit Liar(std::unique_ptr<Bootstrap> inner) : inner_(std::move(inner)) {}
  uint32_t rank() const override { return inner_->rank(); }
  uint32_t size() const override { return inner_->size(); }
  bool all_gather(std::span<const uint8_t> own, std::string_view what,
                  std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) override {
    std::vector<uint8_t> said(own.begin(), own.end());
    // At the end: of both sides kind, buffer and offset, then whether staging comes.
    constexpr uint64_t kOffset = Buffers::kAll - 16;
    if (rank() == 1 && what == "bind a call" && said.size() > 40) {
      std::memcpy(said.data() + said.size() - 2 - 8, &kOffset, sizeof kOffset);
    }
    return inner_->all_gather(said, what, all, diagnostics);
  }
  void on_failure(std::function<void(const std::string& why)> fn) override {
    inner_->on_failure(std::move(fn));
  }
  void fail(const std::string& why) override { inner_->fail(why); }

 private:
  const std::unique_ptr<Bootstrap> inner_;
};

TEST_CASE("a call stays inside what peers have registered, whatever they say") {
  const auto wrap = [](std::unique_ptr<Bootstrap> inner) -> std::unique_ptr<Bootstrap> {
    return std::make_unique<Liar>(std::move(inner));
  };
  const auto plan = plan_of("allgather_direct");
  const auto ended = testing::processes(
      2,
      [&](Communicator& communicator) -> std::string {
        Diagnostics diagnostics;
        const auto loaded =
            communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
        if (loaded == nullptr) return testing::text(diagnostics);
        const Buffers buffers(communicator, diagnostics);
        if (loaded->bind(buffers.call(1024), diagnostics)) return "it is bound";
        return testing::text(diagnostics);
      },
      {}, wrap);
  const std::string why =
      "the plan addresses 1024 bytes of rank 1's output, from byte 4194288 of what that rank "
      "shares, which has 4194304\n";
  CHECK(ended[0].said == "error: " + why);
  CHECK(ended[1].said == "error: rank 0 cannot bind a call: " + why);
}

TEST_CASE("a symmetric call outside of registered buffers is refused") {
  const auto plan = plan_of("allgather_direct");
  CHECK(testing::run_threads(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics, outside;
          const auto loaded =
              communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
          if (loaded == nullptr) return testing::text(diagnostics);
          const Buffers buffers(communicator, diagnostics);
          CollectiveCall call = buffers.call(1024);
          call.registered = true;
          call.output = buffers.memory->data() + Buffers::kAll - 1023;
          if (loaded->bind_waits(call) || loaded->bind(call, outside)) return "it is bound";
          const std::string said = testing::text(outside);
          return said == fmt::format(
                             "error: the output of rank {} does not lie in one registered "
                             "buffer\n",
                             communicator.rank())
                     ? ""
                     : said;
        }) == "");
}

TEST_CASE("in place a symmetric call's inner buffer lies elsewhere at each rank") {
  const auto plan = plan_of("allgather_direct");
  CHECK(testing::run_threads(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics;
          const auto loaded =
              communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
          if (loaded == nullptr) return testing::text(diagnostics);
          const Buffers buffers(communicator, diagnostics);
          uint8_t* const out = buffers.memory->data() + 64;
          uint8_t* const in = out + 512 * communicator.rank();
          std::memset(in, 1 + static_cast<int>(communicator.rank()), 512);
          CollectiveCall call = buffers.call(1024);
          call.registered = true;
          call.input = in;
          call.output = out;
          const StreamHandle stream = communicator.device().create_stream(diagnostics);
          const BoundCall bound = loaded->bind(call, diagnostics);
          const bool ran = bound && loaded->launch(bound, stream, diagnostics) &&
                           communicator.synchronize(stream, diagnostics);
          communicator.device().destroy_stream(stream);
          if (!ran) return testing::text(diagnostics);
          return out[0] == 1 && out[511] == 1 && out[512] == 2 && out[1023] == 2 ? ""
                                                                                 : "wrong data";
        }) == "");
}

TEST_CASE("staging that a refused bind has offered is offered again") {
  const auto plan = plan_of("allgather_direct");
  CHECK(testing::run_threads(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics, refused;
          const auto loaded =
              communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
          if (loaded == nullptr) return testing::text(diagnostics);
          std::vector<uint8_t> in(2048), out(4096);
          const auto bind = [&](uint64_t bytes, Diagnostics& said) {
            return loaded->bind({.bytes = bytes, .input = in.data(), .output = out.data()}, said);
          };
          if (bind(communicator.rank() == 0 ? 1024 : 2048, refused)) return "it is bound";
          return bind(1024, diagnostics) ? "" : testing::text(diagnostics);
        }) == "");
}

// Peers have mapped the memory that was there at first: data must not go there.
TEST_CASE("registered memory that was freed and allocated again is not used through old mappings") {
  const auto plan = plan_of("allgather_direct");
  CHECK(testing::run_processes(2, [&](Communicator& communicator) -> std::string {
          Diagnostics diagnostics;
          Device& device = communicator.device();
          const auto loaded =
              communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
          if (loaded == nullptr) return testing::text(diagnostics);
          auto memory = device.allocate(8192, "buffers", diagnostics);
          const auto registered = communicator.register_buffer(memory->data(), 8192, diagnostics);
          memory.reset();
          memory = device.allocate(8192, "buffers", diagnostics);
          if (registered == nullptr || memory == nullptr) return testing::text(diagnostics);
          uint8_t* const in = memory->data();
          uint8_t* const out = in + 4096;
          std::memset(in, static_cast<int>(communicator.rank()) + 1, 512);
          const BoundCall call = loaded->bind(
              {.bytes = 1024, .dtype = Dtype::u8, .input = in, .output = out}, diagnostics);
          const StreamHandle stream = device.create_stream(diagnostics);
          if (!call || !loaded->launch(call, stream, diagnostics)) {
            return testing::text(diagnostics);
          }
          const bool done = communicator.synchronize(stream, diagnostics);
          device.destroy_stream(stream);
          if (!done) return testing::text(diagnostics);
          for (uint32_t i = 0; i < 1024; ++i) {
            if (out[i] != i / 512 + 1) return fmt::format("byte {} is {}", i, out[i]);
          }
          return "";
        }) == "");
}

/// MSCCLC_CHECK_CALLS while it lives.
struct Checked {
  Checked() { ::setenv("MSCCLC_CHECK_CALLS", "1", 1); }
  ~Checked() { ::unsetenv("MSCCLC_CHECK_CALLS"); }
};

/// Loads two plans, with staging: binds are local. Makes a rank's calls in its order.
struct Caller {
  Communicator& communicator;
  Diagnostics diagnostics;
  std::unique_ptr<Executable> loaded[2];
  std::unique_ptr<Memory> memory;
  StreamHandle stream;

  explicit Caller(Communicator& of)
      : communicator(of),
        memory(of.device().allocate(2 * kMax, "buffers", diagnostics)),
        stream(of.device().create_stream(diagnostics)) {}
  ~Caller() { communicator.device().destroy_stream(stream); }
  bool load(const std::shared_ptr<const Program>& one, const std::shared_ptr<const Program>& two) {
    loaded[0] = communicator.load(one, {.max_bytes = kMax}, diagnostics);
    loaded[1] = communicator.load(two, {.max_bytes = kMax}, diagnostics);
    return loaded[0] != nullptr && loaded[1] != nullptr;
  }
  bool launch(int plan, uint64_t bytes) {
    const BoundCall call = loaded[plan]->bind(
        {.bytes = bytes, .input = memory->data(), .output = memory->data() + kMax}, diagnostics);
    return call && loaded[plan]->launch(call, stream, diagnostics);
  }
};

TEST_CASE("MSCCLC_CHECK_CALLS names the first call that differs") {
  const Checked checked;
  const auto one = plan_of("allreduce_ring"), two = plan_of("allreduce_2shot_packets");
  const auto run = [&](const std::function<bool(Caller&, uint32_t rank)>& calls) {
    const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
      Caller caller(communicator);
      if (!caller.load(one, two)) return testing::text(caller.diagnostics);
      const bool right = calls(caller, communicator.rank());
      (void)communicator.synchronize(caller.stream, caller.diagnostics);
      return (right ? "right" : "refused") + ("\n" + testing::text(caller.diagnostics));
    });
    CHECK(said[0] == said[1]);
    return said[0];
  };
  CHECK(run([](Caller& caller, uint32_t) {
          return caller.launch(0, 64) && caller.launch(1, 128) && caller.launch(0, 0);
        }) == "right\n");
  CHECK(run([](Caller& caller, uint32_t rank) {
          return caller.launch(0, 64) && caller.launch(0, 64 + 64 * rank);
        }) ==
        "refused\nerror: ranks launch different calls, which differ in the message size: rank 0 "
        "has call 2 of 'allreduce_ring' (load 1), 64 bytes of f32, sum in f32, out "
        "of place; rank 1 has call 2 of 'allreduce_ring' (load 1), 128 bytes of "
        "f32, sum in f32, out of place\nnote: all ranks must make the same calls, in the same "
        "order\n");
  CHECK_THAT(run([](Caller& caller, uint32_t rank) {
               return caller.launch(0, 64) && caller.launch(static_cast<int>(rank), 64) &&
                      caller.launch(static_cast<int>(1 - rank), 64);
             }),
             Catch::StartsWith("refused\nerror: ranks launch different calls, which differ in the "
                               "plan: rank 0 has call 2 of 'allreduce_ring'"));
}

TEST_CASE("a rank with nothing to move, and another with something, learn that calls differ") {
  const auto one = plan_of("allreduce_ring"), two = plan_of("allreduce_2shot_packets");
  const auto run = [&](const std::function<uint64_t(uint32_t rank, int call)>& bytes) {
    return testing::threads(2, [&](Communicator& communicator) -> std::string {
      Caller caller(communicator);
      if (!caller.load(one, two)) return testing::text(caller.diagnostics);
      for (int i = 0; i < 4; ++i) {
        if (!caller.launch(i % 2, bytes(communicator.rank(), i))) break;
      }
      (void)communicator.synchronize(caller.stream, caller.diagnostics);
      return testing::text(caller.diagnostics);
    });
  };
  CHECK(run([](uint32_t, int call) { return call == 1 ? 0 : 64; }) == std::vector<std::string>(2));
  CHECK(run([](uint32_t, int) { return 0; }) == std::vector<std::string>(2));
  for (const uint32_t empty : {0u, 1u}) {
    for (const std::string& said :
         run([&](uint32_t rank, int call) { return call == 1 && rank == empty ? 0 : 64; })) {
      CHECK_THAT(said, Catch::Contains("ranks launch different calls, which differ in the message "
                                       "size: ") &&
                           Catch::Contains("(load 2), 0 bytes of f32"));
    }
  }
}

TEST_CASE("MSCCLC_CHECK_CALLS names symmetric calls that are not") {
  const Checked checked;
  const auto plan = plan_of("allgather_direct");
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto loaded =
        communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const Buffers buffers(communicator, diagnostics);
    CollectiveCall call = buffers.call(1024);
    call.registered = true;
    call.output = buffers.memory->data() + kMax + 16 * communicator.rank();
    const BoundCall bound = loaded->bind(call, diagnostics);
    if (!bound || loaded->launch(bound, nullptr, diagnostics)) return "it is launched";
    return testing::text(diagnostics);
  });
  CHECK_THAT(said[0],
             Catch::StartsWith("error: ranks launch different calls, which differ in where "
                               "registered buffers lie: rank 0 has call 1 of "
                               "'allgather_direct' (load 1), 1024 bytes of f32"));
  CHECK_THAT(said[0], Catch::Contains(", output at byte 1048576 of registered buffer 0"));
  CHECK_THAT(said[0], Catch::Contains(", output at byte 1048592 of registered buffer 0"));
  CHECK(said[1] == said[0]);
}

/// Two ranks make symmetric calls whose output lies in buffer 0, and at rank 0 in buffer 1 as well;
/// then, if they could, in buffer 1.
std::vector<std::string> call_in_overlapping_buffers(bool first) {
  const auto plan = plan_of("allgather_direct");
  return testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto loaded =
        communicator.load(plan, {.max_bytes = kMax, .zero_copy = true}, diagnostics);
    const Buffers buffers(communicator, diagnostics);
    const auto memory = communicator.device().allocate(8192, "more memory", diagnostics);
    if (loaded == nullptr || memory == nullptr) return testing::text(diagnostics);
    uint8_t* const here = buffers.memory->data() + kMax;
    uint8_t* const there = communicator.rank() == 0 ? here - 256 : memory->data();
    const auto second = communicator.register_buffer(there, 8192, diagnostics);
    CollectiveCall call = buffers.call(1024);
    call.registered = true;
    call.output = first ? here : there + 512;
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    const BoundCall bound = loaded->bind(call, diagnostics);
    const bool ran = second != nullptr && bound && loaded->launch(bound, stream, diagnostics) &&
                     communicator.synchronize(stream, diagnostics);
    communicator.device().destroy_stream(stream);
    return ran ? "" : testing::text(diagnostics);
  });
}

TEST_CASE("calls in memory that a rank has registered twice say so where they differ") {
  const auto says_why = Catch::Contains(
      "byte 256 of registered buffer 1 is byte 1048576 of registered buffer 0 as well on rank 0, "
      "and not on all ranks: a rank takes such a place for one of the buffer that it has "
      "registered last");
  const auto says_what = Catch::Contains(
      "register memory once, or so that buffers overlap alike on all ranks, or deregister one of "
      "the two on all ranks");
  {
    const Checked checked;
    for (const std::string& said : call_in_overlapping_buffers(true)) {
      CHECK_THAT(said, Catch::StartsWith("error: ranks launch different calls, which differ in "
                                         "where registered buffers lie"));
      CHECK_THAT(said, says_why && says_what);
    }
  }
  for (const std::string& said : call_in_overlapping_buffers(true)) {
    CHECK_THAT(said, says_why && says_what);
  }
  for (const std::string& said : call_in_overlapping_buffers(false)) CHECK(said == "");
}

TEST_CASE("MSCCLC_CHECK_CALLS names a rank that makes fewer calls") {
  const Checked checked;
  const auto one = plan_of("allreduce_ring"), two = plan_of("allreduce_2shot_packets");
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Caller caller(communicator);
    if (!caller.load(one, two)) return testing::text(caller.diagnostics);
    if (communicator.rank() == 0) caller.launch(0, 64);
    if (communicator.rank() == 1) caller.load(one, two);
    return testing::text(caller.diagnostics);
  });
  CHECK_THAT(said[0], Catch::Contains("rank 1 is at 'take the plan', rank 0 at 'launch a call'"));
}

}  // namespace
}  // namespace mscclc
