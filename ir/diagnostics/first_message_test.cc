#include "ir/diagnostics/first_message.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

TEST_CASE("the first message of diagnostics is that of their first error") {
  Diagnostics diagnostics;
  CHECK(first_message(diagnostics) == "");
  CHECK(first_message(diagnostics, "it could not be read") == "it could not be read");
  diagnostics.warning("a", {}, "it is odd");
  CHECK(first_message(diagnostics, "it could not be read") == "it is odd");
  diagnostics.error("b", {}, "it is wrong");
  diagnostics.error("c", {}, "it is worse");
  CHECK(first_message(diagnostics) == "it is wrong");
}

}  // namespace
}  // namespace mscclc
