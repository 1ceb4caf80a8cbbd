#include "tools/watch/file_changes.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/helpers/files/made_up_folder.h"

using namespace mscclc;
namespace fs = std::filesystem;

TEST_CASE("changes: a file that stays is none") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  changes.watch({{folder.write("a", "1"), "1"}});
  CHECK_FALSE(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a change counts once, when the file stays as it is") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  changes.watch({{folder.write("a", "1"), "1"}});
  folder.write("a", "22");
  CHECK_FALSE(changes.settled());
  folder.write("a", "333");  // still being written
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a file that is replaced has changed, also by one of its size") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  const std::string path = folder.write("a", "1");
  changes.watch({{path, "1"}});
  fs::rename(folder.write("new", "2"), path);
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE("changes: a file that is gone is waited for") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  const std::string path = folder.write("a", "1");
  changes.watch({{path, "1"}});
  fs::remove(path);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == path);
  folder.write("a", "1");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
  CHECK(changes.missing().empty());
}

TEST_CASE("changes: what happens while other files are added is not lost") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  const std::string a = folder.write("a", "1"), b = folder.write("b", "1");
  changes.watch({{a, "1"}});
  folder.write("a", "22");
  changes.watch({{a, "1"}, {b, "1"}});
  CHECK(changes.settled());
  folder.write("b", "22");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE(
    "changes: a file that has changed since it was read, before it was watched, has changed") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  const std::string path = folder.write("a", "22");
  changes.watch({{path, "1"}});
  CHECK(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a file that is gone since it was read is waited for") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  changes.watch({{folder.file("a"), "1"}});
  CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == folder.file("a"));
  folder.write("a", "1");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE("changes: a file that becomes a pipe is waited for, not read") {
  const testing::MadeUpFolder folder;
  FileChanges changes;
  const std::string path = folder.write("a", "1");
  changes.watch({{path, "1"}});
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == path);
  changes.watch({{folder.file("b"), ""}, {path, "1"}});  // ends
  fs::remove(path);
}
