// This program is linked statically.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

TEST_CASE("a static program opens libraries of C, and refuses those of C++") {
  REQUIRE(is_static_program());
  CHECK(open_library("libm.so.6"));
  const auto of_cpp = open_library("libstdc++.so.6");
  REQUIRE(!of_cpp);
  CHECK_THAT(of_cpp.error().text(), Catch::StartsWith("libstdc++.so.6: it is a library of C++"));
  const auto none = open_library("libno_such.so");
  REQUIRE(!none);
  CHECK_THAT(none.error().text(), Catch::Contains("libno_such.so"));
}

TEST_CASE("what is not a file is not a library: nothing waits for the writer of a pipe") {
  const char* const folder = ::getenv("TEST_TMPDIR");
  const std::string pipe = std::string(folder == nullptr ? "." : folder) + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/null"), std::string("/")}) {
    const auto opened = open_library(path);
    REQUIRE(!opened);
    CHECK(opened.error() == path + ": it is not a file");
  }
  ::unlink(pipe.c_str());
}

}  // namespace
}  // namespace mscclc
