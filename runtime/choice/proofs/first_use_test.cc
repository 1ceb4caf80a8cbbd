#include "runtime/choice/proofs/first_use.h"

#include <catch2/catch.hpp>

#include "tests/helpers/runtime/log_file.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;

TEST_CASE("A first use of more than 100 ms is a warning that says what to do", "[proofs]") {
  testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  REQUIRE(log.started());
  FirstUse::log("proved", "'ring'", "keep it", 100ms);
  CHECK(log.text().empty());
  FirstUse::log("proved", "'ring'", "keep it", 101ms);
  CHECK(log.lines("proved 'ring' in 101.0 ms, which its first call waited for: keep it") == 1);
}

TEST_CASE("A fast first use is a line of information", "[proofs]") {
  testing::LogFile log(
      Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "LOAD"}});
  REQUIRE(log.started());
  FirstUse::log("proved", "'ring'", "keep it", 3ms);
  CHECK(log.lines("proved 'ring' in 3.0 ms") == 1);
}

}  // namespace
}  // namespace mscclc
