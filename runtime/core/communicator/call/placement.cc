#include "runtime/core/communicator/call/placement.h"

#include "ir/program/access.h"
#include "runtime/support/bytes.h"

namespace mscclc {

PeerAccess::PeerAccess(const Program& program)
    : touched_(program.ranks.size() * 2, false),
      together_(program.ranks.size(), false),
      apart_(program.ranks.size(), false) {
  const bool in_place_only = program.contract.in_place == InPlace::yes;
  std::vector<Access> accesses;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    together_[r] = in_place_only && program.contract.alias(r).has_value();
    for (const Op& op : program.ranks[r].ops) {
      accesses.clear();
      append_accesses(program, r, op, accesses);
      for (const Access& a : accesses) {
        if (a.rank == r || a.buffer >= kFirstScratch) continue;
        touched_[a.rank * 2 + a.buffer] = true;
        any_ = true;
      }
    }
  }
  if (program.contract.in_place == InPlace::either) keep_alike(program.contract);
}

/// A plan is proved for calls in place at all ranks, and at none. In place, staging makes the two
/// buffers of a rank lie apart: then those of ranks whose buffers no peer touches have to, too.
void PeerAccess::keep_alike(const Contract& contract) {
  const auto untouched = [&](uint32_t r) { return !touches(r, kInput) && !touches(r, kOutput); };
  bool some = false;
  for (uint32_t r = 0; r < ranks(); ++r) some |= contract.alias(r) && !untouched(r);
  for (uint32_t r = 0; r < ranks(); ++r) {
    apart_[r] = some && contract.alias(r).has_value() && untouched(r);
  }
}

void encode(const RankPlaces& places, std::vector<uint8_t>& to) {
  for (const BufferPlace& p : places.side) {
    ByteWriter(to).number(static_cast<uint8_t>(p.kind)).number(p.buffer).number(p.offset);
  }
}

bool decode(std::span<const uint8_t>& from, RankPlaces& places) {
  ByteReader reader(from);
  for (BufferPlace& p : places.side) {
    const auto kind = reader.number<uint8_t>();
    if (kind > static_cast<uint8_t>(BufferPlace::Kind::staging)) return false;
    p.kind = static_cast<BufferPlace::Kind>(kind);
    p.buffer = reader.number<uint64_t>();
    p.offset = reader.number<uint64_t>();
  }
  from = reader.rest();
  return reader.good();
}

}  // namespace mscclc
