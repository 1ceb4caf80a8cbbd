#include "tools/watch/file_changes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace mscclc;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("changes_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
  const fs::path path;
};

}  // namespace

TEST_CASE("changes: a file that stays is none") {
  const Folder folder;
  FileChanges changes;
  changes.watch({{folder.file("a", "1"), "1"}});
  CHECK_FALSE(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a change counts once, when the file stays as it is") {
  const Folder folder;
  FileChanges changes;
  changes.watch({{folder.file("a", "1"), "1"}});
  folder.file("a", "22");
  CHECK_FALSE(changes.settled());
  folder.file("a", "333");  // still being written
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a file that is replaced has changed, also by one of its size") {
  const Folder folder;
  FileChanges changes;
  const std::string path = folder.file("a", "1");
  changes.watch({{path, "1"}});
  fs::rename(folder.file("new", "2"), path);
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE("changes: a file that is gone is waited for") {
  const Folder folder;
  FileChanges changes;
  const std::string path = folder.file("a", "1");
  changes.watch({{path, "1"}});
  fs::remove(path);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == path);
  folder.file("a", "1");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
  CHECK(changes.missing().empty());
}

TEST_CASE("changes: what happens while other files are added is not lost") {
  const Folder folder;
  FileChanges changes;
  const std::string a = folder.file("a", "1"), b = folder.file("b", "1");
  changes.watch({{a, "1"}});
  folder.file("a", "22");
  changes.watch({{a, "1"}, {b, "1"}});
  CHECK(changes.settled());
  folder.file("b", "22");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE(
    "changes: a file that has changed since it was read, before it was watched, has changed") {
  const Folder folder;
  FileChanges changes;
  const std::string path = folder.file("a", "22");
  changes.watch({{path, "1"}});
  CHECK(changes.settled());
  CHECK_FALSE(changes.settled());
}

TEST_CASE("changes: a file that is gone since it was read is waited for") {
  const Folder folder;
  FileChanges changes;
  changes.watch({{folder.path / "a", "1"}});
  CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == folder.path / "a");
  folder.file("a", "1");
  CHECK_FALSE(changes.settled());
  CHECK(changes.settled());
}

TEST_CASE("changes: a file that becomes a pipe is waited for, not read") {
  const Folder folder;
  FileChanges changes;
  const std::string path = folder.file("a", "1");
  changes.watch({{path, "1"}});
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(changes.settled());
  CHECK(changes.missing() == path);
  changes.watch({{folder.path / "b", ""}, {path, "1"}});  // ends
  fs::remove(path);
}
