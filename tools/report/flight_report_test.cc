#include "tools/report/flight_report.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using Executables = std::map<uint32_t, RankFlight::Calls>;

/// A rank of two that has launched so many calls, and whose file has these.
RankFlight flight(uint32_t rank, uint64_t launched, Executables calls) {
  RankFlight made;
  made.rank = rank;
  made.size = 2;
  made.launched = launched;
  made.executables = std::move(calls);
  return made;
}

std::string text(std::vector<RankFlight> ranks) {
  Diagnostics diagnostics;
  return report_flights(std::move(ranks), diagnostics).value_or("none");
}

const Executables kOneEach = {{1, {{1, {}}}}, {2, {{1, {}}}}};
const Executables kTwoOfTheSecond = {{2, {{1, {}}, {2, {}}}}};

}  // namespace

TEST_CASE("a rank whose file has lost a call does not lag those that have it") {
  const std::string said = text({flight(0, 3, kTwoOfTheSecond), flight(1, 2, kOneEach)});
  INFO(said);
  CHECK(said.find("lagging: rank 0") == std::string::npos);
  CHECK(said.find("lagging: rank 1 has launched 1 calls of executable 2, rank 0 2") !=
        std::string::npos);
}

TEST_CASE("a rank that has launched no call of an executable lags") {
  const std::string said = text({flight(0, 2, kTwoOfTheSecond), flight(1, 2, kOneEach)});
  INFO(said);
  CHECK(said.find("lagging: rank 0 has launched 0 calls of executable 1, rank 1 1") !=
        std::string::npos);
}

}  // namespace mscclc
