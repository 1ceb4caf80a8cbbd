// CommunicatorOptions::ends_process: a process whose calls were cut short ends, and no other does.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "ir/support/read_file.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/stuck_plan.h"
#include "tests/shell.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;
using testing::Outcome;

/// Longer than a test may take: what waits so long does not end.
constexpr milliseconds kBeyondTest{3'600'000};

testing::Timeouts ending(milliseconds waits = kBeyondTest) {
  testing::Timeouts timeouts(kBeyondTest, waits);
  timeouts.ends_process = true;
  return timeouts;
}

/// Its steps fail as soon as a rank has died; what waits for that learns of it by announce().
class LateNews final : public Bootstrap {
 public:
  explicit LateNews(std::unique_ptr<Bootstrap> inner) : inner_(std::move(inner)) {}
  void on_failure(std::function<void(const std::string& why)> fn) override {
    waiting_.push_back(std::move(fn));
  }
  void fail(const std::string& why) override { inner_->fail(why); }
  std::optional<std::string> report_waits(const WaitReport&, bool) override { return news_; }
  void announce(const std::string& why) {
    news_ = why;
    for (const auto& fn : waiting_) fn(why);
  }
  bool all_gather(std::span<const uint8_t> own, std::string_view what,
                  std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) override {
    return inner_->all_gather(own, what, all, diagnostics);
  }
  uint32_t size() const override { return inner_->size(); }
  uint32_t rank() const override { return inner_->rank(); }

 private:
  const std::unique_ptr<Bootstrap> inner_;
  std::vector<std::function<void(const std::string& why)>> waiting_;
  std::optional<std::string> news_;
};

/// What ranks do once both have loaded the plan.
enum class Does {
  nothing,           ///< until it hears that a rank has failed
  dies,              ///< when its call has ended, for which rank 0's has begun
  gives_up,          ///< then
  aborts,            ///< launches a call, and then so
  only_launches,     ///< a call, and never asks what has come of it
  drops,             ///< the communicator, after it has launched a call
  waits_for_stream,  ///< on which it has launched a call
  gets_error,        ///< in a step, before its call hears of rank 1's death: LateNews
};

[[noreturn]] void stay() {
  for (;;) ::pause();
}

/// What each rank does. A call of rank 0 waits for what rank 1 never sends.
struct Deeds {
  std::shared_ptr<const Program> plan;
  std::vector<Does> does;

  std::string operator()(Communicator& communicator) const {
    ::signal(SIGABRT, SIG_DFL);  // not as the test would take it
    Diagnostics diagnostics;
    const auto executable = testing::load_unproved(communicator, plan, 4096, diagnostics);
    static std::unique_ptr<Memory> memory;  // calls may go on after this
    memory = communicator.device().allocate(8192, "buffers", diagnostics);
    if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
    const Does own = does[communicator.rank()];
    if (own == Does::nothing) {
      (void)communicator.bootstrap().barrier("stay", diagnostics);
      return "";
    }
    const BoundCall call = executable->bind(
        {.bytes = 4096, .input = memory->data(), .output = memory->data() + 4096}, diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    if (!call || !executable->launch(call, stream, diagnostics)) return testing::text(diagnostics);
    if (own == Does::only_launches) stay();
    if (own == Does::drops) return "";
    if (own == Does::aborts) communicator.abort("enough");
    if (own == Does::gets_error) {
      Diagnostics stepping;
      (void)communicator.register_buffer(memory->data(), 8192, stepping);
      if (!stepping.has_errors()) return "rank 1 has not died";
      dynamic_cast<LateNews&>(communicator.bootstrap()).announce("rank 1 has died");
    }
    const bool ended = communicator.synchronize(stream, diagnostics);
    if (ended && own == Does::dies) raise(SIGKILL);
    if (ended && own == Does::gives_up) communicator.abort("enough");
    communicator.device().destroy_stream(stream);
    return testing::text(diagnostics);
  }
};

std::vector<Outcome> ends_of(Does rank_0, Does rank_1, const testing::Timeouts& timeouts = ending(),
                             const testing::Wrap& wrap = {}) {
  const auto plan = testing::stuck_plan(testing::RankOne::waits_for_rank_0);
  return testing::processes(2, Deeds{plan, {rank_0, rank_1}}, timeouts, wrap);
}

TEST_CASE("a process ends where another rank's death has cut its call short") {
  for (const Does does : {Does::only_launches, Does::drops, Does::waits_for_stream}) {
    const auto ended = ends_of(does, Does::dies);
    CHECK(ended[0].signal == SIGABRT);
    CHECK(ended[1].signal == SIGKILL);
  }
}

TEST_CASE("a process ends where another rank has given up, whose own goes on") {
  const auto ended = ends_of(Does::only_launches, Does::gives_up);
  CHECK(ended[0].signal == SIGABRT);
  CHECK(ended[1].signal == 0);
}

TEST_CASE("a process that has aborted its own call goes on, and so does one without calls") {
  const auto ended = ends_of(Does::aborts, Does::nothing);
  CHECK(ended[0].signal == 0);
  CHECK_THAT(ended[0].said, Catch::StartsWith("error: rank 0: enough\n"));
  CHECK(ended[1].signal == 0);
}

TEST_CASE("a process whose wait takes too long says why it ends, and one without calls goes on") {
  const auto log = testing::set_up("ends") / "log";
  setenv("MSCCLC_DEBUG_FILE", log.c_str(), 1);
  const auto ended = ends_of(Does::only_launches, Does::nothing, ending(milliseconds(300)));
  unsetenv("MSCCLC_DEBUG_FILE");
  CHECK(ended[0].signal == SIGABRT);
  CHECK(ended[1].signal == 0);
  const auto said = read_file(log);
  REQUIRE(said);
  CHECK_THAT(*said, Catch::Contains(" [0] mscclc WARN INIT this process ends, as calls of its rank "
                                    "were cut short, whose results are not whole: hang: "));
  CHECK_THAT(*said, Catch::Contains("; they waited for rank 1\n"));
  std::filesystem::remove_all(log.parent_path());
}

TEST_CASE("a process goes on where the program has got an error before") {
  const auto wrap = [](std::unique_ptr<Bootstrap> inner) -> std::unique_ptr<Bootstrap> {
    return std::make_unique<LateNews>(std::move(inner));
  };
  const auto ended = ends_of(Does::gets_error, Does::dies, ending(), wrap);
  CHECK(ended[0].signal == 0);
  CHECK_THAT(ended[0].said, Catch::StartsWith("error: rank 1 has died\n"));
  CHECK(ended[1].signal == SIGKILL);
}

}  // namespace
}  // namespace mscclc
