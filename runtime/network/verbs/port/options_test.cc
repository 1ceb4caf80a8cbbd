// Variables of lanes over verbs.
#include "runtime/network/verbs/port/options.h"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace mscclc::verbs {
namespace {

/// A variable, until it ends.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Set() { ::unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* const name_;
};

std::string refusal_of_variable(const char* name, const char* value) {
  const Set set(name, value);
  Diagnostics diagnostics;
  CHECK(!read_verbs_options(diagnostics));
  return render_text(diagnostics, Sources(), 100);
}

TEST_CASE("what is not set") {
  Diagnostics diagnostics;
  const auto options = read_verbs_options(diagnostics);
  REQUIRE(options);
  CHECK(options->library == "libibverbs.so.1");
  CHECK(options->mlx5_library == "libmlx5.so.1");
  CHECK(!options->data_direct);
  CHECK(!options->devices.names());
  CHECK(!options->gid_index);
  CHECK(!options->mode);
  CHECK(options->queues == 1);
  CHECK(options->timeout == 18);
  CHECK(options->retries == 7);
  CHECK(options->service_level == 0);
  CHECK(options->traffic_class == 0);
  CHECK(options->partition == 0);
}

TEST_CASE("what is set") {
  const Set library("MSCCLC_IBV_SO", "other.so"), mlx5("MSCCLC_MLX5_SO", "direct.so"),
      devices("MSCCLC_IB_HCA", "=mlx5_0:2"), index("MSCCLC_IB_GID_INDEX", "0"),
      mode("MSCCLC_IBV_MODE", "host-no-atomic"), queues("MSCCLC_IB_QPS", "4"),
      timeout("MSCCLC_IB_TIMEOUT", "14"), retries("MSCCLC_IB_RETRY_CNT", "0"),
      level("MSCCLC_IB_SL", "3"), traffic("MSCCLC_IB_TC", "106"), partition("MSCCLC_IB_PKEY", "2");
  Diagnostics diagnostics;
  const auto options = read_verbs_options(diagnostics);
  REQUIRE(options);
  CHECK(options->library == "other.so");
  CHECK(options->mlx5_library == "direct.so");
  CHECK(options->devices.has("mlx5_0", 2));
  CHECK(!options->devices.has("mlx5_0", 1));
  CHECK(options->gid_index == 0);
  CHECK(options->mode == SignalMode::host_no_atomic);
  CHECK(options->queues == 4);
  CHECK(options->timeout == 14);
  CHECK(options->retries == 0);
  CHECK(options->service_level == 3);
  CHECK(options->traffic_class == 106);
  CHECK(options->partition == 2);
}

TEST_CASE("what is wrong") {
  for (const std::string mode : {"guest", "no", "host-without-atomics"}) {
    CHECK(refusal_of_variable("MSCCLC_IBV_MODE", mode.c_str()) ==
          "error: MSCCLC_IBV_MODE is '" + mode + "'; allowed is 'host' or 'host-no-atomic'\n");
  }
  CHECK(
      refusal_of_variable("MSCCLC_IB_HCA", "mlx5_0:0") ==
      "error: MSCCLC_IB_HCA is 'mlx5_0:0'; '0' is not a port: ports are numbered from 1 to 255\n");
  CHECK(refusal_of_variable("MSCCLC_IB_QPS", "17") ==
        "error: MSCCLC_IB_QPS is '17'; allowed is a whole number from 1 to 16\n");
}

}  // namespace
}  // namespace mscclc::verbs
