#include "runtime/support/settings/settings.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace mscclc {
namespace {

std::vector<std::string> mistakes(Environment::Values values) {
  Diagnostics diagnostics;
  const bool good = check_settings(Environment(std::move(values)), diagnostics);
  CHECK(good == !diagnostics.has_errors());
  std::vector<std::string> texts;
  for (const Diagnostic& d : diagnostics.all()) texts.push_back(d.message);
  return texts;
}

TEST_CASE("what has a form of its own is looked at, whether it is needed or not") {
  using Texts = std::vector<std::string>;
  CHECK(mistakes({{"MSCCLC_ID", "mscclc1/10.0.0.1/24123/5f0c7a3e9d6b48a1b2c3d4e5f6071829"},
                  {"MSCCLC_SOCKET_IFNAME", "^=eth0,ib0"},
                  {"MSCCLC_IB_HCA", "=mlx5_0:1,mlx5_2"}}) == Texts{});
  CHECK(mistakes({{"MSCCLC_IB_HCA", "mlx5_0:0"}}) ==
        Texts{"MSCCLC_IB_HCA is 'mlx5_0:0'; '0' is not a port: ports are numbered from 1 to 255"});
  CHECK(mistakes({{"MSCCLC_SOCKET_IFNAME", "eth0,,ib0"}}) ==
        Texts{"MSCCLC_SOCKET_IFNAME is 'eth0,,ib0'; allowed are names separated by commas, with "
              "'^' (all but these), '=' (whole names) or '^=' before the first"});
  const Texts id = mistakes({{"MSCCLC_ID", "mscclc1/10.0.0.1/24123"}});
  REQUIRE(id.size() == 1);
  CHECK(id[0] == "MSCCLC_ID: this is not a unique id: it has 3 parts between '/', not 4");
}

TEST_CASE("text that is not allowed is one mistake, and not shown where it is secret") {
  CHECK(mistakes({{"MSCCLC_ID", "\x07"}}).size() == 1);
  CHECK(mistakes({{"MSCCLC_IB_HCA", "\x07"}}).size() == 1);
  const auto id = mistakes({{"MSCCLC_ID", "mscclc1/10.0.0.1/24123/hush"}});
  REQUIRE(id.size() == 1);
  CHECK_THAT(id[0], !Catch::Contains("hush"));
}

TEST_CASE("a mistake that has been reported is not reported again") {
  Diagnostics diagnostics;
  const Environment environment({{"MSCCLC_LANE", "ib"}, {"MSCCLC_IB_HCA", ",x"}});
  CHECK_FALSE(check_settings(environment, diagnostics));
  CHECK_FALSE(check_settings(environment, diagnostics));
  CHECK(diagnostics.all().size() == 2);
}

}  // namespace
}  // namespace mscclc
