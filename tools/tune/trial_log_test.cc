// The file of trials: what is in it is found again, whatever ended the run.
#include "tools/tune/trial_log.h"

#include "ir/support/read_file.h"
#include "tests/helpers/files/made_up_folder.h"
#include "tools/io/files.h"
#include "tools/tune/small_library_test.h"

namespace mscclc::tune {
namespace {

TrialLog opened(const std::string& path) {
  auto log = TrialLog::open(path, "two ranks");
  REQUIRE(log);
  return *std::move(log);
}

std::string refusal(const std::string& path, const std::string& about) {
  const auto log = TrialLog::open(path, about);
  REQUIRE_FALSE(log);
  return log.error().text();
}

void write(const std::string& path, const std::string& text) { REQUIRE(write_file(path, text)); }

}  // namespace

TEST_CASE("trials are found again, each under its call, plan and pass") {
  const mscclc::testing::MadeUpFolder folder;
  const std::string path = folder.file("trials.jsonl");
  {
    TrialLog log = opened(path);
    CHECK(log.size() == 0);
    REQUIRE(log.add(two_ranks(64), "a:B=1", 0, {.ns = 1500.5}));
    REQUIRE(log.add(two_ranks(64), "a:B=1", 1, {.ns = 1600}));
    REQUIRE(log.add(two_ranks(64), "a:B=2", 0, {.wrong = 3}));
    REQUIRE(log.add(two_ranks(128), "a:B=2", 0, {.why = "it has \"many\" blocks\n"}));
  }
  const TrialLog log = opened(path);
  CHECK(log.size() == 4);
  CHECK(log.find(two_ranks(64), "a:B=1", 0)->ns == 1500.5);
  CHECK(log.find(two_ranks(64), "a:B=1", 1)->ns == 1600);
  CHECK(log.find(two_ranks(64), "a:B=2", 0)->wrong == 3);
  CHECK_FALSE(log.find(two_ranks(64), "a:B=2", 0)->good());
  CHECK(log.find(two_ranks(128), "a:B=2", 0)->why == "it has \"many\" blocks\n");
  CHECK(log.find(two_ranks(128), "a:B=1", 0) == nullptr);
  LibraryCall other = two_ranks(64);
  other.dtype = Dtype::f16;
  CHECK(log.find(other, "a:B=1", 0) == nullptr);
}

TEST_CASE("a line that was cut off is dropped") {
  const mscclc::testing::MadeUpFolder folder;
  const std::string path = folder.file("trials.jsonl");
  REQUIRE(opened(path).add(two_ranks(64), "a", 0, {.ns = 1}));
  const std::string whole = read_file(path).value();
  for (const size_t cut : {size_t{1}, size_t{10}, whole.size() - whole.find('\n') - 2}) {
    write(path, whole.substr(0, whole.size() - cut));
    TrialLog log = opened(path);
    CHECK(log.size() == 0);
    REQUIRE(log.add(two_ranks(64), "a", 0, {.ns = 1}));
    CHECK(read_file(path) == whole);
  }
}

TEST_CASE("files of other runs, and other files, are refused and stay") {
  const mscclc::testing::MadeUpFolder folder;
  const std::string path = folder.file("trials.jsonl");
  REQUIRE(opened(path).add(two_ranks(64), "a", 0, {.ns = 1}));
  CHECK(
      refusal(path, "four ranks").find("is of another run (\"two ranks\", here \"four ranks\")") !=
      std::string::npos);
  const std::string whole = read_file(path).value();
  for (const char* line : {"{}", "[1]", "nonsense", R"({"call":"x","plan":"y","pass":-1,"ns":1})",
                           R"({"call":"x","plan":"y","pass":0,"ns":-1})",
                           R"({"call":"x","plan":"y","pass":0,"ns":1,"wrong":"no"})"}) {
    const std::string text = whole + line + "\n";
    write(path, text);
    CHECK(refusal(path, "two ranks").find("line 3: not a line of") != std::string::npos);
    CHECK(read_file(path) == text);
  }
  write(path, "my letters\n");
  CHECK(refusal(path, "two ranks").find("is no file of 'mscclc tune'") != std::string::npos);
}

TEST_CASE("what cannot be written says why") {
  const auto log = TrialLog::open("/proc/no/such/folder/x", "two ranks");
  REQUIRE_FALSE(log);
  CHECK(log.error().message.find("/proc/no/such/folder/x") != std::string::npos);
}

}  // namespace mscclc::tune
