// Which address others should use, by MSCCLC_SOCKET_IFNAME or without it.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "runtime/support/address/address.h"

namespace mscclc {
namespace {

Interface interface(const std::string& name, const std::string& host) {
  return {name, Address::parse(host, 0).value()};
}

/// A machine with everything.
std::vector<Interface> machine() {
  return {interface("lo", "127.0.0.1"),      interface("docker0", "172.17.0.1"),
          interface("eth0", "2001:db8::10"), interface("eth0", "10.0.0.1"),
          interface("eth0", "fe80::1"),      interface("eth1", "10.0.1.1"),
          interface("ib0", "10.1.0.1"),      interface("lo", "::1")};
}

/// The address picked, or "error: …".
std::string pick(const std::string& pattern, const std::vector<Interface>& interfaces = machine(),
                 int family = AF_UNSPEC) {
  Diagnostics diagnostics;
  const auto address = choose_address(interfaces, pattern, family, diagnostics);
  CHECK(address.has_value() != diagnostics.has_errors());
  if (address) return address->host();
  const Diagnostic& error = diagnostics.all().front();
  std::string out = "error: " + error.message;
  for (const Note& note : error.notes) out += "; " + note.text;
  return out;
}

TEST_CASE("without a pattern: no containers, IPv4 first, loopback last") {
  CHECK(pick("") == "10.0.0.1");
  CHECK(pick("", {interface("lo", "127.0.0.1"), interface("veth12", "10.9.0.1")}) == "127.0.0.1");
  CHECK(pick("", {interface("lo", "::1"), interface("lo", "127.0.0.1")}) == "127.0.0.1");
  CHECK(pick("", {interface("lo", "127.0.0.1"), interface("eth0", "2001:db8::1")}) ==
        "2001:db8::1");
}

TEST_CASE("prefixes; earlier ones win") {
  CHECK(pick("eth1") == "10.0.1.1");
  CHECK(pick("eth") == "10.0.0.1");
  CHECK(pick("ib,eth") == "10.1.0.1");
  CHECK(pick("nothing,eth1") == "10.0.1.1");
  CHECK(pick("docker") == "172.17.0.1");
  CHECK(pick("lo") == "127.0.0.1");
}

TEST_CASE("a family leaves out the other's addresses") {
  CHECK(pick("", machine(), AF_INET) == "10.0.0.1");
  CHECK(pick("", machine(), AF_INET6) == "2001:db8::10");
  CHECK(pick("lo", machine(), AF_INET6) == "::1");
  CHECK(pick("ib", {}, AF_INET6) ==
        "error: no network interface with an address of IPv6 (MSCCLC_SOCKET_FAMILY) that others "
        "can use fits MSCCLC_SOCKET_IFNAME='ib'; interfaces that are up: none");
  CHECK(pick("", {}, AF_INET) ==
        "error: this machine has no network interface with an address of IPv4 "
        "(MSCCLC_SOCKET_FAMILY) that others can use; interfaces that are up: none");
}

TEST_CASE("MSCCLC_SOCKET_FAMILY is one of two words") {
  const auto family = [](const char* word) {
    Diagnostics diagnostics;
    return socket_family(Environment(Environment::Values{{"MSCCLC_SOCKET_FAMILY", word}}),
                         diagnostics);
  };
  CHECK(family("") == AF_UNSPEC);
  CHECK(family("ipv4") == AF_INET);
  CHECK(family("ipv6") == AF_INET6);
  CHECK(family("AF_INET") == std::nullopt);
}

TEST_CASE("'=' takes whole names, '^' leaves out") {
  CHECK(pick("=ib0") == "10.1.0.1");
  CHECK(pick("^eth0") == "10.0.1.1");
  CHECK(pick("^eth,ib") == "172.17.0.1");
  CHECK(pick("^=eth0,eth1,ib0,docker0") == "127.0.0.1");
}

TEST_CASE("link-local addresses are of no use to others") {
  CHECK(pick("eth", {interface("eth0", "fe80::1"), interface("eth0", "169.254.0.9")})
            .starts_with("error: no network interface"));
}

TEST_CASE("what fits nothing is an error with what there is") {
  CHECK(pick("=eth", {interface("eth0", "10.0.0.1"), interface("lo", "127.0.0.1")}) ==
        "error: no network interface with an address that others can use fits "
        "MSCCLC_SOCKET_IFNAME='=eth'; interfaces that are up: eth0 (10.0.0.1), lo (127.0.0.1)");
  CHECK(pick("", {}) ==
        "error: this machine has no network interface that others can use; interfaces that are up: "
        "none");
  for (const char* wrong :
       {",", "eth,", "^", "=", "^=", "a,,b", "^^lo", "==lo", "=^lo", "eth,^lo", "eth,=lo"}) {
    CHECK(pick(wrong) == "error: MSCCLC_SOCKET_IFNAME is '" + std::string(wrong) +
                             "'; allowed are names separated by commas, with '^' (all but these), "
                             "'=' (whole names) or '^=' before the first");
  }
}

TEST_CASE("this machine has a loopback interface") {
  bool found = false;
  Diagnostics diagnostics;
  const auto interfaces = list_interfaces(diagnostics);
  REQUIRE(interfaces.has_value());
  for (const Interface& i : *interfaces) found |= i.address.is_loopback();
  CHECK(found);
}

TEST_CASE("a process without descriptors does not say that there is no interface") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  Diagnostics diagnostics;
  const bool found = choose_address("", AF_UNSPEC, diagnostics).has_value();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(!found);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].code == "no-descriptors");
  CHECK(diagnostics.all()[0].message ==
        "cannot look for this machine's network interfaces: Too many open files (24); the limit is "
        "'ulimit -n'");
}

TEST_CASE("names are resolved") {
  Diagnostics diagnostics;
  const auto addresses = resolve("127.0.0.1", 80, diagnostics);
  REQUIRE(addresses.size() == 1);
  CHECK(addresses[0].text() == "127.0.0.1:80");
  CHECK(resolve("no.such.host.invalid", 80, diagnostics).empty());
  CHECK(diagnostics.all().front().code == "unknown-host");
}

}  // namespace
}  // namespace mscclc
