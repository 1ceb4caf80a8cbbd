// What a process offers its own threads, by tickets.
#include "runtime/support/memory/tickets.h"

#include <catch2/catch.hpp>

#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

const OfferedMemory kMemory{.base = 0x1000, .range = {64, 100}, .device = 3, .kind = 2};

std::string refusal(const std::vector<uint8_t>& ticket, const MemoryRange& wanted) {
  const auto found = find_ticket(ticket, wanted);
  return found ? "" : found.error().text();
}

TEST_CASE("a ticket stands for what was offered, until it is withdrawn") {
  const auto ticket = offer_ticket(kMemory), other = offer_ticket(kMemory);
  CHECK(ticket != other);
  const auto found = find_ticket(ticket, {64, 100});
  REQUIRE(found);
  CHECK(found->base == 0x1000);
  CHECK(found->device == 3);
  CHECK(found->kind == 2);
  withdraw_ticket(ticket);
  CHECK(refusal(ticket, {64, 100}) == "this process does not offer it (any more)");
  CHECK(refusal(other, {64, 100}) == "");
  withdraw_ticket(other);
}

TEST_CASE("a ticket is good for the range that its owner has registered") {
  const KeptTicket ticket(kMemory);
  CHECK(refusal(ticket.bytes(), {64, 0}) == "");
  CHECK(refusal(ticket.bytes(), {164, 0}) == "");
  CHECK(refusal(ticket.bytes(), {100, 64}) == "");
  CHECK(refusal(ticket.bytes(), {63, 1}) ==
        "its owner lets others map 100 bytes at 64 of it, the handle is for 1 bytes at 63");
  for (const MemoryRange& wanted : {MemoryRange{64, 101}, MemoryRange{165, 0}, MemoryRange{0, 164},
                                    MemoryRange{100, UINT64_MAX}, MemoryRange{UINT64_MAX, 1}}) {
    CHECK(refusal(ticket.bytes(), wanted) != "");
  }
}

TEST_CASE("no ticket can be made up") {
  const KeptTicket ticket(kMemory);
  for (size_t i = 0; i < ticket.bytes().size(); ++i) {
    auto changed = ticket.bytes();
    changed[i] ^= 1;
    CHECK(refusal(changed, {64, 1}) != "");
  }
  CHECK(refusal({}, {64, 1}) == "it is memory of another process");
  auto longer = ticket.bytes();
  longer.push_back(0);
  CHECK(refusal(longer, {64, 1}) == "it is memory of another process");
}

TEST_CASE("a child process is another") {
  const KeptTicket ticket(kMemory);
  testing::Processes child;
  child.start([&] {
    return refusal(ticket.bytes(), {64, 1}) == "it is memory of another process" ? 0 : 1;
  });
  CHECK(child.wait(0, std::chrono::minutes(5)) == 0);
}

}  // namespace
}  // namespace mscclc
