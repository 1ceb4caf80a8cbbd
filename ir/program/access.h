// What an op reads and writes, derived from the op table: the one source of effects for passes,
// prover and machines' race checks.
#pragma once

#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// One access of an op to `count` chunks of a buffer of some rank. A group op or pipeline op
/// touches only some of the bytes; the access names them all.
struct Access {
  uint32_t rank, buffer, first, count;
  bool write;
  bool packets;   ///< through the packet protocol: the reader waits for the data itself
  bool deferred;  ///< a port reads this source later, until a flush
};

/// Appends the accesses of `op` at `rank` to `out` (not cleared), sources first. A switch operand
/// gives one access per rank of the switch. A port's `put_packets` reads its packet source as plain
/// bytes: `packets` is false for it.
void append_accesses(const Program& program, uint32_t rank, const Op& op, std::vector<Access>& out);

/// The buffer of rank `member` that an operand at a switch means: the one with the name and size of
/// `mine`, this rank's buffer of index `index`; kNone if there is none.
uint32_t member_buffer(const Program& program, uint32_t member, const Buffer& mine, uint32_t index);

}  // namespace mscclc
