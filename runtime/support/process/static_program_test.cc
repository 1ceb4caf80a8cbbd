// This program is linked statically.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

TEST_CASE("a static program opens libraries of C, and refuses those of C++") {
  REQUIRE(is_static_program());
  std::string why;
  CHECK(open_library("libm.so.6", why) != nullptr);
  CHECK(why.empty());
  CHECK(open_library("libstdc++.so.6", why) == nullptr);
  CHECK_THAT(why, Catch::StartsWith("libstdc++.so.6: it is a library of C++"));
  CHECK(open_library("libno_such.so", why) == nullptr);
  CHECK_THAT(why, Catch::Contains("libno_such.so"));
}

TEST_CASE("what is not a file is not a library: nothing waits for the writer of a pipe") {
  const std::string pipe = "./pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string why;
  for (const std::string& path : {pipe, std::string("/dev/null"), std::string("/")}) {
    CHECK(open_library(path, why) == nullptr);
    CHECK(why == path + ": it is not a file");
  }
  ::unlink(pipe.c_str());
}

}  // namespace
}  // namespace mscclc
