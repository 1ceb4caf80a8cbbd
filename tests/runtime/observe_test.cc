// What can be seen of ranks from outside: peers learn of a failure without asking, each rank
// writes down its last calls, and the log shows what MSCCLC_DEBUG asks for.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "tests/helpers/runtime/go_ahead.h"
#include "tests/helpers/runtime/log_file.h"
#include "tests/helpers/runtime/raw_rank.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/stuck_plan.h"
#include "tests/shell.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kLongestWatch{300'000};

/// MSCCLC_FLIGHT_FILE while it lives.
struct FlightFile {
  explicit FlightFile(const std::string& pattern) {
    setenv("MSCCLC_FLIGHT_FILE", pattern.c_str(), 1);
  }
  ~FlightFile() { setenv("MSCCLC_FLIGHT_FILE", "none", 1); }
};

/// A folder for the flight files of a case.
struct Logs {
  Logs() : folder(testing::set_up("flight")), pattern(folder / "rank-%r") {}
  ~Logs() { fs::remove_all(folder); }
  nlohmann::json of(uint32_t rank) const {
    const fs::path path = folder / ("rank-" + std::to_string(rank) + ".json");
    return fs::exists(path) ? nlohmann::json::parse(read_file(path).value(), nullptr, false)
                            : nlohmann::json();
  }
  const fs::path folder;
  const FlightFile pattern;
};

/// Launches `calls` calls of a plan of two ranks; then `after`.
struct WatchedCalls {
  std::shared_ptr<const Program> plan;
  int calls;
  std::function<std::string(Communicator&, StreamHandle)> after;
  std::function<void(Communicator&)> before = {};

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const auto memory = communicator.device().allocate(8192, "buffers", diagnostics);
    const auto loaded = testing::load_unproved(communicator, plan, 4096, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const BoundCall call = loaded->bind(
        {.bytes = 4096, .input = memory->data(), .output = memory->data() + 4096}, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    if (before) before(communicator);
    for (int i = 0; i < calls; ++i) {
      if (!call || !loaded->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    }
    const std::string said = after(communicator, stream);
    communicator.device().destroy_stream(stream);
    return said;
  }
};

/// What the log says of a rank's last calls.
std::string where_calls_are(const Logs& logs, int rank) {
  return fmt::format(
      " [{0}] mscclc WARN INIT the last calls are in {1}/rank-{0}.txt and .json; 'mscclc report' "
      "with the .json files of all ranks says where the ranks differ",
      rank, logs.folder.string());
}

// Rank 0 begins when rank 1 has launched, and never asks: it only stays until rank 1, whose calls
// are done, has heard of the hang.
TEST_CASE("a hang is noticed without a call that asks") {
  const Logs logs;
  const testing::LogFile lines(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  testing::GoAhead launched;
  const auto wait = [&](Communicator& communicator) {
    if (communicator.rank() == 0) launched.wait();
  };
  const auto stay = [&](Communicator& communicator, StreamHandle) -> std::string {
    Diagnostics diagnostics;
    if (communicator.rank() == 1) {
      launched.give();
      while (communicator.check(diagnostics)) std::this_thread::sleep_for(milliseconds(5));
    }
    Diagnostics later;
    (void)communicator.bootstrap().barrier("stay", later);
    return testing::text(diagnostics);
  };
  const auto body = [&](Communicator& communicator) {
    const testing::GivenAtEnd at_least(communicator.rank() == 1 ? &launched : nullptr);
    return WatchedCalls{testing::stuck_plan(), 1, stay, wait}(communicator);
  };
  const auto said = testing::threads(2, body, testing::Timeouts(kLongestWatch, milliseconds(100)));
  CHECK(said[0] == "");
  CHECK_THAT(said[1], Catch::StartsWith("error: rank 1 has not sent what rank 0 waits for\n"));
  CHECK(lines.lines(where_calls_are(logs, 0)) == 1);
  CHECK(
      lines.lines(" [0] mscclc WARN INIT with MSCCLC_CHECK_CALLS=1 ranks compare each call before "
                  "they launch it: calls that differ are an error then, and no hang") == 1);
  const auto log = logs.of(0);
  REQUIRE(log.is_object());
  CHECK(log["code"] == "hang");
  CHECK(log["reason"] == "rank 1 has not sent what rank 0 waits for");
  CHECK(log["awaited"] == nlohmann::json::array({1}));
  REQUIRE(log["waits"].size() == 1);
  CHECK_THAT(log["waits"][0].get<std::string>(), Catch::Contains("waits for signal 1 at 'ch[0]'"));
}

TEST_CASE("abort writes down the last calls of every rank") {
  const Logs logs;
  const CompiledWorld world("allreduce_ring", {{"R", "2"}});
  const auto plan = std::make_shared<const Program>(world.program());
  const auto stop = [](Communicator& communicator, StreamHandle stream) -> std::string {
    Diagnostics diagnostics;
    if (!communicator.synchronize(stream, diagnostics) ||
        !communicator.bootstrap().barrier("all done", diagnostics)) {
      return testing::text(diagnostics);
    }
    if (communicator.rank() == 0) communicator.abort("enough");
    while (communicator.check(diagnostics)) std::this_thread::sleep_for(milliseconds(5));
    return testing::text(diagnostics);
  };
  const auto said = testing::threads(2, WatchedCalls{plan, 1200, stop}, kLongestWatch);
  CHECK(said[0] == "error: rank 0: enough\n");
  for (const uint32_t rank : {0u, 1u}) {
    const auto log = logs.of(rank);
    REQUIRE(log.is_object());
    CHECK(log["code"] == (rank == 0 ? "aborted" : "peer-failed"));
    CHECK(log["launched"] == 1200);
    REQUIRE(log["calls"].size() == 1000);
    CHECK(log["calls"][999]["call"] == 1200);
    CHECK(log["calls"][999]["bytes"] == 4096);
    CHECK(log["calls"][999]["dtype"] == "f32");
    CHECK(log["calls"][999]["ended_us"].is_number());
    CHECK(log["plans"][0]["collective"] == "allreduce");
    CHECK(log["awaited"].empty());
    CHECK(fs::exists(logs.folder / ("rank-" + std::to_string(rank) + ".txt")));
  }
}

// Rank 1 does not ask before its watchdog has said so.
TEST_CASE("the last calls are written down before a failure is reported") {
  const Logs logs;
  const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  std::atomic<bool> reported = false, written = false;
  const auto look = [&](const std::string& line) {
    if (line.find(" [1] mscclc WARN INIT peer-failed") == line.npos) return;
    written = logs.of(1).is_object() && fs::exists(logs.folder / "rank-1.txt");
    reported = true;
  };
  Diagnostics diagnostics;
  REQUIRE(set_log_sink(look, diagnostics));
  const auto wait = [&](Communicator& communicator) -> std::string {
    if (communicator.rank() == 0) communicator.abort("enough");
    while (!reported) std::this_thread::sleep_for(milliseconds(1));
    return "";
  };
  CHECK(testing::threads(2, wait, kLongestWatch)[1] == "");
  CHECK(written);
  REQUIRE(set_log_sink({}, diagnostics));
}

/// Aborts at rank 0; what both ranks then find in their errors.
std::vector<std::string> abort_both() {
  return testing::threads(
      2,
      [](Communicator& communicator) {
        if (communicator.rank() == 0) communicator.abort("enough");
        Diagnostics diagnostics;
        while (communicator.check(diagnostics)) std::this_thread::sleep_for(milliseconds(5));
        return testing::text(diagnostics);
      },
      kLongestWatch);
}

TEST_CASE("the log says where the last calls are") {
  const Logs logs;
  const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  CHECK(abort_both()[0] == "error: rank 0: enough\n");
  for (const int rank : {0, 1}) {
    CHECK(log.lines(where_calls_are(logs, rank)) == 1);
  }
}

TEST_CASE("last calls that cannot be written down are a note of every rank's error") {
  const FlightFile nowhere("/dev/null/rank-%r");
  const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  const auto said = abort_both();
  for (const size_t rank : {0, 1}) {
    const std::string note = fmt::format(
        "the last calls of rank {} are not written down (MSCCLC_FLIGHT_FILE): "
        "/dev/null/rank-{}: Not a directory (20)",
        rank, rank);
    CHECK_THAT(said[rank], Catch::EndsWith("note: " + note + "\n"));
    CHECK(log.lines(fmt::format(" [{}] mscclc WARN INIT {}", rank, note)) == 1);
  }
}

/// Joins a job of two as `rank`, and goes through one step.
void join_and_gather(const UniqueId& id, uint32_t rank) {
  Diagnostics diagnostics;
  const auto bootstrap = join_job(id, rank, 2, kLongestWatch, nullptr, diagnostics);
  std::vector<std::vector<uint8_t>> all;
  const std::vector<uint8_t> own(rank + 1);
  if (bootstrap) (void)bootstrap->all_gather(own, "roll\ncall", all, diagnostics);
}

TEST_CASE("TRACE of BOOTSTRAP shows where a rank finds the hub, and its steps") {
  Diagnostics diagnostics;
  const auto job = host_job({.size = 2, .interface = "=lo", .timeout = kLongestWatch}, diagnostics);
  REQUIRE(job);
  const auto [level, count] = GENERATE(std::pair("TRACE", 1u), std::pair("INFO", 0u));
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", level}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  std::thread other([&] { join_and_gather(job->id, 1); });
  join_and_gather(job->id, 0);
  other.join();
  for (const int rank : {0, 1}) {
    const std::string begin = fmt::format(" [{}] mscclc TRACE BOOTSTRAP ", rank);
    CHECK(log.lines(begin + "at " + job->id.address.text() + ": the job's hub") == count);
    CHECK(log.lines(begin + "all ranks have come") == count);
    CHECK(log.lines(fmt::format("{}step 0, 'roll\\x0acall': {} bytes", begin, rank + 1)) == count);
  }
}

TEST_CASE("INFO of BOOTSTRAP shows where the hub listens, and which ranks have joined") {
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  Diagnostics diagnostics;
  auto job =
      host_job({.size = 2, .rank = 0, .interface = "=lo", .timeout = kLongestWatch}, diagnostics);
  REQUIRE(job);
  const std::string begin = " [0] mscclc INFO BOOTSTRAP ";
  CHECK(log.lines(begin + "ranks meet at " + job->id.address.text()) == 1);
  std::thread other([&] { join_and_gather(job->id, 1); });
  join_and_gather(job->id, 0);
  other.join();
  job->hub.reset();  // its thread has said all
  for (const int rank : {0, 1}) {
    CHECK(log.lines(fmt::format("{}rank {} has joined: process {} on 127.0.0.1", begin, rank,
                                ::getpid())) == 1);
  }
}

TEST_CASE("TRACE of BOOTSTRAP shows once what stands where the hub should be") {
  const UniqueId id = testing::spare_id();
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "TRACE"}, {"MSCCLC_DEBUG_SUBSYS", "BOOTSTRAP"}});
  Diagnostics diagnostics;
  CHECK_FALSE(join_job(id, 1, 2, kLongestWatch, nullptr, diagnostics));  // after several attempts
  CHECK(log.lines(" [1] mscclc TRACE BOOTSTRAP at " + id.address.text() +
                  ": Connection refused (111)") == 1);
}

TEST_CASE("INFO of INIT shows what joins a rank to the others") {
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "INIT"}});
  const auto two_nodes = [](uint32_t rank, Diagnostics& diagnostics) {
    return make_host_device(diagnostics, {}, HostLanes::copies, rank / 2);
  };
  CHECK(testing::run_threads(
            3, [](Communicator&) { return ""; }, {}, two_nodes) == "");
  const std::string begin = " [0] mscclc INFO INIT rank ";
  CHECK(log.lines(begin + "1 is joined by own: the same memory") == 1);
  CHECK(log.lines(begin + "2 is joined by lanes: it is on another node") == 1);
}

TEST_CASE("TRACE of BIND shows the buffers of each call") {
  const CompiledWorld world("allreduce_ring", {{"R", "2"}});
  const auto plan = std::make_shared<const Program>(world.program());
  const auto [level, count] = GENERATE(std::pair("TRACE", 1u), std::pair("INFO", 0u));
  const testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", level}, {"MSCCLC_DEBUG_SUBSYS", "BIND"}});
  const auto said = testing::threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto memory = communicator.device().allocate(8192, "buffers", diagnostics);
    const auto loaded = testing::load_unproved(communicator, plan, 4096, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const auto *input = memory->data(), *output = input + 4096;
    if (!loaded->bind({.bytes = 4096, .input = input, .output = memory->data() + 4096},
                      diagnostics)) {
      return testing::text(diagnostics);
    }
    return fmt::format("executable 1: 4096 bytes of f32, input {}, output {}",
                       static_cast<const void*>(input), static_cast<const void*>(output));
  });
  for (const size_t rank : {0, 1}) {
    CHECK_THAT(said[rank], Catch::StartsWith("executable 1: "));
    CHECK(log.lines(fmt::format(" [{}] mscclc TRACE BIND {}", rank, said[rank])) == count);
  }
}

}  // namespace
}  // namespace mscclc
