#include "runtime/doors/nccl/comm/config.h"

#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

struct Version {
  size_t bytes;
  unsigned version;
};
constexpr Version kVersions[] = {{24, 21400}, {40, 21700},  {48, 21805},  {48, 22600},
                                 {72, 22703}, {80, 22809},  {88, 22902},  {96, 23003},
                                 {96, 23007}, {112, 23100}, {120, 23203}, {128, 23300}};

TEST_CASE("configurations of every version are read [case-18]") {
  for (const Version& version : kVersions) {
    CallersConfig config(version.bytes, version.version);
    config.at(16) = 0;
    const auto read = Config::read(config.get());
    INFO(version.version);
    REQUIRE(read.has_value());
    CHECK(read->blocking() == 0);
  }
}

TEST_CASE("bytes that were padding in the caller's version mean nothing [case-18]") {
  CallersConfig config(48, 21805);
  config.at(44) = -7;  // trafficClass since 2.26
  CHECK(Config::read(config.get()).has_value());
  CallersConfig newer(48, 22600);
  newer.at(44) = -7;
  CHECK_FALSE(Config::read(newer.get()).has_value());
}

TEST_CASE("a configuration that was not initialized is refused [case-19]") {
  CallersConfig config(80, 22809);
  config.at(8) = 0;
  CHECK_FALSE(Config::read(config.get()).has_value());
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("NCCL_CONFIG_INITIALIZER"));
  CallersConfig small(8, 22809);
  CHECK_FALSE(Config::read(small.get()).has_value());
}

TEST_CASE("each field has its range [case-20]") {
  struct Wrong {
    size_t offset;
    int value;
  };
  for (const Wrong& wrong : {Wrong{16, 2},
                             {20, 9},
                             {24, 0},
                             {28, -1},
                             {40, 2},
                             {56, 5},
                             {60, 4},
                             {64, -1},
                             {68, 0},
                             {72, 0},
                             {76, 2},
                             {80, 3},
                             {84, 0},
                             {88, 0},
                             {92, 2},
                             {96, 7},
                             {112, -1}}) {
    CallersConfig config(120, 23203);
    config.at(wrong.offset) = wrong.value;
    INFO(wrong.offset);
    CHECK_FALSE(Config::read(config.get()).has_value());
  }
  CallersConfig config(112, 23100);
  config.at(24) = 8;
  config.at(28) = 4;
  CHECK_FALSE(Config::read(config.get()).has_value());
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("minCTAs is 8, more than maxCTAs, 4"));
}

TEST_CASE("texts are copied") {
  std::string name = "tensor parallel";
  CallersConfig config(112, 23100);
  const char* pointer = name.c_str();
  std::memcpy(&config.at(48), &pointer, sizeof pointer);
  const auto read = Config::read(config.get());
  REQUIRE(read.has_value());
  name = "gone";
  CHECK(read->name() == "tensor parallel");
}

TEST_CASE("fields that have no effect on plans are warned of where their variables are") {
  const auto warnings = [](CallersConfig& config, const Environment::Values& set) {
    const auto read = Config::read(config.get());
    REQUIRE(read.has_value());
    std::vector<std::string> fields;
    for (const std::string& text : read->without_effect(Environment(set))) {
      CHECK_THAT(text, Catch::Contains(" of a communicator's configuration has no effect on calls "
                                       "that plans serve: "));
      fields.push_back(text.substr(0, text.find(' ')));
    }
    return fields;
  };
  using Fields = std::vector<std::string>;
  CallersConfig config(112, 23100);
  CHECK(warnings(config, {{"MSCCLC_LANE", "verbs"}}) == Fields{});
  config.at(44) = 106;
  config.at(96) = 1;
  CHECK(warnings(config, {}) == Fields{"launchOrderImplicit"});
  CHECK(warnings(config, {{"MSCCLC_LANE", "verbs"}}) ==
        Fields{"trafficClass", "launchOrderImplicit"});
  CHECK(warnings(config, {{"MSCCLC_LANE", "verbs"}, {"MSCCLC_IB_TC", "0"}}) ==
        Fields{"launchOrderImplicit"});
  CallersConfig named(112, 23100);
  const auto warned_of = [&](const char* name, const Environment::Values& set) {
    std::memcpy(&named.at(32), &name, sizeof name);
    return warnings(named, set) == Fields{"netName"};
  };
  CHECK(warned_of("IB", {}));
  CHECK_FALSE(warned_of("IB", {{"MSCCLC_LANE", "sockets"}}));
  CHECK_FALSE(warned_of("Socket", {}));
  CHECK_FALSE(warned_of("AWS Libfabric", {}));
}

TEST_CASE("the real NCCL gets the caller's version, and waits [case-21]") {
  std::array<uint8_t, kMaxConfigBytes> bytes;
  const auto word = [&](size_t offset) {
    int value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  CallersConfig config(48, 21805);
  config.at(16) = 0;
  config.at(28) = 16;
  const auto read = Config::read(config.get());
  REQUIRE(read.has_value());
  CHECK(read->for_real(bytes) != nullptr);
  CHECK(word(0) == 48);
  CHECK(word(12) == 21805);
  CHECK(word(16) == 1);
  CHECK(word(28) == 16);
  CHECK(Config().for_real(bytes) != nullptr);
  CHECK(word(0) == 24);  // what every version takes
}

}  // namespace
}  // namespace mscclc::nccl::testing
