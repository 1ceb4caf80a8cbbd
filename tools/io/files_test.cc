// Files that are written piece by piece, and pipes that are read.
#include "tools/io/files.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "ir/support/read_file.h"

namespace mscclc {
namespace {

/// A name in a folder of the test's own.
std::string scratch(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return (folder == nullptr ? std::string("/tmp") : std::string(folder)) + "/" + name;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string contents(const std::string& path) {
  const auto text = read_input(path);
  return text ? *text : text.error().text();
}

const std::string kMebibyte(size_t{1} << 20, 'x');

TEST_CASE("a small text is written when it is finished") {
  const std::string path = scratch("small");
  FileWriter file(path);
  REQUIRE(file.write("one "));
  REQUIRE(file.write("two"));
  CHECK(!exists(path));
  REQUIRE(file.finish());
  CHECK(contents(path) == "one two");
}

TEST_CASE("a large text is written as it comes") {
  const std::string path = scratch("large");
  std::string all;
  FileWriter file(path);
  for (int i = 0; i < 40; ++i) {
    const std::string piece = std::to_string(i) + kMebibyte;
    REQUIRE(file.write(piece));
    all += piece;
  }
  CHECK(!exists(path));
  REQUIRE(file.finish());
  CHECK((contents(path) == all));
}

/// The names in a folder.
std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    found.insert(entry.path().filename());
  }
  return found;
}

std::string empty_folder(const std::string& name) {
  const std::string folder = scratch(name);
  std::filesystem::create_directory(folder);
  return folder;
}

mode_t mode_of(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST_CASE("a file that could not be replaced is what it was, and nothing lies beside it") {
  const std::string folder = empty_folder("full"), path = folder + "/file";
  REQUIRE(write_file(path, "the old text"));
  survive_large_writes();
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit small = {1024, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto written = write_file(path, kMebibyte);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(!written);
  CHECK(written.error() == "cannot write '" + path + "': File too large; the limit is 'ulimit -f'");
  CHECK(contents(path) == "the old text");
  CHECK(names(folder) == std::set<std::string>{"file"});
}

TEST_CASE("a reader that has a file open while it is replaced reads the old one to its end") {
  const std::string path = scratch("replaced");
  REQUIRE(write_file(path, "old"));
  const int reader = open(path.c_str(), O_RDONLY);
  REQUIRE(write_file(path, "new"));
  char text[4] = {};
  CHECK(read(reader, text, 3) == 3);
  CHECK(std::string(text) == "old");
  CHECK(contents(path) == "new");
  close(reader);
}

TEST_CASE("a file that is replaced keeps its mode, its links and its other names") {
  const std::string folder = empty_folder("links"), path = folder + "/file";
  REQUIRE(write_file(path, "old"));
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  REQUIRE(symlink("file", (folder + "/link").c_str()) == 0);
  REQUIRE(write_file(folder + "/link", "new"));
  CHECK(contents(path) == "new");
  CHECK(mode_of(path) == 0640);
  CHECK(std::filesystem::is_symlink(folder + "/link"));

  REQUIRE(link(path.c_str(), (folder + "/other").c_str()) == 0);
  REQUIRE(write_file(path, "newer"));
  CHECK(contents(folder + "/other") == "newer");

  REQUIRE(symlink("nothing", (folder + "/loose").c_str()) == 0);
  REQUIRE(write_file(folder + "/loose", "text"));
  CHECK(contents(folder + "/nothing") == "text");
  CHECK(names(folder) == std::set<std::string>{"file", "link", "loose", "nothing", "other"});
}

TEST_CASE("what is not finished leaves no file") {
  const std::string folder = empty_folder("unfinished");
  const std::string small = folder + "/none", large = folder + "/begun";
  {
    FileWriter a(small), b(large);
    REQUIRE(a.write("text"));
    for (int i = 0; i < 20; ++i) REQUIRE(b.write(kMebibyte));
    CHECK(names(folder).size() == 1);
  }
  CHECK(names(folder).empty());
}

TEST_CASE("a file that cannot be written is an error, and stays one") {
  FileWriter file(scratch("no/such/folder"));
  REQUIRE(file.write("text"));
  CHECK(!file.finish());
  CHECK(file.error() ==
        "cannot write '" + scratch("no/such/folder") + "': No such file or directory");
  CHECK(!file.write("more"));
  CHECK(!file.finish());
}

// The kernel holds what is written until it is read, so nothing here waits for another thread.
TEST_CASE("what cannot be written is known before") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  CHECK(could_write("-"));
  CHECK(could_write("here.json"));
  CHECK(could_write(folder / "new.json"));
  CHECK(could_write("/dev/null"));
  CHECK(could_write(folder).error().text() ==
        "cannot write '" + folder.string() + "': Is a directory");
  CHECK(could_write("/no/such/folder/x").error().text() ==
        "cannot write '/no/such/folder/x': No such file or directory");
  CHECK(could_write("/dev/null/x").error().text() == "cannot write '/dev/null/x': Not a directory");
}

TEST_CASE("one file has many names") {
  const std::string path = scratch("one.txt"), other = scratch("other.txt"), link = path + ".link";
  for (const std::string& file : {path, other}) REQUIRE(write_file(file, "x"));
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path, link);
  CHECK(same_file(path, link));
  const std::filesystem::path whole(path);
  CHECK(same_file(path, whole.parent_path() / "." / whole.filename()));
  std::filesystem::remove(link);
  std::filesystem::create_hard_link(path, link);
  CHECK(same_file(path, link));
  CHECK_FALSE(same_file(path, other));
  CHECK_FALSE(same_file("/no/such/file", "/no/such/file"));
  CHECK_FALSE(same_file("/dev/null", "/dev/null"));
  CHECK_FALSE(same_file("-", "-"));
}

TEST_CASE("a pipe without a name is read to its end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "text", 4) == 4);
  close(ends[1]);
  CHECK(contents("/dev/fd/" + std::to_string(ends[0])) == "text");
  close(ends[0]);
}

TEST_CASE("a named pipe is read from when a writer comes until it ends") {
  const std::string path = scratch("written");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::thread writer([&] {
    const int fd = open(path.c_str(), O_WRONLY);  // waits for the reader
    for (const char* text : {"one ", "two"}) {
      if (write(fd, text, std::strlen(text)) < 0) break;
      std::this_thread::yield();
    }
    close(fd);
  });
  CHECK(read_file(path, std::chrono::minutes(10)) == "one two");
  writer.join();
}

TEST_CASE("a named pipe is written when a reader comes") {
  const std::string path = scratch("read");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::optional<std::string> text;
  std::thread reader([&] { text = read_file(path, std::chrono::minutes(10)); });
  const std::string large = kMebibyte + "end";  // more than a pipe holds
  FileWriter file(path, std::chrono::minutes(10));
  CHECK(file.write(large));
  CHECK(file.finish());
  reader.join();
  CHECK(text == large);
}

TEST_CASE("a named pipe without a reader is an error") {
  const std::string path = scratch("unread");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  FileWriter file(path, std::chrono::milliseconds(50));
  CHECK(file.write("text"));
  CHECK_FALSE(file.finish());
  CHECK(file.error() == "cannot write '" + path + "': it is a pipe with no reader");
  CHECK(exists(path));
}

TEST_CASE("a named pipe with a writer that is slow is waited for") {
  const std::string path = scratch("slow");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::atomic<bool> reads = false;
  const int both = open(path.c_str(), O_RDWR | O_CLOEXEC);  // a writer that is there already
  REQUIRE(both >= 0);
  std::thread writer([&] {
    while (!reads) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // longer than the patience
    // Until it has been read: what is in a pipe goes with the last that has it open.
    for (int left = write(both, "late", 4) == 4; left > 0;) ioctl(both, FIONREAD, &left);
    close(both);
  });
  reads = true;
  CHECK(read_file(path, std::chrono::milliseconds(1)) == "late");
  writer.join();
}

TEST_CASE("where a file must be, nothing else is read, and nothing is waited for") {
  const std::string path = scratch("no_file");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);  // which never writes
  REQUIRE(writer >= 0);
  std::string error;
  for (const std::string& name : {path, std::string("/dev/zero")}) {
    const auto text = read_regular_file(name);
    REQUIRE(!text);
    CHECK(text.error() == "cannot read '" + name + "': it is a pipe or a device, not a file");
  }
  const auto of_folder = read_regular_file("/");
  REQUIRE(!of_folder);
  CHECK(of_folder.error() == "cannot read '/': Is a directory");
  const std::string file = scratch("a_file");
  REQUIRE(write_file(file, "text"));
  const auto text = read_regular_file(file);
  REQUIRE(text);
  CHECK(*text == "text");
  close(writer);
}

TEST_CASE("a named pipe without a writer is an error") {
  const std::string path = scratch("silent");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(read_file(path, std::chrono::milliseconds(50)).has_value());
  CHECK(file_error(errno) == "it is a pipe with no writer");
  CHECK(contents(path) == "cannot read '" + path + "': it is a pipe with no writer");
}

}  // namespace
}  // namespace mscclc
