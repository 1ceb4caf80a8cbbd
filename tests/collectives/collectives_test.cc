// Collectives by name on the host device, against their definitions written down once more.
#include "runtime/api/collectives.h"

#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/collectives/definition.h"
#include "tests/collectives/ranks_of_one_thread.h"
#include "tests/helpers/runtime/go_ahead.h"
#include "tests/helpers/runtime/undrained_device.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::expected;
using testing::in_place_offset;
using testing::kDefinedKinds;
using testing::RanksOfOneThread;
using testing::value;

using Kind = CollectiveKind;
constexpr uint32_t kRanks = 3;

/// Memory of a rank that the host reads, too.
struct Buffer {
  std::unique_ptr<Memory> memory;
  int32_t* data = nullptr;

  Buffer(Communicator& communicator, uint64_t elements, Diagnostics& diagnostics)
      : memory(communicator.device().allocate(elements * 4 + 64, "a buffer", diagnostics)),
        data(reinterpret_cast<int32_t*>(memory->data())) {}
};

/// How many elements input and output have at a rank.
uint64_t elements(Kind kind, Side side, uint64_t count, uint32_t ranks) {
  return info(kind).has_rows(side) ? count * ranks : count;
}
bool has(const CollectiveCall& call, Side side, uint32_t rank) {
  return !info(call.kind).side(side).only_at_root || rank == call.root;
}

/// One rank's call with test values, by a function that makes it.
std::string try_call(Collectives& collectives, CollectiveCall call, bool in_place) {
  Communicator& communicator = collectives.communicator();
  const uint32_t rank = communicator.rank(), ranks = communicator.size();
  Diagnostics diagnostics;
  const uint64_t in = elements(call.kind, Side::input, call.count, ranks);
  const uint64_t out = elements(call.kind, Side::output, call.count, ranks);
  Buffer input(communicator, in + out, diagnostics), output(communicator, in + out, diagnostics);
  int32_t* from = input.data + 1;  // aligned to elements, and no more
  int32_t* to = output.data + 3;
  if (in_place) {
    const int64_t offset = in_place_offset(call, rank);
    from = output.data + 1 + (offset < 0 ? -offset : 0);
    to = output.data + 1 + (offset > 0 ? offset : 0);
  }
  if (has(call, Side::input, rank)) {
    for (uint64_t i = 0; i < in; ++i) from[i] = value(rank, i);
    call.input = from;
  }
  if (has(call, Side::output, rank)) call.output = to;
  call.dtype = Dtype::i32;
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  const bool done =
      collectives.call(call, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  for (uint64_t i = 0; i < out && call.output != nullptr; ++i) {
    if (to[i] == expected(call, rank, ranks, i)) continue;
    return fmt::format("{} of {}{}: element {} is {}, not {}", name(call.kind), call.count,
                       in_place ? " in place" : "", i, to[i], expected(call, rank, ranks, i));
  }
  return "";
}

std::string with_collectives(Communicator& communicator,
                             const std::function<std::string(Collectives&)>& body,
                             const CollectivesOptions& options = {}) {
  Diagnostics diagnostics;
  const auto made =
      Collectives::create(communicator, testing::compiled_in_library(), options, diagnostics);
  return made == nullptr ? testing::text(diagnostics) : body(*made);
}

std::string all_kinds(Collectives& collectives) {
  const uint32_t last = collectives.communicator().size() - 1;
  for (const Kind kind : kDefinedKinds) {
    for (const uint64_t count : {0, 1, 7, 3000}) {
      for (const bool in_place : {false, true}) {
        if (in_place && (!info(kind).can_alias || kind == Kind::alltoall)) continue;
        std::string said = try_call(
            collectives, {.kind = kind, .count = count, .root = last, .shift = -1}, in_place);
        if (!said.empty()) return said;
      }
    }
  }
  return "";
}

TEST_CASE("every collective, by its name") {
  const auto body = [](Communicator& c) { return with_collectives(c, all_kinds); };
  CHECK(testing::run_threads(kRanks, body) == "");
  CHECK(testing::run_processes(2, body) == "");
  CHECK(testing::run_threads(1, body) == "");
}

TEST_CASE("a plan is loaded once, and again where its room is too small") {
  const auto body = [](Collectives& collectives) -> std::string {
    for (const uint64_t count : {10, 20, 10}) {
      std::string said = try_call(collectives, {.kind = Kind::allreduce, .count = count}, false);
      if (!said.empty()) return said;
    }
    if (collectives.use().plans != 1) return "small calls share a plan";
    for (const uint64_t count : {300000, 2000000, 300000}) {
      std::string said = try_call(collectives, {.kind = Kind::broadcast, .count = count}, false);
      if (!said.empty()) return said;
    }
    return "";
  };
  CHECK(testing::run_threads(2, [&](Communicator& c) { return with_collectives(c, body); }) == "");
}

TEST_CASE("create() loads what small calls need") {
  const auto body = [](Collectives& collectives) -> std::string {
    const uint64_t before = collectives.use().plans;
    if (before == 0) return "nothing is loaded";
    std::string said = try_call(collectives, {.kind = Kind::allreduce, .count = 1000}, true);
    return collectives.use().plans == before ? said : "a call has loaded a plan";
  };
  const CollectivesOptions options{.ready_bytes = 4096};
  CHECK(testing::run_threads(
            2, [&](Communicator& c) { return with_collectives(c, body, options); }) == "");
}

TEST_CASE("alltoallv: rows of any lengths, anywhere") {
  const std::vector<uint64_t> counts = {5, 0, 70, 1, 2, 3, 0, 900, 0};  // from s to d: s * 3 + d
  const auto body = [&](Collectives& collectives, bool spread) -> std::string {
    Communicator& communicator = collectives.communicator();
    const uint32_t rank = communicator.rank();
    Diagnostics diagnostics;
    Buffer input(communicator, 4000, diagnostics), output(communicator, 4000, diagnostics);
    std::vector<uint64_t> in(kRanks), out(kRanks);
    for (uint32_t p = 1; p < kRanks; ++p) {
      in[p] = spread ? p * 1000 : in[p - 1] + counts[rank * kRanks + p - 1];
      out[p] = spread ? p * 1100 + 1 : out[p - 1] + counts[(p - 1) * kRanks + rank];
    }
    for (uint32_t d = 0; d < kRanks; ++d) {
      for (uint64_t i = 0; i < counts[rank * kRanks + d]; ++i) {
        input.data[in[d] + i] = value(rank * 10 + d, i);
      }
    }
    CollectiveCall call{.kind = Kind::alltoallv,
                        .dtype = Dtype::i32,
                        .input = input.data,
                        .output = output.data,
                        .counts = counts};
    if (spread) {
      call.input_offsets = in;
      call.output_offsets = out;
    }
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    const bool done = collectives.call(call, stream, diagnostics) &&
                      communicator.synchronize(stream, diagnostics);
    communicator.device().destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    uint64_t written = 0;
    for (uint32_t s = 0; s < kRanks; ++s) {
      for (uint64_t i = 0; i < counts[s * kRanks + rank]; ++i, ++written) {
        if (output.data[out[s] + i] != value(s * 10 + rank, i)) return "a row is wrong";
      }
    }
    const auto others = std::count(output.data, output.data + 4000, 0);
    return others == static_cast<long>(4000 - written) ? "" : "something else is written";
  };
  for (const bool spread : {false, true}) {
    CHECK(testing::run_threads(kRanks, [&](Communicator& c) {
            return with_collectives(c, [&](Collectives& x) { return body(x, spread); });
          }) == "");
  }
}

// Each call doubles what the one before it has left, on another stream.
TEST_CASE("calls on several streams keep their order") {
  const auto body = [](Collectives& collectives) -> std::string {
    Communicator& communicator = collectives.communicator();
    Diagnostics diagnostics;
    Buffer buffer(communicator, 64, diagnostics);
    buffer.data[5] = 1;
    StreamHandle streams[3];
    for (StreamHandle& s : streams) s = communicator.device().create_stream(diagnostics);
    bool done = true;
    for (int i = 0; i < 24; ++i) {
      done = done && collectives.call({.kind = Kind::allreduce,
                                       .count = 64,
                                       .dtype = Dtype::i32,
                                       .input = buffer.data,
                                       .output = buffer.data},
                                      streams[i % 3], diagnostics);
      if (i % 7 == 0) {
        done = done && collectives.call({.kind = Kind::barrier}, streams[1], diagnostics);
      }
    }
    for (const StreamHandle s : streams) {
      done = communicator.synchronize(s, diagnostics) && done;
      communicator.device().destroy_stream(s);
    }
    if (!done) return testing::text(diagnostics);
    return buffer.data[5] == 1 << 24 ? "" : fmt::format("{}", buffer.data[5]);
  };
  CHECK(testing::run_threads(2, [&](Communicator& c) { return with_collectives(c, body); }) == "");
}

TEST_CASE("registered buffers are bound once") {
  const auto body = [](Collectives& collectives) -> std::string {
    Communicator& communicator = collectives.communicator();
    Diagnostics diagnostics;
    constexpr uint64_t kCount = 1 << 20;  // large enough for plans that read peers' buffers
    Buffer buffer(communicator, 4 * kCount, diagnostics);
    const auto number = collectives.register_buffer(buffer.data, 16 * kCount, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    bool done = number.has_value();
    for (int i = 0; i < 3 && done; ++i) {
      for (uint64_t j = 0; j < kCount; ++j) buffer.data[j] = value(communicator.rank(), i + j);
      done = collectives.call({.kind = Kind::allgather,
                               .count = kCount,
                               .dtype = Dtype::i32,
                               .input = buffer.data,
                               .output = buffer.data + kCount,
                               .registered = true},
                              stream, diagnostics) &&
             communicator.synchronize(stream, diagnostics);
      for (uint64_t j = 0; j < 2 * kCount && done; ++j) {
        const auto from = static_cast<uint32_t>(j / kCount);
        if (buffer.data[kCount + j] != value(from, i + j % kCount)) return "wrong";
      }
      // No rank writes inputs that peers still read.
      done = done && communicator.bootstrap().barrier("read", diagnostics);
    }
    communicator.device().destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    if (collectives.use().cached != 1) return fmt::format("{} kept", collectives.use().cached);
    if (!collectives.deregister_buffer(*number, diagnostics) ||
        collectives.deregister_buffer(*number, diagnostics)) {
      return "deregistered twice, or never";
    }
    return collectives.use().cached == 0 ? "" : "calls of a buffer that has gone are kept";
  };
  CHECK(testing::run_threads(2, [&](Communicator& c) { return with_collectives(c, body); }) == "");
}

TEST_CASE("a call does not outlive the registered buffer that it is bound to") {
  const auto body = [](Collectives& collectives) -> std::string {
    Communicator& communicator = collectives.communicator();
    Diagnostics diagnostics;
    constexpr uint64_t kCount = 1 << 20;
    Buffer buffer(communicator, 3 * kCount, diagnostics);
    const auto all = collectives.register_buffer(buffer.data, 12 * kCount, diagnostics);
    // Both of the call's buffers begin in it, and it is too short for the output.
    const auto part = collectives.register_buffer(buffer.data, 4 * kCount + 64, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    const CollectiveCall call{.kind = Kind::allgather,
                              .count = kCount,
                              .dtype = Dtype::i32,
                              .input = buffer.data,
                              .output = buffer.data + kCount,
                              .registered = true};
    bool done = all && part && collectives.call(call, stream, diagnostics) &&
                communicator.synchronize(stream, diagnostics) &&
                communicator.bootstrap().barrier("done", diagnostics);
    const uint64_t kept = collectives.use().cached;
    done = done && collectives.deregister_buffer(*all, diagnostics);
    communicator.device().destroy_stream(stream);
    if (!done) return testing::text(diagnostics);
    return kept == 1 && collectives.use().cached == 0 ? "" : "it is kept, or was not";
  };
  CHECK(testing::run_threads(2, [&](Communicator& c) { return with_collectives(c, body); }) == "");
}

TEST_CASE("memory of collectives stays where the device does not wait for their calls") {
  for (const bool drains : {true, false}) {
    const auto left = std::make_shared<std::atomic<int>>(0);
    const auto open = [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      auto device = testing::open_host(rank, diagnostics);
      if (drains) return device;
      return std::make_unique<testing::UndrainedDevice>(std::move(device), "buffers of collectives",
                                                        left);
    };
    const auto body = [](Collectives& collectives) -> std::string {
      Diagnostics diagnostics;
      Communicator& communicator = collectives.communicator();
      const StreamHandle stream = communicator.device().create_stream(diagnostics);
      const bool done = collectives.call({.kind = Kind::barrier}, stream, diagnostics) &&
                        communicator.synchronize(stream, diagnostics);
      communicator.device().destroy_stream(stream);
      return done ? "" : testing::text(diagnostics);
    };
    CHECK(testing::run_threads(
              2, [&](Communicator& c) { return with_collectives(c, body); }, {}, open) == "");
    CHECK(*left == (drains ? 0 : 2));
  }
}

// Rank 1 makes its second call when rank 0 has made its own, with buffers that no call has had.
TEST_CASE("calls in registered buffers wait for no other rank") {
  testing::GoAhead made;
  const auto body = [&](Collectives& collectives) -> std::string {
    Communicator& communicator = collectives.communicator();
    const uint32_t rank = communicator.rank();
    const testing::GivenAtEnd at_least(rank == 0 ? &made : nullptr);
    Diagnostics diagnostics;
    constexpr uint64_t kCount = 1 << 20;
    Buffer buffer(communicator, 8 * kCount, diagnostics);
    if (!collectives.register_buffer(buffer.data, 32 * kCount, diagnostics))
      return "not registered";
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    CollectiveCall call{.kind = Kind::allgather, .count = kCount, .dtype = Dtype::i32};
    call.registered = true;
    for (int i = 0; i < 2; ++i) {
      call.input = buffer.data + i * 4 * kCount;
      call.output = buffer.data + (i * 4 + 1) * kCount;
      buffer.data[i * 4 * kCount + 7] = value(rank, i);
      if (i == 1 && rank == 1) made.wait();
      const bool waits = collectives.waits_for_ranks(call, stream);
      const bool done = collectives.call(call, stream, diagnostics);
      if (i == 1 && rank == 0) made.give();
      if (!done) return testing::text(diagnostics);
      if (waits != (i == 0)) return "it waits, or does not for its plan";
      if (!communicator.synchronize(stream, diagnostics)) return testing::text(diagnostics);
      for (uint32_t r = 0; r < 2; ++r) {
        if (buffer.data[(i * 4 + 1 + r) * kCount + 7] != value(r, i)) return "wrong";
      }
    }
    communicator.device().destroy_stream(stream);
    return collectives.use().cached == 2 ? "" : "no call of registered buffers";
  };
  CHECK(testing::run_threads(2, [&](Communicator& c) { return with_collectives(c, body); }) == "");
}

/// The whole library; counts how often it is asked.
class CountedLibrary final : public PlanProvider {
 public:
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics& diagnostics) override {
    ++asked;
    return testing::compiled_in_library()->pick(request, passed_over, diagnostics);
  }
  std::atomic<size_t> asked = 0;
};

TEST_CASE("one thread drives several ranks") {
  const auto plans = std::make_shared<CountedLibrary>();
  RanksOfOneThread ranks(kRanks, plans);
  std::vector<Buffer> in, out;
  std::vector<RankCall> calls;
  for (uint32_t r = 0; r < kRanks; ++r) {
    in.emplace_back(*ranks.communicators[r], 3000, ranks.diagnostics);
    out.emplace_back(*ranks.communicators[r], 9000, ranks.diagnostics);
    for (uint64_t i = 0; i < 3000; ++i) in[r].data[i] = value(r, i);
  }
  for (int again = 0; again < 2; ++again) {
    calls.clear();
    for (uint32_t r = 0; r < kRanks; ++r) {  // a rank's calls follow one another in the list
      calls.push_back({ranks.collectives[r].get(),
                       {.kind = Kind::allreduce,
                        .count = 3000,
                        .dtype = Dtype::i32,
                        .input = in[r].data,
                        .output = out[r].data},
                       ranks.streams[r]});
      calls.push_back({ranks.collectives[r].get(),
                       {.kind = Kind::allgather,
                        .count = 1000,
                        .dtype = Dtype::i32,
                        .input = out[r].data,
                        .output = out[r].data + 4000},
                       ranks.streams[r]});
    }
    plans->asked = 0;
    const bool done = call_together(calls, ranks.diagnostics);
    INFO(testing::text(ranks.diagnostics));
    REQUIRE(done);
    CHECK(plans->asked == calls.size());
    for (uint32_t r = 0; r < kRanks; ++r) {
      REQUIRE(ranks.communicators[r]->synchronize(ranks.streams[r], ranks.diagnostics));
    }
  }
  for (uint32_t r = 0; r < kRanks; ++r) {
    for (uint64_t i = 0; i < 1000; ++i) {
      const int32_t sum = value(0, i) + value(1, i) + value(2, i);
      REQUIRE(out[r].data[i] == sum);
      REQUIRE(out[r].data[4000 + 2000 + i] == sum);
    }
  }
}

TEST_CASE("a list with a wrong call launches nothing") {
  RanksOfOneThread ranks(2);
  Buffer buffer(*ranks.communicators[0], 10, ranks.diagnostics);
  buffer.data[0] = 7;
  const CollectiveCall right{.kind = Kind::allreduce,
                             .count = 1,
                             .dtype = Dtype::i32,
                             .input = buffer.data,
                             .output = buffer.data};
  CollectiveCall wrong = right;
  wrong.output = nullptr;
  const std::vector<RankCall> calls = {{ranks.collectives[0].get(), right, ranks.streams[0]},
                                       {ranks.collectives[1].get(), wrong, ranks.streams[1]}};
  CHECK_FALSE(call_together(calls, ranks.diagnostics));
  CHECK(testing::text(ranks.diagnostics) ==
        "error: allreduce: rank 1 needs an output, but gives nullptr\n");
  REQUIRE(ranks.communicators[0]->synchronize(ranks.streams[0], ranks.diagnostics));
  CHECK(buffer.data[0] == 7);
  const std::vector<RankCall> no_rank = {{nullptr, right, nullptr}};
  Diagnostics diagnostics;
  CHECK_FALSE(call_together(no_rank, diagnostics));
  CHECK(testing::text(diagnostics) == "error: a call names no rank\n");
}

/// What the ranks hear if rank 1 makes another call than rank 0.
std::vector<std::string> said_to_both(const CollectiveCall& first, const CollectiveCall& other) {
  const auto body = [&](Collectives& collectives) {
    const bool second = collectives.communicator().rank() == 1;
    return try_call(collectives, second ? other : first, false);
  };
  return testing::threads(2, [&](Communicator& c) { return with_collectives(c, body); });
}

/// The same on both.
std::string said_of(const CollectiveCall& first, const CollectiveCall& other) {
  const auto said = said_to_both(first, other);
  CHECK(said[0] == said[1]);
  return said[0];
}

TEST_CASE("ranks that make different calls learn which") {
  const auto differ = [](const std::string& first, const std::string& other) {
    return fmt::format(
        "error: ranks make different calls: rank 0 makes {}; rank 1 makes {}\n"
        "note: all ranks must make the same calls, in the same order\n",
        first, other);
  };
  const CollectiveCall small{.kind = Kind::allreduce, .count = 8};
  CHECK(said_of(small, {.kind = Kind::allreduce, .count = 1 << 22}) ==
        differ("an allreduce of 8 elements of 'i32', sum",
               "an allreduce of 4194304 elements of 'i32', sum"));
  // One plan would serve both.
  CHECK(said_of(small, {.kind = Kind::allreduce, .count = 9, .op = ReduceOp::max}) ==
        differ("an allreduce of 8 elements of 'i32', sum",
               "an allreduce of 9 elements of 'i32', max"));
  CHECK(said_of({.kind = Kind::sendrecv, .count = 1}, {.kind = Kind::broadcast, .count = 1}) ==
        differ("a sendrecv of 1 element of 'i32', shift 1",
               "a broadcast of 1 element of 'i32', root 0"));
}

TEST_CASE("MSCCLC_CHECK_CALLS finds a call without elements among others") {
  ::setenv("MSCCLC_CHECK_CALLS", "1", 1);
  const CollectiveCall nothing{.kind = Kind::allreduce, .count = 0};
  CHECK(said_of(nothing, nothing) == "");
  const auto said = said_to_both(nothing, {.kind = Kind::allreduce, .count = 8});
  ::unsetenv("MSCCLC_CHECK_CALLS");
  const std::string differ =
      "error: ranks make different calls: rank 1 is at 'take the plan', rank 0 at 'make a call "
      "that needs no plan'\n";
  CHECK(said[0] == differ);
  CHECK(said[1] == differ + "note: rank 1 makes an allreduce of 8 elements of 'i32', sum\n");
}

}  // namespace
}  // namespace mscclc
