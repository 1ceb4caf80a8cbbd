#include "runtime/network/verbs/order_maker.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace mscclc::verbs {
namespace {

constexpr uint64_t kAddress = 0x10000;

/// Memory that lanes know as number 6.
class Exposed final : public NamedMemory {
 public:
  explicit Exposed(bool staged = false)
      : NamedMemory(6, DeviceKey{.address = kAddress, .key = 77, .staged = staged}) {}
};

Record record_of(const Work& work) {
  Record record;
  std::memcpy(&record, work.data.data(), sizeof record);
  return record;
}

TEST_CASE("a put is divided where blocks of the peer's memory end, which have their queues") {
  const Exposed memory;
  OrderMaker maker(SignalMode::host);
  maker.open(4, {});
  const uint64_t end = 2 * kBlock + 10;
  const Work first = maker.put(memory, kBlock - 100, end);
  CHECK(first.what == Work::What::write);
  CHECK(first.bytes == 100);
  CHECK(first.to == kAddress + kBlock - 100);
  CHECK(first.key == 77);
  CHECK(maker.queue() == 6 % 4);
  CHECK(maker.put(memory, kBlock, end).bytes == kBlock);
  CHECK(maker.queue() == 7 % 4);
  CHECK(maker.put(memory, 2 * kBlock, end).bytes == 10);
  CHECK(maker.queue() == 8 % 4);
  CHECK(maker.messages() == 0);
}

TEST_CASE("a signal to a host adds to what was signalled there last") {
  const Exposed memory;
  OrderMaker maker(SignalMode::host);
  maker.open(1, {});
  const Work first = maker.signal(memory, 8, 5), other = maker.signal(memory, 16, 7),
             second = maker.signal(memory, 8, 9);
  CHECK(first.what == Work::What::add);
  CHECK(first.to == kAddress + 8);
  CHECK(first.value == 5);
  CHECK(other.value == 7);
  CHECK(second.value == 4);
  CHECK(maker.messages() == 0);
}

TEST_CASE("messages go to the records of their queue, one after the other") {
  const Exposed memory(true);
  OrderMaker maker(SignalMode::host_no_atomic);
  maker.open(2, {.address = 0x500000, .key = 88});
  (void)maker.put(memory, kBlock, kBlock + 1);  // block 1 of number 6: the second queue
  REQUIRE(maker.queue() == 1);
  const Work signal = maker.signal(memory, 24, 3);
  CHECK(signal.what == Work::What::message);
  CHECK(signal.carried);
  CHECK(signal.key == 88);
  CHECK(signal.to == 0x500000 + kRecords * sizeof(Record));
  CHECK(record_of(signal).memory == 6);
  CHECK(record_of(signal).offset == 24);
  CHECK(record_of(signal).value == 3);
  const Work landing = maker.landing(memory, kBlock, 1);
  CHECK(landing.what == Work::What::landing);
  CHECK(landing.place == 1);
  CHECK(record_of(landing).bytes == 1);
  CHECK(record_of(landing).offset == kBlock);
  for (uint64_t i = 2; i < kRecords; ++i) (void)maker.signal(memory, 24, i);
  CHECK(maker.signal(memory, 24, kRecords).place == 0);
  CHECK(maker.messages() == kRecords + 1);
}

}  // namespace
}  // namespace mscclc::verbs
