#include "tools/rank_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>

namespace mscclc {
namespace {

using std::chrono::seconds;

constexpr int kFailed = 3;

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

TEST_CASE("a rank that a signal ends is told") {
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
      if (rank != 1) pause();  // for ever, unless it is ended
      if (killed) raise(SIGKILL);
      return 1;
    };
    const int code =
        run_processes({.ranks = 3, .failed = kFailed, .end_together = true}, some_id, wait);
    CHECK(errors.text() == (killed ? "mscclc: rank 1 was ended by signal 9 (Killed)\n" : ""));
    CHECK(code == (killed ? kFailed : 1));
  }
}

TEST_CASE("ranks of a job have met") {
  Diagnostics diagnostics;
  const auto meet = [](uint32_t rank, std::unique_ptr<Bootstrap> bootstrap, Diagnostics& problems) {
    if (bootstrap == nullptr || bootstrap->rank() != rank || bootstrap->size() != 3) return 1;
    return bootstrap->barrier("test", problems) ? 0 : 2;
  };
  CHECK(run_job({.ranks = 3, .failed = kFailed}, seconds(20), meet, diagnostics) == 0);
  CHECK(diagnostics.all().empty());
}

}  // namespace
}  // namespace mscclc
