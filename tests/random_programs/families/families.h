// The generators of random programs, each for a family of plans. What they make is right, except
// for a few draws that stand at the edge of what is right: then it may be wrong by one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {

/// Chains of pipelines over up to three ranks and their blocks: units and credits of 1 to 20, by
/// signals and by semaphores, through memory, ports and reads; one after another, in one loop, of
/// different rates, through the same units again.
Sketch make_flows(Dice& dice);
/// Values that are a round, a phase or a call too old: what was there before is read again.
Sketch make_stale(Dice& dice);
/// Messages in packets: formats, copies, parts, ports, forwarding, credits.
Sketch make_packets(Dice& dice);
/// Plain messages without a pipeline: puts, gets, ports with and without flush, parts, blocks that
/// meet at semaphores and barriers.
Sketch make_exchanges(Dice& dice);
/// Sums: doublings, parts that are put twice, stores of the bits that are there.
Sketch make_sums(Dice& dice);
/// Copies and sums of one rank, with fewer or more meetings of its threads.
Sketch make_locals(Dice& dice);
/// Packets, perhaps parts of them, that say only that a rank is in this call.
Sketch make_tokens(Dice& dice);
/// Packets that are unpacked and packed again in another format, part by part.
Sketch make_relays(Dice& dice);
/// Barriers, which have no message.
Sketch make_barriers(Dice& dice);
/// Boxes that several senders share part by part: where parts end depends on the size of a call.
Sketch make_growing(Dice& dice);
/// Ranks that do the same, each a step further on: rings, neighbours, pipelines.
Sketch make_symmetric(Dice& dice);
/// Sums and moves of all kinds, ordered as far as they touch the same places.
Sketch make_soup(Dice& dice);

/// The same packets put into a slot by two ranks; perhaps by a port; perhaps of unwritten data.
Sketch make_twins(Dice& dice);
Sketch make_echoes(Dice& dice);
Sketch make_junk(Dice& dice);

/// Sums that row functions are applied to, alone or in one op, while others store the same; rows of
/// several types, in parts, from which something is concluded about others.
Sketch make_rows(Dice& dice);

/// What is sent on in parts, each its own way: results in packets of several formats, packets by
/// several ports.
Sketch make_parts(Dice& dice);

/// Neighbouring ops whose operands coincide: what is fused, or done as one step.
Sketch make_merged(Dice& dice);

struct Family {
  std::string_view name;
  Sketch (*make)(Dice&);
  uint32_t weight;  ///< how often it is drawn, compared with others
};
std::span<const Family> families();
/// Null: there is none of that name.
const Family* find_family(std::string_view name);
const Family& draw_family(Dice& dice);

/// A collective of a set of plans, which has copies of its scratch in common with the others: 1 or
/// `copies`.
Sketch make_member(Dice& dice, uint32_t copies);

/// What the plans of a set have in common whose scratch lies on one another's.
struct Overlaid {
  std::string format = "sentinel";
  uint32_t credits = 0;  ///< that their port begins with, at rank 0
  bool aligns = false;   ///< they differ in `launch align`
};
Sketch make_overlay(Dice& dice, const Overlaid& all);

}  // namespace mscclc::random_programs
