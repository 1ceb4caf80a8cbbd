// What the prover finds: facts about ops, not yet words (report.h makes these).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::proof {

/// One op done by one process, once.
struct Event {
  uint32_t process = kNone;
  uint32_t time = 0;    ///< how many ops the process had done when this one was over
  uint32_t op = kNone;  ///< index in the rank's ops; kNone: the caller
  uint32_t call = 0;
};

/// A chunk of a rank's buffer.
struct ChunkName {
  uint32_t rank = 0, buffer = 0, chunk = 0;
};

struct Finding {
  enum class Kind : uint8_t {
    race,         ///< `first` and `second` touch `chunk`, one of them writing, in no order
    slot_twice,   ///< both put packets into `chunk` in one call
    no_packets,   ///< a port sends `chunk` as it lies, which does not hold packets of this call
    wrong_value,  ///< output `chunk`, last written by `first`, if by any op, does not hold at the
                  ///< end of a call what is promised; `reader`: has read what was in
                  ///< `unwritten` before anything was written there
    wrong_external,  ///< chunk `chunk.chunk` of external `chunk.buffer`, last written by `first`,
                     ///< if by any op, does not hold at the end of a call what is promised
    other_order,     ///< the sum in `chunk` is not added up as the contract promises; notes: how it
                     ///< is, and how it was first seen, in `alike`; `external`: in such chunks
    stuck,           ///< thread blocks wait forever
    unbalanced,      ///< an end of a channel, or a semaphore, is not back at its count after a call
    not_met,         ///< a barrier that a rank may leave before another rank is in
    unpaired,     ///< what `first` gives and `second` takes in rounds does not pair up (LoopGroups)
    out_of_step,  ///< `waiting`: blocks that cannot do their rounds one by one with the others
    flag_count,   ///< a flag of array `chunk.buffer` is not raised as often as declared; in `text`
    flag_stuck,   ///< `first` awaits a flag that the other side may not raise; in `text`
    undecided,    ///< outside what the prover can decide
  };
  Kind kind;
  Event first, second;
  ChunkName chunk;
  bool first_writes = false, second_writes = false;
  bool too_early = false;  ///< race: `first` reads what `second` is yet to write in this call
  /// Which operands, if the op is pairwise: race, and of `reader`.
  uint32_t first_pair = 0, second_pair = 0, reader_pair = 0;
  uint32_t first_round = 0, second_round = 0;  ///< race: of their pipelines
  bool in_place = false;
  bool external = false;  ///< other_order: chunks are named as of wrong_external
  uint32_t copies = 0;    ///< so many of the buffer of `chunk` would help; 0: none that are known
  bool overlaid = false;  ///< race: `chunk` lies over scratch of the other op's plan
  uint32_t rank = kNone;  ///< unbalanced, not_met
  uint32_t channel = kNone;  ///< unbalanced: of `rank`; kNone: `semaphore`
  uint32_t semaphore = kNone;
  int64_t surplus = 0;           ///< unbalanced: signals more than waits, in a call
  ChunkName unwritten;           ///< wrong_value
  Event reader;                  ///< wrong_value
  bool only_often = false;       ///< wrong_value: all that is wrong is that inputs are there twice
  bool added = false;            ///< wrong_value: what was in `unwritten` is part of a sum
  std::vector<ChunkName> alike;  ///< wrong_value: other chunks that the same is true of
  uint32_t differences = 0;      ///< wrong_value: the kinds of differences, as bits
  /// wrong_value: results with such differences that other ops wrote, the first of each.
  struct Elsewhere {
    ChunkName chunk;
    Event writer;
    uint64_t alike = 0;  ///< so many more are wrong in the same way
  };
  std::vector<Elsewhere> elsewhere;
  std::vector<Event> waiting;  ///< stuck: one waiting block of each rank
  std::string text;            ///< what report.h adds as it is
  std::vector<std::string> notes;
};

}  // namespace mscclc::proof
