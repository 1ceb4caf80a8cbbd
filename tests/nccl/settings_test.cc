// NCCL's variables and configuration files where plans serve calls.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

/// The address in an id that is made now; else the error.
std::string address_of_id() {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return ncclGetLastError(nullptr);
  const std::string text(id.internal);
  const size_t first = text.find('/') + 1;
  return text.substr(first, text.find('/', first) - first);
}

ncclResult_t reduce_two(Ranks& ranks) {
  int value[2] = {1, 2};
  return ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kInt32, kSum, comm, nullptr);
  });
}

TEST_CASE("ids have the address of the interface that NCCL_SOCKET_IFNAME names") {
  const ServedBy served(nullptr, true);
  const Setting interface("NCCL_SOCKET_IFNAME", "=lo,");
  const Setting family("NCCL_SOCKET_FAMILY", "AF_INET");
  CHECK(address_of_id() == "127.0.0.1");
  const Setting none("NCCL_SOCKET_IFNAME", "=nosuch0");
  CHECK_THAT(address_of_id(), Catch::Contains("MSCCLC_SOCKET_IFNAME='=nosuch0'") &&
                                  Catch::Contains(" (MSCCLC_SOCKET_IFNAME is NCCL_SOCKET_IFNAME "
                                                  "here)"));
  const Setting ours("MSCCLC_SOCKET_IFNAME", "=lo");
  CHECK(address_of_id() == "127.0.0.1");
}

TEST_CASE("a configuration file of NCCL's says the interface, after the environment") {
  const ServedBy served(nullptr, true);
  const std::filesystem::path file =
      std::filesystem::path(std::getenv("TEST_TMPDIR")) / "interface.conf";
  std::ofstream(file) << "# where\nNCCL_SOCKET_IFNAME==nosuch0\nMSCCLC_SOCKET_FAMILY=ipv4\n";
  const Setting named("NCCL_CONF_FILE", file);
  CHECK_THAT(address_of_id(), Catch::Contains("of IPv4 (MSCCLC_SOCKET_FAMILY)") &&
                                  Catch::Contains("MSCCLC_SOCKET_IFNAME='=nosuch0'"));
  const Setting interface("NCCL_SOCKET_IFNAME", "=lo");
  CHECK(address_of_id() == "127.0.0.1");
}

TEST_CASE("variables that leave all calls to NCCL, with it and without") {
  for (const auto& [name, value] :
       {std::pair("NCCL_ALGO", "Ring"), std::pair("NCCL_PROTO", "LL"),
        std::pair("NCCL_P2P_DISABLE", "1"), std::pair("NCCL_P2P_LEVEL", "LOC")}) {
    INFO(name);
    const Setting set(name, value);
    {
      const ServedBy served(kFakeNccl, true);
      Ranks ranks(2);
      const long before = calls_of_fake("AllReduce");
      CHECK(reduce_two(ranks) == ncclSuccess);
      CHECK(calls_of_fake("AllReduce") == before + 2);
    }
    const ServedBy served(nullptr, true);
    Ranks ranks(2);
    CHECK(reduce_two(ranks) == ncclInvalidUsage);
    CHECK_THAT(
        ncclGetLastError(nullptr),
        Catch::Contains(std::string("no plan serves the call, as ") + name + " is set, and "));
  }
  const Setting peers("NCCL_P2P_DISABLE", "0");
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  CHECK(reduce_two(ranks) == ncclSuccess);
}

// What NCCL adds is the same on all ranks, in an order of its own.
TEST_CASE("a call whose order no plan keeps goes to NCCL under 'replicated' only") {
  const auto add_three = [](Ranks& ranks, ncclDataType_t type) {
    float value[3] = {1, 2, 3};
    return ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(&value[r], &value[r], 1, type, kSum, comm, nullptr);
    });
  };
  for (const char* order : {"ranks", "exact"}) {
    INFO(order);
    const Setting set("MSCCLC_ORDER", order);
    const Setting all_to_nccl("NCCL_ALGO", "Ring");
    const ServedBy served(kFakeNccl, true);
    Ranks ranks(3);
    const long before = calls_of_fake("AllReduce");
    CHECK(add_three(ranks, kFloat) == ncclInvalidUsage);
    CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("and NCCL does not keep to '") &&
                                              Catch::Contains("which MSCCLC_ORDER asks for"));
    CHECK(calls_of_fake("AllReduce") == before);
    CHECK(add_three(ranks, kInt32) == ncclSuccess);  // integers are exact in any order
    CHECK(calls_of_fake("AllReduce") == before + 3);
  }
  const Setting set("MSCCLC_ORDER", "ranks");
  const ServedBy served(nullptr, true);
  Ranks ranks(3);
  CHECK(add_three(ranks, kFloat) == ncclSuccess);
}

TEST_CASE("a call that no plan serves under its contract names the nearest plan") {
  constexpr int kProduct = 1;
  const Setting set("MSCCLC_ORDER", "exact");
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(3);
  float value[3] = {1, 2, 3};
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kFloat, kProduct, comm, nullptr);
  }) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("and NCCL does not keep to 'exact'") &&
                 Catch::Contains("; the nearest plan is 'allreduce_1shot_ordered:R=3,") &&
                 Catch::Contains(", which keeps 'tree')"));
}

ncclResult_t add_far_apart(Ranks& ranks, float& sum) {
  float value[3] = {1e8F, 1, -1e8F};
  const ncclResult_t result = ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(&value[r], &value[r], 1, kFloat, kSum, comm, nullptr);
  });
  sum = value[2];
  return result;
}

ncclResult_t ask_all(Ranks& ranks, const char* order) {
  return ranks.together([&](int, ncclComm_t comm) { return mscclc_nccl_order(comm, order); });
}

TEST_CASE("mscclc_nccl_order() says what the sums of later calls keep to") {
  const ServedBy served(nullptr, true);
  Ranks ranks(3);
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    CHECK(ask_all(ranks, "exact") == ncclSuccess);
    CHECK(add_far_apart(ranks, sum) == ncclSuccess);
    CHECK(sum == 1);
    CHECK(ask_all(ranks, "ranks") == ncclSuccess);
    CHECK(add_far_apart(ranks, sum) == ncclSuccess);
    CHECK(sum == 0);  // 1e8 + 1 is 1e8
  }
  CHECK(ask_all(ranks, "sorted") == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("there is no order 'sorted'; there are any, replicated, "));
  CHECK(mscclc_nccl_order(nullptr, "ranks") == ncclInvalidArgument);
  CHECK(ask_all(ranks, nullptr) == ncclSuccess);
  CHECK(add_far_apart(ranks, sum) == ncclSuccess);
}

TEST_CASE("ranks that ask mscclc_nccl_order() for different orders get an error") {
  const ServedBy served(nullptr, true);
  Ranks ranks(3);
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return mscclc_nccl_order(comm, r == 1 ? "exact" : "ranks");
  }) == ncclSuccess);
  float sum = 0;
  CHECK(add_far_apart(ranks, sum) != ncclSuccess);
  CHECK_THAT(ncclGetLastError(nullptr),
             Catch::Contains("order ranks") && Catch::Contains("order exact"));
}

TEST_CASE("a call that keeps to mscclc_nccl_order() does not go to NCCL") {
  const Setting all_to_nccl("NCCL_ALGO", "Ring");
  const ServedBy served(kFakeNccl, true);
  Ranks ranks(3);
  float sum = 0;
  CHECK(ask_all(ranks, "ranks") == ncclSuccess);
  CHECK(add_far_apart(ranks, sum) == ncclInvalidUsage);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("which mscclc_nccl_order() asks for"));
  CHECK(ask_all(ranks, nullptr) == ncclSuccess);
  CHECK(add_far_apart(ranks, sum) == ncclSuccess);
}

TEST_CASE("NCCL_CHECK_MODE=DEBUG_GLOBAL compares the ranks' calls") {
  const ServedBy served(nullptr, true);
  const Setting set("NCCL_CHECK_MODE", "DEBUG_GLOBAL");
  Ranks ranks(2);
  int value[2][2] = {};
  CHECK(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(value[r], value[r], static_cast<size_t>(r) + 1, kInt32, kSum, comm,
                         nullptr);
  }) == ncclInvalidUsage);
  CHECK(reduce_two(ranks) == ncclSuccess);
}

}  // namespace
}  // namespace mscclc::nccl::testing
