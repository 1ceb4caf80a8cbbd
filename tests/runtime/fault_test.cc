// What ranks do when one of them dies, gives up or hangs: all others end with an error that says
// so, in bounded time, and nothing is left behind.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <thread>

#include "compiler/compile.h"
#include "runtime/support/process/proc.h"
#include "tests/helpers/runtime/go_ahead.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/shared_value.h"
#include "tests/helpers/runtime/short_of_memory.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/stuck_plan.h"
#include "tests/runtime/unlaunched.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;
using testing::Outcome;

std::shared_ptr<const Program> plan_to_break(std::string_view name, const char* ranks) {
  const CompiledWorld world(name, {{"R", ranks}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

/// Longer than a test may take: what waits so long does not end.
constexpr milliseconds kLongWait{3'600'000};

/// Those of ours: other programs come and go meanwhile.
std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("mscclc") != name.npos) names.insert(name);
  }
  return names;
}

/// The steps of a rank's life, in order. Dies at step `last`, if it is the victim.
struct Life {
  std::shared_ptr<const Program> plan;
  uint32_t victim;
  int last;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    int step = 0;
    const auto live = [&] {
      if (communicator.rank() == victim && step++ == last) raise(SIGKILL);
    };
    live();
    auto executable = communicator.load(plan, {.max_bytes = 4096, .zero_copy = true}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    live();
    const auto memory = communicator.device().allocate(8192, "buffers", diagnostics);
    auto buffer = communicator.register_buffer(memory->data(), 8192, diagnostics);
    if (buffer == nullptr) return testing::text(diagnostics);
    live();
    const BoundCall call = executable->bind(
        {.bytes = 4096, .input = memory->data(), .output = memory->data() + 4096}, diagnostics);
    if (!call) return testing::text(diagnostics);
    live();
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    std::string said;
    for (int i = 0; said.empty() && i < 2000; ++i) {
      if (!executable->launch(call, stream, diagnostics)) said = testing::text(diagnostics);
      if (i == 1000) live();
    }
    if (!communicator.synchronize(stream, diagnostics)) said = testing::text(diagnostics);
    communicator.device().destroy_stream(stream);
    return said;
  }
};

/// Kills its process when it comes to exchange number `last`.
class DyingBootstrap final : public Bootstrap {
 public:
  DyingBootstrap(std::unique_ptr<Bootstrap> inner, uint32_t victim, int last)
      : inner_(std::move(inner)), victim_(victim), last_(last) {}
  uint32_t rank() const override { return inner_->rank(); }
  uint32_t size() const override { return inner_->size(); }
  bool all_gather(std::span<const uint8_t> own, std::string_view what,
                  std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) override {
    if (rank() == victim_ && exchanges_++ == last_) raise(SIGKILL);
    return inner_->all_gather(own, what, all, diagnostics);
  }
  void on_failure(std::function<void(const std::string& why)> fn) override {
    inner_->on_failure(std::move(fn));
  }
  void fail(const std::string& why) override { inner_->fail(why); }
  std::optional<std::string> report_waits(const WaitReport& own, bool wait) override {
    return inner_->report_waits(own, wait);
  }

 private:
  const std::unique_ptr<Bootstrap> inner_;
  const uint32_t victim_;
  const int last_;
  int exchanges_ = 0;
};

constexpr int kNever = -1;

/// A call of 4 KiB, on memory and a stream of its own; empty where `diagnostics` says why.
struct SmallCall {
  SmallCall(Communicator& communicator, Executable* executable, Diagnostics& diagnostics)
      : memory(communicator.device().allocate(8192, "buffers", diagnostics)) {
    if (executable == nullptr || memory == nullptr) return;
    uint8_t* const first = memory->data();
    call = executable->bind({.bytes = 4096, .input = first, .output = first + 4096}, diagnostics);
    stream = communicator.device().create_stream(diagnostics);
  }
  const std::unique_ptr<Memory> memory;
  BoundCall call;
  StreamHandle stream = nullptr;
};

/// Rank 1 of three has been killed: the others say so, and not when waits time out, which is later
/// than this test may take.
void check_ends(const std::string& where, const std::function<std::vector<Outcome>()>& run) {
  INFO(where);
  const auto is_right = [&] {
    const std::vector<Outcome> ended = run();
    CHECK(ended[1].signal == SIGKILL);
    UNSCOPED_INFO(ended[0].said << ended[2].said);
    return testing::all_name(ended, 1);
  };
  CHECK(testing::right_in_a_try(is_right));
}

TEST_CASE("a rank that is killed between steps ends all others") {
  const auto before = shared_memory_files();
  for (const char* name : {"allreduce_2shot", "allreduce_2shot_packets", "sendrecv_port"}) {
    const auto plan = plan_to_break(name, "3");
    for (int last = 0; last < 5; ++last) {
      check_ends(fmt::format("{}, step {}", name, last), [&] {
        return testing::processes(3, Life{plan, 1, last}, kLongWait);
      });
    }
  }
  CHECK(shared_memory_files() == before);
}

TEST_CASE("a rank that is killed in the middle of a step ends all others") {
  const auto before = shared_memory_files();
  const auto plan = plan_to_break("allgather_direct", "3");  // zero copy: bind exchanges too
  for (int last = 0; last < 7; ++last) {
    check_ends(fmt::format("exchange {}", last), [&] {
      const auto wrap = [&](std::unique_ptr<Bootstrap> inner) -> std::unique_ptr<Bootstrap> {
        return std::make_unique<DyingBootstrap>(std::move(inner), 1, last);
      };
      return testing::processes(3, Life{plan, 1, kNever}, kLongWait, wrap);
    });
  }
  CHECK(shared_memory_files() == before);
}

/// Launches the only call of a plan of two ranks, and waits.
struct OneCall {
  std::shared_ptr<const Program> plan;
  std::function<void(Communicator&, StreamHandle)> meanwhile = {};
  /// Rank 0, whose wait is short, begins when rank 1 is done, however late that is. nullptr: at
  /// once.
  std::shared_ptr<testing::GoAhead> rank_1_done = {};

  std::string operator()(Communicator& communicator) const {
    const testing::GivenAtEnd at_least(communicator.rank() == 1 ? rank_1_done.get() : nullptr);
    Diagnostics diagnostics;
    auto executable = testing::load_unproved(communicator, plan, 4096, diagnostics);
    const SmallCall own(communicator, executable.get(), diagnostics);
    if (!own.call) return testing::text(diagnostics);
    if (rank_1_done != nullptr && communicator.rank() == 0) rank_1_done->wait();
    if (!executable->launch(own.call, own.stream, diagnostics)) return testing::text(diagnostics);
    if (meanwhile) meanwhile(communicator, own.stream);
    (void)communicator.synchronize(own.stream, diagnostics);
    if (rank_1_done != nullptr && communicator.rank() == 1) rank_1_done->give();
    communicator.device().destroy_stream(own.stream);
    // What came after: nothing can be launched or loaded any more.
    Diagnostics later;
    if (diagnostics.has_errors() && executable->launch(own.call, own.stream, later)) {
      return "still runs";
    }
    std::string said = testing::text(diagnostics);
    (void)communicator.bootstrap().barrier("stay",
                                           later);  // a rank that is done waits for the others
    return said;
  }
};

// By the time that rank 0 has waited too long, rank 1 is to be at its next step.
TEST_CASE("a wait that takes too long is reported") {
  std::vector<std::string> said, expected;
  const auto is_right = [&](int factor) {
    const auto rank_1_done = std::make_shared<testing::GoAhead>();
    said = testing::threads(2, OneCall{testing::stuck_plan(), {}, rank_1_done},
                            testing::Timeouts(kLongWait, factor * milliseconds(300)));
    const std::string begin = fmt::format(
        "error: rank 1 has not sent what rank 0 waits for\n"
        "note: rank 0 waits for rank 1: 1 thread block waited longer than {:g} s for something "
        "that "
        "did not come\n",
        0.3 * factor);
    expected = {
        begin +
            "note: rank 1 is at 'stay'\n"
            "stuck.mscl:8:5: note: rank 0, tb 0: 'wait ch[0]' (r = 0) waits for signal 1 at "
            "'ch[0]'; 0 came; rank 1 should send it from 'ch[0]', but no op does\n"
            "note: with MSCCLC_CHECK_CALLS=1 ranks compare each call before they launch it: "
            "calls that differ are an error then, and no hang\n",
        ""};
    return said == expected;
  };
  (void)testing::right_in_longer_times(is_right);
  CHECK(said == expected);
}

TEST_CASE(
    "whether it has failed is known when blocks have given up, before the watchdog reports it") {
  std::string found;
  const auto ask = [&](Communicator& communicator, StreamHandle stream) {
    if (communicator.rank() != 0) return;
    Diagnostics diagnostics;
    (void)communicator.device().synchronize(stream, diagnostics);
    if (communicator.has_failed(diagnostics)) found = testing::text(diagnostics);
  };
  const auto rank_1_done = std::make_shared<testing::GoAhead>();
  const auto said = testing::threads(2, OneCall{testing::stuck_plan(), ask, rank_1_done},
                                     testing::Timeouts(kLongWait, milliseconds(300)));
  CHECK_THAT(found, Catch::Contains("1 thread block waited longer than 0.3 s for something that"));
  CHECK_THAT(said[0], Catch::StartsWith("error: rank 1 has not sent what rank 0 waits for\n"));
}

TEST_CASE("no rank waits for what one was to do that has failed before") {
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    auto device = testing::open_host(rank, diagnostics);
    if (rank == 0) return device;
    return std::make_unique<testing::ShortOfMemory>(std::move(device), "buffers");
  };
  const auto rank_1_done = std::make_shared<testing::GoAhead>();
  const auto said = testing::threads(2, OneCall{testing::stuck_plan(), {}, rank_1_done},
                                     testing::Timeouts(kLongWait, milliseconds(300)), open);
  CHECK(said[1] == "error: there is no memory for buffers\n");
  CHECK(said[0] != "");
}

// Rank 1 has a second for its packets, which it sends at once.
TEST_CASE("a packet that does not come is reported with the rank that should write it") {
  const auto plan = plan_to_break("allreduce_1shot", "3");
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable = communicator.load(plan, {.max_bytes = 64}, diagnostics);
    const auto memory = communicator.device().allocate(128, "buffers", diagnostics);
    if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
    const BoundCall call = executable->bind(
        {.bytes = 64, .input = memory->data(), .output = memory->data() + 64}, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    if (communicator.rank() != 2) (void)executable->launch(call, stream, diagnostics);
    if (communicator.rank() == 0) (void)communicator.synchronize(stream, diagnostics);
    communicator.device().destroy_stream(stream);
    Diagnostics later;
    (void)communicator.bootstrap().barrier("stay", later);
    return testing::text(diagnostics);
  };
  std::string said;
  const auto is_right = [&](int factor) {
    said = testing::threads(3, body, testing::Timeouts(kLongWait, factor * milliseconds(1000)))[0];
    return said.find(" of rank 1") == said.npos;
  };
  CHECK(testing::right_in_longer_times(is_right));
  CHECK_THAT(said, Catch::Contains("with flag 1; it holds flag 0; it is written by tb 0"));
  CHECK_THAT(said, Catch::Contains(" of rank 2\n"));
}

/// Launches several calls, on a stream that is waited for between them or not.
struct ManyCalls {
  std::shared_ptr<const Program> plan;
  bool waits_between;
  static constexpr int kCalls = 1000;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    auto executable = testing::load_unproved(communicator, plan, 4096, diagnostics);
    const auto memory = device.allocate(8192, "buffers", diagnostics);
    if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
    const BoundCall call = executable->bind(
        {.bytes = 4096, .input = memory->data(), .output = memory->data() + 4096}, diagnostics);
    const StreamHandle stream = device.create_stream(diagnostics);
    Diagnostics refused;  // calls after one that the other rank has reported
    for (int i = 0; i < kCalls; ++i) {
      if (!call || !executable->launch(call, stream, refused)) break;
      if (waits_between) (void)device.synchronize(stream, diagnostics);
    }
    (void)communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    Diagnostics later;
    (void)communicator.bootstrap().barrier("stay", later);
    return testing::text(diagnostics);
  }
};

// If each waited as long again, they would take longer than this test may.
TEST_CASE("calls after one that hangs end with it") {
  constexpr milliseconds kWait{2'000};
  for (const bool waits_between : {false, true}) {
    INFO("waits between: " << waits_between);
    const auto said = testing::threads(2, ManyCalls{testing::stuck_plan(), waits_between},
                                       testing::Timeouts(kLongWait, kWait));
    CHECK_THAT(said[0], Catch::Contains("1 thread block waited longer than 2 s"));
    CHECK_THAT(said[0], Catch::Contains("waits for signal 1 at 'ch[0]'; 0 came"));
  }
}

TEST_CASE("a hang of an executable that is gone is reported") {
  const auto body = [plan = testing::stuck_plan()](Communicator& communicator) {
    Diagnostics diagnostics;
    Device& device = communicator.device();
    auto executable = testing::load_unproved(communicator, plan, 64, diagnostics);
    const auto memory = device.allocate(128, "buffers", diagnostics);
    if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
    const BoundCall call = executable->bind(
        {.bytes = 64, .input = memory->data(), .output = memory->data() + 64}, diagnostics);
    const StreamHandle stream = device.create_stream(diagnostics);
    (void)executable->launch(call, stream, diagnostics);
    (void)device.synchronize(stream, diagnostics);
    executable.reset();
    (void)communicator.synchronize(stream, diagnostics);
    device.destroy_stream(stream);
    Diagnostics later;
    (void)communicator.bootstrap().barrier("stay", later);
    return testing::text(diagnostics);
  };
  const auto said = testing::threads(2, body, testing::Timeouts(kLongWait, milliseconds(300)));
  CHECK_THAT(said[0], Catch::StartsWith("error: rank 1 has not sent what rank 0 waits for\n"));
  CHECK_THAT(said[0], Catch::Contains("1 thread block waited longer than 0.3 s"));
  CHECK_THAT(said[0], Catch::Contains("waits for signal 1 at 'ch[0]'"));
}

// Rank 1 is done once rank 0 has nothing left to do but its wait.
TEST_CASE("the host can abort") {
  const auto abort = [](Communicator& communicator, StreamHandle stream) {
    if (communicator.rank() == 0) return;
    Diagnostics diagnostics;
    (void)communicator.synchronize(stream, diagnostics);
    communicator.abort("enough");
  };
  const auto plan = testing::stuck_plan(testing::RankOne::waits_for_rank_0);
  const auto said = testing::threads(2, OneCall{plan, abort}, kLongWait);
  CHECK_THAT(said[0], Catch::StartsWith("error: rank 1 has given up: enough\n"));
  CHECK_THAT(said[0], Catch::Contains("waits for signal 1 at 'ch[0]'"));
  CHECK(said[1] == "error: rank 1: enough\n");
}

TEST_CASE("a rank that has aborted hears so from every step") {
  const auto plan = plan_to_break("allreduce_allpairs", "2");
  const auto body = [&](Communicator& communicator) {
    Diagnostics loading;
    const auto executable =
        communicator.load(plan, {.max_bytes = 4096, .zero_copy = true}, loading);
    if (executable == nullptr) return testing::text(loading);
    if (communicator.rank() == 0) return std::string();
    communicator.abort("enough");
    std::vector<float> memory(2048);
    Diagnostics binding, reloading;
    CHECK_FALSE(executable->bind(
        {.bytes = 4096, .input = memory.data(), .output = memory.data() + 1024}, binding));
    CHECK(testing::text(binding) == "error: rank 1: enough\n");
    CHECK(communicator.load(plan, {}, reloading) == nullptr);
    return testing::text(reloading);
  };
  CHECK(testing::threads(2, body)[1] == "error: rank 1: enough\n");
}

TEST_CASE("a step that waits for others ends with the abort of its own rank") {
  const auto plan = plan_to_break("allreduce_2shot", "2");
  testing::GoAhead over;
  const auto body = [&](Communicator& communicator) {
    if (communicator.rank() == 0) {
      over.wait();  // it is there, and never loads
      return std::string();
    }
    std::thread other([&] { communicator.abort("enough"); });
    Diagnostics diagnostics;
    CHECK(communicator.load(plan, {}, diagnostics) == nullptr);
    other.join();
    over.give();
    return testing::text(diagnostics);
  };
  CHECK(testing::threads(2, body, kLongWait)[1] == "error: rank 1: enough\n");
}

/// A ring in which all wait for one another, one rank of which is stopped in the middle.
struct StoppedRank {
  std::shared_ptr<const Program> plan;
  uint32_t victim;
  /// The victim's process, once it is about to stop: the others begin when it is. nullptr: at once.
  std::shared_ptr<testing::SharedValue> stopping = {};

  void begin(uint32_t rank) const {
    if (rank == victim && stopping != nullptr) stopping->at() = ::getpid();
    if (rank == victim) raise(SIGSTOP);
    if (rank == victim || stopping == nullptr) return;
    for (;; std::this_thread::sleep_for(milliseconds(1))) {
      const auto process = static_cast<int32_t>(stopping->at());
      const auto facts = process == 0 ? std::nullopt : facts_of(process);
      if (facts && facts->state == 'T') return;
    }
  }

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    auto executable = communicator.load(plan, {.max_bytes = 4096}, diagnostics);
    const SmallCall own(communicator, executable.get(), diagnostics);
    if (!own.call) return testing::text(diagnostics);
    begin(communicator.rank());
    (void)executable->launch(own.call, own.stream, diagnostics);
    (void)communicator.synchronize(own.stream, diagnostics);
    communicator.device().destroy_stream(own.stream);
    return testing::text(diagnostics);
  }
};

TEST_CASE("every survivor's first line names the rank that is stopped") {
  for (const char* name : {"allreduce_ring", "allreduce_2shot_packets"}) {
    const auto plan = plan_to_break(name, "4");
    for (const uint32_t victim : {1u, 3u}) {
      INFO(name << ", rank " << victim);
      testing::Timeouts timeouts(kLongWait, milliseconds(500));
      timeouts.stopped = victim;
      const auto stopping = std::make_shared<testing::SharedValue>();
      REQUIRE(stopping->mapped());
      const auto ended = testing::processes(4, StoppedRank{plan, victim, stopping}, timeouts);
      CHECK(ended[victim].signal == SIGKILL);
      for (uint32_t r = 0; r < 4; ++r) {
        if (r == victim) continue;
        const std::string first = ended[r].said.substr(0, ended[r].said.find('\n'));
        CHECK_THAT(first, Catch::StartsWith(fmt::format("error: rank {} (process ", victim)));
        CHECK_THAT(first, Catch::Contains(") does not answer; "));
      }
    }
  }
}

/// Stops its process, or kills it, when it has given all others, in a step, the handles of its
/// memory.
class LeavingBootstrap final : public Bootstrap {
 public:
  LeavingBootstrap(std::unique_ptr<Bootstrap> inner, uint32_t victim, int signal)
      : inner_(std::move(inner)), victim_(victim), signal_(signal) {}
  uint32_t rank() const override { return inner_->rank(); }
  uint32_t size() const override { return inner_->size(); }
  bool all_gather(std::span<const uint8_t> own, std::string_view what,
                  std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) override {
    const bool met = inner_->all_gather(own, what, all, diagnostics);
    if (rank() == victim_ && what == "load a plan") raise(signal_);
    return met;
  }
  void on_failure(std::function<void(const std::string& why)> fn) override {
    inner_->on_failure(std::move(fn));
  }
  void fail(const std::string& why) override { inner_->fail(why); }

 private:
  const std::unique_ptr<Bootstrap> inner_;
  const uint32_t victim_;
  const int signal_;
};

/// Whether all others say first that the victim has died. `silence`: by which they know it of one
/// that is stopped.
bool all_hear_of_death(const std::shared_ptr<const Program>& plan, uint32_t victim, int signal,
                       milliseconds silence) {
  testing::Timeouts timeouts(kLongWait);
  timeouts.silence = silence;
  if (signal == SIGSTOP) timeouts.stopped = victim;
  const auto wrap = [&](std::unique_ptr<Bootstrap> inner) {
    return std::make_unique<LeavingBootstrap>(std::move(inner), victim, signal);
  };
  const auto ended = testing::processes(4, StoppedRank{plan, victim}, timeouts, wrap);
  bool all = ended[victim].signal == SIGKILL;
  for (uint32_t r = 0; r < 4; ++r) {
    if (r == victim) continue;
    const std::string first = ended[r].said.substr(0, ended[r].said.find('\n'));
    UNSCOPED_INFO(ended[r].said);
    all &= first.starts_with(fmt::format("error: rank {}", victim)) &&
           first.find(" has died: ") != first.npos;
  }
  return all;
}

TEST_CASE("a rank that others fetch descriptors from is stopped or killed") {
  const auto plan = plan_to_break("allreduce_2shot", "4");
  for (const int signal : {SIGSTOP, SIGKILL}) {
    for (const uint32_t victim : {0u, 2u}) {
      INFO("signal " << signal << ", rank " << victim);
      const auto is_right = [&](int factor) {
        return all_hear_of_death(plan, victim, signal, factor * milliseconds(3000));
      };
      CHECK(testing::right_in_longer_times(is_right));
    }
  }
}

TEST_CASE("a device that cannot be opened is an error at once, at every rank") {
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    if (rank != 1) return testing::open_host(rank, diagnostics);
    diagnostics.error("no-gpu", {}, "there is no GPU 1");
    return nullptr;
  };
  const auto body = [](Communicator&) { return std::string("it has begun"); };
  const auto ended = testing::processes(3, body, kLongWait, {}, open);
  CHECK(ended[1].said == "error: there is no GPU 1\n");
  for (const uint32_t r : {0u, 2u}) {
    CHECK(ended[r].said == "error: rank 1 cannot create a communicator: there is no GPU 1\n");
  }
}

TEST_CASE("memory of a peer that cannot be mapped is an error at once, at every rank") {
  /// Rank 1's device maps nothing that rank 2 shares.
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    // Not of the device: other processes cannot map it.
    std::vector<uint8_t> own(4096);
    const auto memory = communicator.device().allocate(4096, "a buffer", diagnostics);
    void* const address = communicator.rank() == 2 ? own.data() : memory->data();
    const auto buffer = communicator.register_buffer(address, 4096, diagnostics);
    return buffer != nullptr ? "it is registered" : testing::text(diagnostics);
  };
  const auto ended = testing::processes(3, body, kLongWait);
  for (const uint32_t r : {0u, 1u}) {
    CHECK_THAT(
        ended[r].said,
        Catch::StartsWith("error: memory of rank 2: cannot map 4096 bytes of a peer's memory "
                          "(same_process: it is memory of another process)"));
  }
  CHECK_THAT(ended[2].said,
             Catch::StartsWith("error: ranks 0 and 1 cannot map the buffers of the other ranks: "
                               "memory of rank 2: cannot map 4096 bytes"));
}

// The others would wait for it as long as this test may take, and longer.
TEST_CASE("a launch that fails on one rank ends all others, which learn why") {
  for (const bool at_once : {false, true}) {
    const auto plan = plan_to_break("allreduce_ring", "3");
    const auto open = [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      auto host = testing::open_host(rank, diagnostics);
      if (rank != 1 || host == nullptr) return host;
      return std::make_unique<testing::Unlaunched>(std::move(host), at_once);
    };
    const auto ended = testing::processes(3, Life{plan, 9, kNever}, kLongWait, {}, open);
    INFO((at_once ? "at once" : "when it is waited for"));
    CHECK_THAT(ended[1].said, Catch::StartsWith("error: a launch has not run\n"));
    for (const uint32_t r : {0u, 2u}) {
      CHECK_THAT(ended[r].said, Catch::StartsWith("error: rank 1 (process "));
      CHECK_THAT(ended[r].said, Catch::Contains(") has given up: a launch has not run\n"));
    }
  }
}

}  // namespace
}  // namespace mscclc
