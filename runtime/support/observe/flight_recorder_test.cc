// The ring of last calls, and the files that are made of it.
#include "runtime/support/observe/flight_recorder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/support/observe/flight_file.h"

namespace mscclc {
namespace {

FlightCall some_call(uint64_t i) {
  return {.executable = static_cast<uint32_t>(i % 3), .call = i, .bytes = 8 * i, .stream = i % 2};
}

TEST_CASE("the last thousand calls are kept, in their order") {
  FlightRecorder recorder;
  for (uint64_t i = 1; i <= 2500; ++i) recorder.add(some_call(i));
  const auto calls = recorder.calls();
  REQUIRE(calls.size() == FlightRecorder::kCalls);
  CHECK(recorder.count() == 2500);
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint64_t number = 1501 + i;
    REQUIRE(calls[i].number == number);
    REQUIRE(calls[i].bytes == 8 * number);
    REQUIRE(calls[i].executable == number % 3);
    REQUIRE((i == 0 || calls[i].launched >= calls[i - 1].launched));
    REQUIRE(calls[i].ended == 0);
  }
}

TEST_CASE("a stream that was waited for ends its calls, and no others") {
  FlightRecorder recorder;
  for (uint64_t i = 1; i <= 10; ++i) recorder.add(some_call(i));
  recorder.ended(1);
  recorder.add(some_call(11));
  for (const FlightCall& call : recorder.calls()) {
    CHECK((call.ended != 0) == (call.stream == 1 && call.number <= 10));
  }
  recorder.ended(0);
  recorder.ended(1);
  for (const FlightCall& call : recorder.calls()) CHECK(call.ended >= call.launched);
}

TEST_CASE("plans that no call names any more are forgotten") {
  FlightRecorder recorder;
  for (uint32_t i = 0; i < 10'000; ++i) recorder.loaded(i, {"p", "h", CollectiveKind::allreduce});
  CHECK(recorder.plans().size() <= 2 * FlightRecorder::kCalls);
}

TEST_CASE("a reader gets whole calls while calls are noted") {
  FlightRecorder recorder;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      for (const FlightCall& call : recorder.calls()) {
        if (call.bytes != 8 * call.call || call.number != call.call) stop = true;
      }
    }
  });
  bool torn = false;
  for (uint64_t i = 1; i <= 200'000 && !torn; ++i) {
    recorder.add(some_call(i));
    torn = stop;
  }
  stop = true;
  reader.join();
  CHECK_FALSE(torn);
}

FlightLog some_log() {
  FlightRecorder recorder;
  recorder.loaded(1, {"ring", "abc", CollectiveKind::allreduce});
  recorder.add({.executable = 1, .call = 1, .bytes = 64});
  return {.rank = 1,
          .size = 2,
          .host = "h",
          .process = 7,
          .time = "now",
          .code = "hang",
          .reason = "bad \xff text\n",
          .launched = 1,
          .calls = recorder.calls(),
          .plans = recorder.plans(),
          .waits = {"tb 0 waits"},
          .awaited = {0}};
}

TEST_CASE("text and JSON say the same") {
  const auto json = nlohmann::json::parse(flight_json(some_log()), nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  CHECK(json["rank"] == 1);
  CHECK(json["awaited"] == nlohmann::json::array({0}));
  CHECK(json["calls"][0]["bytes"] == 64);
  CHECK(json["calls"][0]["ended_us"].is_null());
  CHECK(json["plans"][0]["collective"] == "allreduce");
  const std::string text = flight_text(some_log());
  for (const char* part :
       {"rank 1 of 2", "hang: ", "  tb 0 waits\n", "allreduce", "not known", "ring"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("what a rank quotes commands no terminal that shows its text") {
  FlightLog log = some_log();
  log.reason = "a\nforged: b\x1b[31m";
  log.waits = {"c\nd\u009b"};
  for (auto& [number, plan] : log.plans) plan.name = "e\x07";
  const std::string text = flight_text(log);
  for (const char* part :
       {"hang: a\\x0aforged: b\\x1b[31m\n", "  c\\x0ad\\xc2\\x9b\n", "  e\\x07\n"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("no file is written over, and not more than so many") {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string base = std::string(folder == nullptr ? "/tmp" : folder) + "/flight";
  const auto write = [](const std::string& pattern) {
    const auto written = write_flight_log(some_log(), pattern);
    return written ? *written : "not written: " + written.error().text();
  };
  CHECK(write(base + "-%r") == base + "-1");
  CHECK(write(base + "-%r") == base + "-1-2");
  CHECK_THAT(write(base + "-%x"), Catch::Contains("is not a file name"));
  CHECK(write("/dev/null/x") == "not written: /dev/null/x: Not a directory (20)");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{100, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string cut_off = write(base + "-cut");  // and no SIGXFSZ
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(cut_off == "not written: " + base + "-cut: File too large (27); the limit is 'ulimit -f'");
  CHECK(::access((base + "-cut.json").c_str(), F_OK) != 0);
  for (int i = 0; i < kMaxLogs; ++i) (void)write(base);
  CHECK_THAT(write(base), Catch::Contains("has written 16 already"));
}

}  // namespace
}  // namespace mscclc
