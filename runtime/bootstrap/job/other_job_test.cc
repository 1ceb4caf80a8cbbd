// Which processes are ranks of another job of the same name.
#include "runtime/bootstrap/job/other_job.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/support/process/proc.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

/// Processes with environments of their own, which sleep.
class Sleepers {
 public:
  ~Sleepers() {
    for (const int32_t process : all_) ::kill(process, SIGKILL), ::waitpid(process, nullptr, 0);
  }
  int32_t start(std::vector<std::string> environment, const char* time = "1000") {
    std::vector<char*> entries;
    for (std::string& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    const int32_t process = ::fork();
    if (process == 0) {
      ::execle("/bin/sleep", "sleep", time, nullptr, entries.data());
      ::_exit(127);
    }
    all_.push_back(process);
    // Until then it looks like this test, and then for a moment as if nothing were set.
    while (program_of(process) == program_of(::getpid()) || program_of(process).empty() ||
           entries_of(process, "environ").empty()) {
      REQUIRE(::waitpid(process, nullptr, WNOHANG) == 0);  // it has not ended
      ::usleep(1000);
    }
    return process;
  }

 private:
  std::vector<int32_t> all_;
};

TEST_CASE("ranks of another job are found before they say anything") {
  using Entries = std::vector<std::string>;
  const std::string port = "MASTER_PORT=" + std::to_string(::getpid());
  struct Case {
    const char* what;
    Entries other;
    bool found;
  };
  const Case cases[] = {
      {"the same rank", {"RANK=1", port, "PATH=/"}, true},
      {"with settings that make no job", {"RANK=1", port, "MSCCLC_DEBUG=INFO"}, true},
      {"another rank", {"RANK=0", port}, false},
      {"another port", {"RANK=1", port + "0"}, false},
      {"another start of the job", {"RANK=1", port, "TORCHELASTIC_RESTART_COUNT=1"}, false},
      {"no rank", {port}, false},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    Sleepers sleepers;
    const int32_t before = sleepers.start({"RANK=1", port});  // of an earlier start
    while (ticks_now() <= facts_of(before)->began) ::usleep(1000);
    const int32_t rank = sleepers.start({"RANK=1", port});
    const int32_t other = sleepers.start(c.other);
    const OtherJob job = find_other_job({{1, rank}});
    CHECK(job.processes == (c.found ? std::vector<int32_t>{other} : std::vector<int32_t>{}));
    CHECK(job.why.empty() == !c.found);
    // Both are ranks of one job that know of each other: that is for the hub to say.
    if (c.found) CHECK(find_other_job({{1, rank}, {1, other}}).why.empty());
    // The environment of this one is not what says which rank it is.
    CHECK(find_other_job({{0, rank}}).why.empty());
  }
}

TEST_CASE("a process that says nothing of ranks is no rank of another job") {
  CHECK(find_other_job({{0, ::getpid()}}).why.empty());
  CHECK(find_other_job({}).why.empty());
}

}  // namespace
}  // namespace mscclc
