// An independent judge of tiny plans: every interleaving of a few successive calls, tried one by
// one. It shares no code with the prover and none with the simulator; it is slow and plain.
//
// Every thread block is two strands that split each op's bytes; every port has a proxy, whose puts
// may overtake one another up to a signal; every rank has a caller that fills inputs, destroys
// outputs and reads them. Memory is cells of 16 bytes (or less), which hold multisets of
// contributions: bytes of an input chunk of a rank in a call. An access is an *event*. Strands hand
// on, by what synchronises them, the events that they know of; two conflicting accesses are a race
// if they can come one after the other, the later not knowing of the earlier, before the earlier
// one's kernel has ended.
//
// Steps that may block, and writes of packets, are put in every order. What follows them up to the
// next such step of the same strand runs at once: signals can be moved forward past what others do,
// and plain accesses too, unless they are in a race, which is reported whichever comes first.
//
// That goes further (ExploreOptions::reduced). Two steps either commute, or are in a race that is
// reported whichever comes first. Except for two kinds:
//
// - what takes from many, or gives to what others give to as well, and puts into a packet slot that
//   takes several in a call, with its readers: tried in every order;
// - what hides an access from races: the end of a call (its accesses are done for all), its
//   beginning, and a port's reading of a source. Each access is hidden by one such step, so it is
//   enough to put off every one of them once, until nothing else can move: what can come before it
//   then has come before it.
//
// So larger plans are explored to the end, in a schedule or two for each of those steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/contract/order.h"
#include "ir/program/program.h"

namespace mscclc {

enum class Verdict : uint8_t {
  right,
  wrong_data,
  deadlock,
  race,
  unsupported,  ///< a pipeline's op moves other chunks than the pipeline is over; rows of other
                ///< than 8 columns
  too_large,    ///< more states, or events, than are looked at
};
std::string_view name(Verdict verdict);

struct Exploration {
  Verdict verdict = Verdict::right;
  std::string reason;      ///< what is wrong, and where
  uint64_t states = 0;     ///< looked at
  bool same_bits = false;  ///< a store of bits that were there already would have been in a race
};

struct ExploreOptions {
  uint32_t calls = 2;
  bool in_place = false;
  std::vector<bool> placed = {};  ///< by rank: in place or not; empty: all as `in_place` says
  /// Of the message: chunks, rounds, parts and pieces are as long as it makes them. Left out, all
  /// chunks are equally long and pipelines have three rounds or more (shape.h).
  std::optional<uint64_t> bytes = {};
  /// How copies are dealt to the strands, and what is left at the end of them; 0: as packets are.
  uint64_t dealing = 0;
  uint64_t most_states = 100000;
  /// Accesses in all calls together: time grows with their square. At most 2048.
  uint32_t most_events = 2048;
  /// A store of the bits that are there already is in no race: it changes nothing, and a reader
  /// needs to know of only one of the stores. A store that changes the bits must know of all.
  bool same_bits = false;
  /// Outputs must have the bits that this contract promises (docs/bits.md), of f32 and of bf16,
  /// which is rounded where an op hands a sum on. Left out, sums are in any order.
  std::optional<SumOrder> order = {};
  bool reduced = false;     ///< schedules that can show nothing new are left out
  bool rows_apart = false;  ///< sums and row functions are ops of their own (rows_apart.h)
};

/// REQUIRES: program.split, verify_structure(), a contract that allows the placement.
Exploration explore(const Program& program, const ExploreOptions& options = {});

}  // namespace mscclc
