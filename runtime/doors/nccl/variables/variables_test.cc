// NCCL's variables: the table, what each value becomes, which setting comes first, the files.
#include "runtime/doors/nccl/variables/variables.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "ir/support/read_file.h"
#include "runtime/doors/nccl/variables/config_files.h"
#include "runtime/doors/nccl/variables/translate.h"
#include "runtime/doors/nccl/variables/variables_doc.h"

namespace mscclc::nccl {
namespace {

using Values = Environment::Values;

const VariableInfo* own_row(std::string_view name) {
  for (const VariableInfo& row : variable_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// A file of the test's folder.
std::string file_with(const std::string& name, const std::string& text) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
  return path;
}

/// `values`, and where no configuration file is.
Values with_no_files(Values values) {
  values.emplace("NCCL_CONF_FILE", "/nowhere/nccl.conf");
  return values;
}

std::string ours_of(const char* ours, Values values) {
  values = with_no_files(std::move(values));
  complete(values);
  const auto found = values.find(ours);
  return found == values.end() ? "not set" : found->second;
}

TEST_CASE("documents have the tables (bazel run //runtime/doors/nccl/variables:page)") {
  for (const GeneratedPart& part : generated_parts()) {
    INFO(part.page);
    const std::string page = read_file(part.page).value();
    CHECK(with_generated(page, part) == page);
  }
}

TEST_CASE("each variable stands once, and what it needs is there") {
  std::set<std::string_view> names;
  for (const NcclVariable& row : nccl_variables()) {
    INFO(row.name);
    CHECK(row.name.starts_with("NCCL_"));
    CHECK(names.insert(row.name).second);
    CHECK((row.use == VariableUse::read) == (own_row(row.name) != nullptr));
    if (row.use == VariableUse::mapped) CHECK(own_row(row.ours) != nullptr);
    if (row.use == VariableUse::warned) CHECK(row.remark != "");
  }
#define READ(name)
#define MAPPED(name, ours, by, remark) CHECK(translation(#by) != nullptr);
#define WARNED(name, usual, why)
#define LEFT(name)
#include "runtime/doors/nccl/variables/nccl_variables.def"
#undef READ
#undef MAPPED
#undef WARNED
#undef LEFT
}

TEST_CASE("every variable of NCCL that has a row of ours is in the table") {
  for (const VariableInfo& row : variable_table()) {
    if (row.group != VariableGroup::nccl) continue;
    const auto table = nccl_variables();
    INFO(row.name);
    CHECK(std::ranges::count(table, row.name, &NcclVariable::name) == 1);
  }
}

TEST_CASE("what values of NCCL's are for plans") {
  struct Case {
    const char *theirs, *value, *ours, *becomes;
  };
  const Case cases[] = {
      {"NCCL_SOCKET_IFNAME", "data0", "MSCCLC_SOCKET_IFNAME", "data0"},
      {"NCCL_SOCKET_IFNAME", "=eth0,eth1", "MSCCLC_SOCKET_IFNAME", "=eth0,eth1"},
      {"NCCL_SOCKET_IFNAME", "^=docker0", "MSCCLC_SOCKET_IFNAME", "^=docker0"},
      {"NCCL_SOCKET_IFNAME", "^docker,lo,", "MSCCLC_SOCKET_IFNAME", "^docker,lo"},
      {"NCCL_SOCKET_IFNAME", ",,eth:1,:2,ib", "MSCCLC_SOCKET_IFNAME", "eth,ib"},
      {"NCCL_SOCKET_IFNAME", "e", "MSCCLC_SOCKET_IFNAME", "not set"},
      {"NCCL_SOCKET_IFNAME", "^,", "MSCCLC_SOCKET_IFNAME", "not set"},
      {"NCCL_SOCKET_IFNAME", "", "MSCCLC_SOCKET_IFNAME", "not set"},
      {"NCCL_SOCKET_FAMILY", "AF_INET6", "MSCCLC_SOCKET_FAMILY", "ipv6"},
      {"NCCL_SOCKET_FAMILY", "AF_INET", "MSCCLC_SOCKET_FAMILY", "ipv4"},
      {"NCCL_SOCKET_FAMILY", "inet", "MSCCLC_SOCKET_FAMILY", "not set"},
      {"NCCL_SOCKET_NTHREADS", "4", "MSCCLC_SOCKET_THREADS", "4"},
      {"NCCL_NSOCKS_PERTHREAD", "4", "MSCCLC_SOCKET_CONNECTIONS", "4"},
      {"NCCL_NSOCKS_PERTHREAD", "99", "MSCCLC_SOCKET_CONNECTIONS", "16"},
      {"NCCL_IB_HCA", "mlx5", "MSCCLC_IB_HCA", "?mlx5"},
      {"NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1", "MSCCLC_IB_HCA", "?=mlx5_0:1,mlx5_1:1"},
      {"NCCL_IB_HCA", "^=mlx5_1,mlx5_4", "MSCCLC_IB_HCA", "^=mlx5_1,mlx5_4"},
      {"NCCL_IB_HCA", "=mlx5_0:1:0:0,mlx5_1:1:0:1", "MSCCLC_IB_HCA", "?=mlx5_0:1,mlx5_1:1"},
      {"NCCL_IB_HCA", "=mlx5_0::0:0,mlx5_1", "MSCCLC_IB_HCA", "?=mlx5_0,mlx5_1"},
      {"NCCL_IB_GID_INDEX", "3", "MSCCLC_IB_GID_INDEX", "3"},
      {"NCCL_IB_GID_INDEX", "-1", "MSCCLC_IB_GID_INDEX", "not set"},
      {"NCCL_IB_TIMEOUT", "0x16", "MSCCLC_IB_TIMEOUT", "22"},
      {"NCCL_IB_TIMEOUT", "0", "MSCCLC_IB_TIMEOUT", "not set"},
      {"NCCL_IB_RETRY_CNT", "5", "MSCCLC_IB_RETRY_CNT", "5"},
      {"NCCL_IB_TC", "106", "MSCCLC_IB_TC", "106"},
      {"NCCL_IB_SL", " 3 ", "MSCCLC_IB_SL", "3"},
      {"NCCL_IB_SL", "16", "MSCCLC_IB_SL", "not set"},
      {"NCCL_IB_PKEY", "1", "MSCCLC_IB_PKEY", "1"},
      {"NCCL_IB_QPS_PER_CONNECTION", "2", "MSCCLC_IB_QPS", "2"},
      {"NCCL_IB_DISABLE", "1", "MSCCLC_LANE", "sockets"},
      {"NCCL_IB_DISABLE", "0", "MSCCLC_LANE", "not set"},
      {"NCCL_NET", "ib", "MSCCLC_LANE", "verbs"},
      {"NCCL_NET", "Socket", "MSCCLC_LANE", "sockets"},
      {"NCCL_NET", "AWS Libfabric", "MSCCLC_LANE", "not set"},
      {"NCCL_NET_GDR_LEVEL", "LOC", "MSCCLC_FORCE_DISABLE_GDR", "1"},
      {"NCCL_NET_GDR_LEVEL", "0", "MSCCLC_FORCE_DISABLE_GDR", "1"},
      {"NCCL_NET_GDR_LEVEL", "SYS", "MSCCLC_FORCE_DISABLE_GDR", "not set"},
      {"NCCL_NVLS_ENABLE", "0", "MSCCLC_MULTICAST", "0"},
      {"NCCL_NVLS_ENABLE", "2", "MSCCLC_MULTICAST", "not set"},
      {"NCCL_CHECK_MODE", "DEBUG_GLOBAL", "MSCCLC_CHECK_CALLS", "1"},
      {"NCCL_CHECK_MODE", "DEBUG_LOCAL", "MSCCLC_CHECK_CALLS", "not set"},
      {"NCCL_MAX_NCHANNELS", "8", "NCCL_MAX_CTAS", "8"},
      {"NCCL_IBVERBS_LIB", "/opt/libibverbs.so", "MSCCLC_IBV_SO", "/opt/libibverbs.so"},
  };
  std::set<std::string_view> tried;
  for (const Case& c : cases) {
    INFO(c.theirs << '=' << c.value);
    CHECK(ours_of(c.ours, {{c.theirs, c.value}}) == c.becomes);
    tried.insert(c.theirs);
  }
  for (const NcclVariable& row : nccl_variables()) {
    INFO(row.name);
    const bool older_name = row.name == "NCCL_MAX_NRINGS";
    CHECK((row.use != VariableUse::mapped || older_name || tried.contains(row.name)));
  }
}

TEST_CASE("connections are threads times sockets of a thread") {
  CHECK(ours_of("MSCCLC_SOCKET_CONNECTIONS",
                {{"NCCL_NSOCKS_PERTHREAD", "2"}, {"NCCL_SOCKET_NTHREADS", "3"}}) == "6");
  CHECK(ours_of("MSCCLC_SOCKET_CONNECTIONS",
                {{"NCCL_NSOCKS_PERTHREAD", "8"}, {"NCCL_SOCKET_NTHREADS", "5"}}) == "15");
}

TEST_CASE("our own setting comes first, then the earlier row") {
  CHECK(ours_of("MSCCLC_IB_TC", {{"NCCL_IB_TC", "3"}, {"MSCCLC_IB_TC", "4"}}) == "4");
  CHECK(ours_of("MSCCLC_IB_TC", {{"NCCL_IB_TC", "3"}, {"MSCCLC_IB_TC", ""}}) == "3");
  CHECK(ours_of("NCCL_MAX_CTAS", {{"NCCL_MAX_NCHANNELS", "3"}, {"NCCL_MAX_CTAS", "5"}}) == "5");
  CHECK(ours_of("NCCL_MAX_CTAS", {{"NCCL_MAX_NCHANNELS", "3"}, {"NCCL_MAX_CTAS", "0"}}) == "3");
  CHECK(ours_of("MSCCLC_LANE", {{"NCCL_IB_DISABLE", "1"}, {"NCCL_NET", "IB"}}) == "sockets");
  CHECK(ours_of("MSCCLC_LANE", {{"NCCL_IB_DISABLE", "0"}, {"NCCL_NET", "IB"}}) == "verbs");
}

TEST_CASE("lines of configuration files") {
  Values values{{"NCCL_IB_SL", "1"}, {"NCCL_IB_TC", ""}};
  take_lines(
      "# NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME==ens1f0\r\nnothing\n NCCL_NET=IB\n"
      "NCCL_IB_SL=2\nNCCL_IB_TC=7\nPATH=/\nMSCCLC_IB_QPS=3\nNCCL_IB_SL =4\n=\nNCCL_ALGO=Ring ",
      values);
  CHECK(values == Values{{"NCCL_SOCKET_IFNAME", "=ens1f0"},
                         {"NCCL_IB_SL", "1"},
                         {"NCCL_IB_TC", ""},
                         {"MSCCLC_IB_QPS", "3"},
                         {"NCCL_IB_SL ", "4"},
                         {"NCCL_ALGO", "Ring "}});
  Values longer;
  take_lines("NCCL_A=" + std::string(5000, 'x'), longer);
  CHECK(longer.at("NCCL_A").size() == 1023);
}

TEST_CASE("which configuration file is read") {
  const std::string named = file_with("named.conf", "NCCL_IB_SL=1\nNCCL_IB_TC=2\n");
  const std::string of_user = file_with("home/.nccl.conf", "NCCL_IB_SL=5\n");
  const std::string home = std::filesystem::path(of_user).parent_path();
  Values values{{"NCCL_CONF_FILE", named}, {"HOME", home}};
  complete(values);
  CHECK(values.at("MSCCLC_IB_SL") == "1");
  CHECK(values.at("MSCCLC_IB_TC") == "2");
  values = {{"HOME", home}};
  complete(values);
  CHECK(values.at("MSCCLC_IB_SL") == "5");
  values = {{"HOME", home}, {"NCCL_CONF_FILE", ""}};
  complete(values);
  CHECK(values.at("MSCCLC_IB_SL") == "5");
  values = {{"HOME", home}, {"NCCL_IB_SL", "6"}};
  complete(values);
  CHECK(values.at("MSCCLC_IB_SL") == "6");
  values = {{"HOME", home}, {"NCCL_CONF_FILE", home}};  // a folder sets nothing
  complete(values);
  CHECK(!values.contains("MSCCLC_IB_SL"));
}

TEST_CASE("what users are warned of") {
  const auto warnings = [](Values values) { return warnings_of(with_no_files(values)); };
  CHECK(warnings({}) == std::vector<std::string>{});
  CHECK(warnings({{"NCCL_IB_TIMEOUT", "99"}}) ==
        std::vector<std::string>{
            "NCCL_IB_TIMEOUT is '99', which counts as not set for plans: "
            "MSCCLC_IB_TIMEOUT is '99'; allowed is a whole number from 1 to 31"});
  CHECK(warnings({{"NCCL_IB_TIMEOUT", "99"}, {"MSCCLC_IB_TIMEOUT", "9"}}).empty());
  CHECK(warnings({{"NCCL_MAX_CTAS", "0"}}) ==
        std::vector<std::string>{"NCCL_MAX_CTAS is '0', which counts as not set: NCCL_MAX_CTAS is "
                                 "'0'; allowed is a whole number from 1 to 65536"});
  CHECK(warnings({{"NCCL_CTA_POLICY", "zero"}, {"NCCL_MAX_CTAS", "8"}}).empty());
  CHECK(warnings({{"NCCL_SHM_DISABLE", "0"}}).empty());
  CHECK(
      warnings({{"NCCL_SHM_DISABLE", "1"}}) ==
      std::vector<std::string>{"NCCL_SHM_DISABLE has no effect on calls that plans serve: ranks on "
                               "processors share memory of the machine"});
  CHECK(warnings({{"NCCL_IB_ADDR_FAMILY", "AF_INET6"}}).empty());  // there are no verbs
  CHECK(warnings({{"NCCL_IB_ADDR_FAMILY", "AF_INET6"}, {"NCCL_NET", "IB"}}).size() == 1);
  CHECK(warnings({{"NCCL_CROSS_NIC", "1"}, {"NCCL_OF_LATER_VERSIONS", "1"}}).empty());
}

TEST_CASE("a setting names the variable that it comes from") {
  const Values set{{"NCCL_IB_TC", "3"}, {"NCCL_IB_SL", "2"}, {"MSCCLC_IB_SL", "1"}};
  CHECK(origins(set) == std::vector<std::string>{"MSCCLC_IB_TC=3 (NCCL_IB_TC)"});
  CHECK(origins_in("MSCCLC_IB_TC is wrong", set) == " (MSCCLC_IB_TC is NCCL_IB_TC here)");
  CHECK(origins_in("MSCCLC_IB_SL is wrong", set) == "");
}

TEST_CASE("where GPUs must not reach each other") {
  const auto forbids = [](Values values) { return forbids_peers(Environment(std::move(values))); };
  CHECK(!forbids({}));
  CHECK(forbids({{"NCCL_P2P_DISABLE", "1"}}));
  CHECK(!forbids({{"NCCL_P2P_DISABLE", "0"}}));
  CHECK(forbids({{"NCCL_P2P_LEVEL", "LOC"}}));
  CHECK(forbids({{"NCCL_P2P_LEVEL", "0"}}));
  CHECK(!forbids({{"NCCL_P2P_LEVEL", "NVL"}}));
  CHECK(!forbids({{"NCCL_P2P_LEVEL", ""}}));
}

}  // namespace
}  // namespace mscclc::nccl
