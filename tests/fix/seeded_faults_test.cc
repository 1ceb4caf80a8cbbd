// Fifty mistakes in programs of the library: the client fixes at least forty, and what it makes of
// them is right, and promises what the program promised.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/fix/client.h"
#include "tests/fix/faults.h"
#include "tests/shell.h"

namespace mscclc::testing {
namespace {

constexpr size_t kFaults = 50, kWanted = 40;

/// Fifty, of all kinds in turn, no two of a kind in one program, all of them refused.
std::vector<Fault> seeded(const Client& client) {
  std::vector<std::vector<Fault>> of_kind;
  for (size_t kind = 0; kind < fault_kinds(); ++kind) of_kind.push_back(faults_of_kind(kind));
  std::vector<size_t> next(of_kind.size(), 0);
  std::vector<Fault> found;
  for (bool more = true; more && found.size() < kFaults;) {
    more = false;
    for (size_t kind = 0; kind < of_kind.size() && found.size() < kFaults; ++kind) {
      while (next[kind] < of_kind[kind].size()) {
        Fault& fault = of_kind[kind][next[kind]++];
        if (client.is_proved(fault.text)) continue;  // no mistake there
        found.push_back(std::move(fault));
        more = true;
        break;
      }
    }
  }
  return found;
}

/// What a program promises: all that stands before the bodies of its ranks.
std::string head(const std::string& text) { return text.substr(0, text.find("\nrank ")); }

/// Is a fixed program right for other numbers of ranks, wherever the original is?
bool right_elsewhere(const Client& client, const Fault& fault, const std::string& fixed) {
  for (const char* ranks : {"-D R=2", "-D R=3", "-D R=4", "-D R=5", "-D R=16"}) {
    if (!client.is_proved(fault.original, ranks)) continue;
    if (!client.is_proved(fixed, ranks)) return false;
  }
  return true;
}

TEST_CASE("forty of fifty seeded mistakes are fixed by the patches that are offered") {
  const Client client(set_up("tools/mscclc"));
  const std::vector<Fault> faults = seeded(client);
  REQUIRE(faults.size() == kFaults);
  size_t fixed = 0;
  std::set<std::string> kinds;
  for (const Fault& fault : faults) {
    kinds.insert(fault.kind);
    const Client::Answer answer = client.ask(fault.text);
    INFO(fault.program << ": " << fault.kind << ": " << answer.first_error << ": " << answer.title);
    CHECK_FALSE(answer.proved);
    CHECK_FALSE(answer.first_error.empty());
    fmt::print("{:30} {:45} {:18} {}\n", fault.program, fault.kind, answer.first_error,
               answer.title.empty() ? "-" : answer.title);
    if (answer.patched.empty()) continue;
    CHECK(client.ask(answer.patched).proved);
    CHECK(head(answer.patched) == head(fault.original));
    CHECK(client.runs(answer.patched));
    CHECK(right_elsewhere(client, fault, answer.patched));
    ++fixed;
  }
  fmt::print("{} of {} fixed, {} kinds\n", fixed, faults.size(), kinds.size());
  CHECK(fixed >= kWanted);
  CHECK(kinds.size() >= 25);
}

}  // namespace
}  // namespace mscclc::testing
