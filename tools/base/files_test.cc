// Files that are written piece by piece, and pipes that are read.
#include "tools/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "ir/base/read_file.h"

namespace mscclc {
namespace {

/// A name in a folder of the test's own.
std::string scratch(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return (folder == nullptr ? std::string("/tmp") : std::string(folder)) + "/" + name;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string contents(const std::string& path) {
  std::string error;
  return read_input(path, error).value_or(error);
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
  CHECK(exists(path));
  REQUIRE(file.finish());
  CHECK((contents(path) == all));
}

TEST_CASE("what is not finished leaves no file") {
  const std::string small = scratch("none"), large = scratch("begun");
  {
    FileWriter a(small), b(large);
    REQUIRE(a.write("text"));
    for (int i = 0; i < 20; ++i) REQUIRE(b.write(kMebibyte));
    CHECK(exists(large));
  }
  CHECK(!exists(small));
  CHECK(!exists(large));
}

TEST_CASE("a file that cannot be written is told, and stays told") {
  FileWriter file(scratch("no/such/folder"));
  REQUIRE(file.write("text"));
  CHECK(!file.finish());
  CHECK(file.error() ==
        "cannot write '" + scratch("no/such/folder") + "': No such file or directory");
  CHECK(!file.write("more"));
  CHECK(!file.finish());
}

// The kernel holds what is written until it is read, so nothing here waits for another thread.
TEST_CASE("a pipe without a name is read to its end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "text", 4) == 4);
  close(ends[1]);
  CHECK(contents("/dev/fd/" + std::to_string(ends[0])) == "text");
  close(ends[0]);
}

TEST_CASE("a named pipe is read from when somebody writes until he ends") {
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

TEST_CASE("a named pipe with a writer that is slow is waited for") {
  const std::string path = scratch("slow");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  std::atomic<bool> reads = false;
  const int both = open(path.c_str(), O_RDWR | O_CLOEXEC);  // a writer that is there already
  REQUIRE(both >= 0);
  std::thread writer([&] {
    while (!reads) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // longer than the patience
    if (write(both, "late", 4) == 4) close(both);
  });
  reads = true;
  CHECK(read_file(path, std::chrono::milliseconds(1)) == "late");
  writer.join();
}

TEST_CASE("where a file must be, nothing else is read, and nothing is waited for") {
  const std::string path = scratch("no_file");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);  // who never writes
  REQUIRE(writer >= 0);
  std::string error;
  for (const std::string& name : {path, std::string("/dev/zero")}) {
    CHECK_FALSE(read_regular_file(name, error).has_value());
    CHECK(error == "cannot read '" + name + "': it is a pipe or a device, no file");
  }
  CHECK_FALSE(read_regular_file("/", error).has_value());
  CHECK(error == "cannot read '/': Is a directory");
  const std::string file = scratch("a_file");
  REQUIRE(write_file(file, "text", error));
  CHECK(read_regular_file(file, error) == "text");
  close(writer);
}

TEST_CASE("a named pipe that nobody writes to is an error") {
  const std::string path = scratch("silent");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(read_file(path, std::chrono::milliseconds(50)).has_value());
  CHECK(file_error(errno) == "it is a pipe with no writer");
  CHECK(contents(path) == "cannot read '" + path + "': it is a pipe with no writer");
}

}  // namespace
}  // namespace mscclc
