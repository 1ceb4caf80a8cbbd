// Files that are written piece by piece.
#include "tools/files.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

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
  return read_file(path, error).value_or(error);
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

}  // namespace
}  // namespace mscclc
