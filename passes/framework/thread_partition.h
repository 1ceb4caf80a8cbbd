// Which thread of a block handles which bytes of an op? Where two ops give every byte that both
// touch to the same thread, that thread's own order is enough, and the block need not meet between
// them: a row is sent as packets, then unpacked into.
//
// Claimed for packet ops alone, as all executors deal out packets in the same way: unit i of a run
// (share i where threads share a unit) goes to thread i mod T, whatever the length of the message
// (for_each_piece of the machines; the peer's packet loops). A run begins with a reference's first
// chunk, or where some operand does not continue. So two ops agree if
//  - they have one packet format, hence units of one size,
//  - they refer to the same run of chunks, and are the same part of a group's op,
//  - runs break alike: the reference is one chunk, or no other operand of either op could break it
//    (packet slots and plain scratch break after every chunk or never, all alike, by how much of
//    them the message fills; chunks of the caller's do where they are shorter).
// Ports read later, by proxy, and a switch is another address of the same memory: not claimed. Nor
// is it of ops that compute rows, each of which many threads have in common.
#pragma once

#include <optional>

#include "ir/program/program.h"

namespace mscclc {

/// The format of an op's packets, which is one; none if it has none.
PacketFormat packet_format(const Program& program, uint32_t rank, const Op& op);

/// How the threads of a block share the chunks of an op, where all executors do it alike: packet
/// ops unit by unit, by their format; reductions of plain chunks of one length by equal pieces
/// (none). Nothing for copies, which are cut as their addresses allow, where a port reads for the
/// block, and at a switch, which takes what lies at multiples of 16 bytes.
std::optional<PacketFormat> way_of_sharing(const Program& program, uint32_t rank, const Op& op);
/// Do two ops share in the same way, if what they move is equally long? The same part of a group's
/// op, too.
bool share_alike(const Program& program, uint32_t rank, const Op& a, const Op& b);

/// Do these ops of one block give each byte of a run of `count` plain chunks, which both refer to,
/// to the same thread? `callers`: the chunks are of input or output.
bool same_threads(const Program& program, uint32_t rank, const Op& a, const Op& b, uint32_t count,
                  bool callers);

}  // namespace mscclc
