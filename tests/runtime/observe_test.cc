// What can be seen of a failure from outside: peers learn of it though nobody asks, and each rank
// writes down its last calls.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "compiler/compile.h"
#include "runtime/api/device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/stuck_plan.h"
#include "tests/shell.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kLongWait{60'000};

/// A folder for the logs of a case: MSCCLC_FLIGHT_FILE while it lives.
struct Logs {
  Logs() : folder(testing::set_up("flight")) {
    setenv("MSCCLC_FLIGHT_FILE", (folder / "rank-%r").c_str(), 1);
  }
  ~Logs() {
    setenv("MSCCLC_FLIGHT_FILE", "none", 1);
    fs::remove_all(folder);
  }
  nlohmann::json of(uint32_t rank) const {
    const fs::path path = folder / ("rank-" + std::to_string(rank) + ".json");
    return fs::exists(path) ? nlohmann::json::parse(testing::read_whole(path), nullptr, false)
                            : nlohmann::json();
  }
  const fs::path folder;
};

/// Launches `calls` calls of a plan of two ranks; then `after`.
struct Calls {
  std::shared_ptr<const Program> plan;
  int calls;
  std::function<std::string(Communicator&, StreamHandle)> after;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const auto memory = communicator.device().allocate(8192, "buffers", diagnostics);
    const auto loaded = testing::load_unproved(communicator, plan, 4096, diagnostics);
    if (loaded == nullptr) return testing::text(diagnostics);
    const BoundCall call = loaded->bind(
        {.bytes = 4096, .input = memory->data(), .output = memory->data() + 4096}, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    for (int i = 0; i < calls; ++i) {
      if (!call || !loaded->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    }
    const std::string said = after(communicator, stream);
    communicator.device().destroy_stream(stream);
    return said;
  }
};

// Rank 0 never asks: it only stays until rank 1, whose calls are done, has heard of the hang.
TEST_CASE("a hang is noticed though nobody asks") {
  const Logs logs;
  const auto stay = [](Communicator& communicator, StreamHandle) -> std::string {
    Diagnostics diagnostics;
    if (communicator.rank() == 1) {
      while (communicator.check(diagnostics)) std::this_thread::sleep_for(milliseconds(5));
    }
    Diagnostics later;
    (void)communicator.bootstrap().barrier("stay", later);
    return testing::text(diagnostics);
  };
  const auto said = testing::threads(2, Calls{testing::stuck_plan(), 1, stay},
                                     testing::Timeouts(kLongWait, milliseconds(100)));
  CHECK(said[0] == "");
  CHECK_THAT(said[1], Catch::StartsWith("error: rank 1 has not sent what rank 0 waits for\n"));
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
  const auto said = testing::threads(2, Calls{plan, 1200, stop}, kLongWait);
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

}  // namespace
}  // namespace mscclc
