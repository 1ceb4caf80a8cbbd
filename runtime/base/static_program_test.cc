// This program is linked statically.
#include <catch2/catch.hpp>

#include "runtime/base/open_library.h"

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

}  // namespace
}  // namespace mscclc
