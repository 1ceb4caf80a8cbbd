#include "compiler/builder/ops/slots.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace mscclc;

namespace {

Ref operand_of(SlotKind kind, uint32_t traits = 0) {
  Ref ref;
  ref.traits = traits;
  ref.set_kind(kind);
  return ref;
}

}  // namespace

TEST_CASE("operands fill slots in their order") {
  const std::vector<Ref> local = {operand_of(SlotKind::local)},
                         far = {operand_of(SlotKind::remote)};
  SlotCounts counts;
  CHECK(match_dsts(info(OpKind::put), far, counts));
  CHECK(counts.n[0] == 1);
  CHECK(match_srcs(info(OpKind::put), far, local, counts));
  CHECK_FALSE(match_dsts(info(OpKind::put), local, counts));
  CHECK_FALSE(match_slots(info(OpKind::copy).srcs, far));
}

TEST_CASE("a port sends packets as they lie") {
  const OpInfo& put = info(OpKind::put_packets);
  const uint32_t port = channel_trait(ChannelKind::port);
  const std::vector<Ref> memory = {
      operand_of(SlotKind::remote, kPacketTrait | channel_trait(ChannelKind::memory))};
  const std::vector<Ref> ports = {operand_of(SlotKind::remote, kPacketTrait | port)};
  CHECK_FALSE(effective_srcs(put, memory).slot[0].packets);
  CHECK(effective_srcs(put, ports).slot[0].packets);
}
