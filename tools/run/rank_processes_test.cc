#include "tools/run/rank_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/helpers/runtime/longer_times.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kFailed = 3;
constexpr int kLooks = 60'000;  // far beyond what is needed, for machines under load

/// What run_processes() writes to standard error.
class Errors {
 public:
  Errors() : kept_(dup(STDERR_FILENO)), file_(std::tmpfile()) {
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~Errors() { std::fclose(file_); }
  std::string text() {
    std::fflush(stderr);
    dup2(kept_, STDERR_FILENO);
    close(kept_);
    return so_far();
  }
  /// Also in a child.
  std::string so_far() const {
    std::string text(4096, '\0');
    const ssize_t n = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }

 private:
  const int kept_;
  std::FILE* const file_;
};

std::string some_id() { return "id"; }

TEST_CASE("the greatest exit code of all ranks counts") {
  const int code = run_processes(
      {.ranks = 3, .failed = kFailed}, some_id,
      [](uint32_t rank, const std::string& id) { return id == "id" ? static_cast<int>(rank) : 9; });
  CHECK(code == 2);
}

TEST_CASE("a rank whose output cannot be written counts before all others") {
  const int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
  REQUIRE((kept >= 0 && full >= 0));
  std::fflush(stdout);
  dup2(full, STDOUT_FILENO);
  Errors errors;
  const auto speak = [](uint32_t rank, const std::string&) {
    if (rank == 0) std::fputs("a line\n", stdout);
    return static_cast<int>(rank);
  };
  const int code = run_processes({.ranks = 4, .failed = kFailed, .unwritten = 2}, some_id, speak);
  dup2(kept, STDOUT_FILENO);
  CHECK(errors.text() == "mscclc: cannot write standard output: No space left on device\n");
  CHECK(code == 2);
}

TEST_CASE("what ranks say comes once, in their order") {
  Errors errors;
  const auto speak = [](uint32_t rank, const std::string&) {
    if (rank == 0) usleep(50'000);
    std::fputs(rank == 0 ? "zero\n" : "others\n", stderr);
    return 0;
  };
  const int code = run_processes({.ranks = 3, .failed = kFailed}, some_id, speak);
  CHECK(errors.text() == "zero\nothers\n");
  CHECK(code == 0);
}

TEST_CASE("a rank that a signal ends is reported") {
  Errors errors;
  const auto die = [](uint32_t rank, const std::string&) {
    if (rank == 1) raise(SIGKILL);
    return 0;
  };
  const int code = run_processes({.ranks = 2, .failed = kFailed}, some_id, die);
  CHECK(errors.text() == "mscclc: rank 1 was ended by signal 9 (Killed)\n");
  CHECK(code == kFailed);
}

TEST_CASE("without an id no rank runs") {
  const int code = run_processes(
      {.ranks = 2, .failed = kFailed}, [] { return std::string(); },
      [](uint32_t, const std::string&) { return 0; });
  CHECK(code == kFailed);
}

TEST_CASE("the first rank that fails ends the others, if it is asked to") {
  for (const bool killed : {false, true}) {
    Errors errors;
    const auto wait = [&](uint32_t rank, const std::string&) {
      if (rank != 1) pause();  // forever, unless it is ended
      if (killed) raise(SIGKILL);
      return 1;
    };
    const int code =
        run_processes({.ranks = 3, .failed = kFailed, .end_together = true}, some_id, wait);
    CHECK(errors.text() == (killed ? "mscclc: rank 1 was ended by signal 9 (Killed)\n" : ""));
    CHECK(code == (killed ? kFailed : 1));
  }
}

TEST_CASE("what a rank says comes out though another still runs") {
  Errors errors;
  const auto look = [&](uint32_t rank, const std::string&) {
    if (rank == 0) std::fputs("zero\n", stderr);
    if (rank == 0) return 0;
    for (int i = 0; i < kLooks && errors.so_far() != "zero\n"; ++i) usleep(5'000);
    return errors.so_far() == "zero\n" ? 0 : 1;
  };
  CHECK(run_processes({.ranks = 2, .failed = kFailed}, some_id, look) == 0);
  CHECK(errors.text() == "zero\n");
}

TEST_CASE("a rank that does not end after the others have failed is killed and reported") {
  for (const bool stopped : {false, true}) {
    const auto hang = [&](uint32_t rank, const std::string&) {
      if (rank != 1) std::fputs("rank 1 does not answer\n", stderr);
      if (rank != 1) return 1;
      for (;;) stopped ? raise(SIGSTOP) : pause();
    };
    // The two others are to end within that.
    const auto is_right = [&](int factor) {
      Errors errors;
      const RankProcesses how{
          .ranks = 3, .failed = kFailed, .patience = factor * milliseconds(300)};
      CHECK(run_processes(how, some_id, hang) == kFailed);
      return errors.text() ==
             fmt::format(
                 "rank 1 does not answer\n"
                 "mscclc: rank 1 had not ended {:g} s after the others, and was killed\n",
                 0.3 * factor);
    };
    CHECK(testing::right_in_longer_times(is_right));
  }
}

TEST_CASE("after success a rank may take its time, unless it is stopped") {
  constexpr milliseconds kPatience{100};
  const RankProcesses how{.ranks = 2, .failed = kFailed, .patience = kPatience};
  for (const bool stopped : {false, true}) {
    Errors errors;
    const auto be_slow = [&](uint32_t rank, const std::string&) {
      if (rank == 1 && stopped) raise(SIGSTOP);
      if (rank == 1) usleep(1'000'000);
      return 0;
    };
    CHECK(run_processes(how, some_id, be_slow) == (stopped ? kFailed : 0));
    CHECK(errors.text() ==
          (stopped ? "mscclc: rank 1 had not ended 0.1 s after the others, and was killed\n" : ""));
  }
}

TEST_CASE("a rank that is stopped is noticed after the job's silence") {
  constexpr int kNoticed = 5;
  const auto stop = [](uint32_t rank, std::unique_ptr<Bootstrap> bootstrap, Diagnostics& problems) {
    if (bootstrap == nullptr) return 1;
    if (rank == 1) raise(SIGSTOP);
    if (bootstrap->barrier("test", problems)) return 2;
    const std::string& why = problems.all().front().message;
    const size_t at = why.find("silent for ");
    const bool noticed = why.find("rank 1 (process ") == 0 && at != std::string::npos;
    // Long before the default.
    return noticed && std::stod(why.substr(at + 11)) < 30 ? kNoticed : 4;
  };
  const RankProcesses how{.ranks = 2, .failed = kFailed, .patience = milliseconds(100)};
  // In which the other is not to be silent.
  const auto is_right = [&](int factor) {
    Diagnostics diagnostics;
    Errors errors;
    const int code = run_job(how, {seconds(600), factor * seconds(4)}, stop, diagnostics);
    const std::string killed =
        "mscclc: rank 1 had not ended 0.1 s after the others, and was killed\n";
    return errors.text() == killed && code == kNoticed;
  };
  CHECK(testing::right_in_longer_times(is_right, {1, 2, 5}));
}

TEST_CASE("ranks of a job have met") {
  Diagnostics diagnostics;
  const auto meet = [](uint32_t rank, std::unique_ptr<Bootstrap> bootstrap, Diagnostics& problems) {
    if (bootstrap == nullptr || bootstrap->rank() != rank || bootstrap->size() != 3) return 1;
    return bootstrap->barrier("test", problems) ? 0 : 2;
  };
  CHECK(run_job({.ranks = 3, .failed = kFailed}, {seconds(300), seconds(300)}, meet, diagnostics) ==
        0);
  CHECK(diagnostics.all().empty());
}

}  // namespace
}  // namespace mscclc
