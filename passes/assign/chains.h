// What can go on at once in a program that names no thread block: chains of ops, of which each
// must stay one sequence while the chains of a rank need not wait for each other.
//
//   for p in others {                                  one chain for each p; to write them all in
//     signal ch[p] relaxed ; wait ch[p] relaxed        one block would make p = 2 wait for the
//     put ch[p].output[r] <- input               =>    answer of p = 1
//     signal ch[p] ; wait ch[p]
//   }
//
// Written as one sequence, every op is after all those above it, and other ranks may count on
// that: a signal publishes whatever came before. So chains are found by guessing (what uses one
// channel, what touches the same chunks, a wait and what follows it), and then proved: with
// nothing but the order inside chains, signals, and what `sync` adds between chunks, any two ranks
// that touch the same bytes must still be ordered (chain_run.h). If not, the program stays one
// sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::assign {

struct Chains {
  /// By rank and op. Chains are numbered in the order of their first ops.
  std::vector<std::vector<uint32_t>> chain;
  std::vector<uint32_t> count;  ///< by rank
  /// By rank and op: longest way to it over ops, counted in ops; smaller levels can go first.
  std::vector<std::vector<uint32_t>> level;
};

/// False if the ops must stay one sequence: some name a place, or no more than one chain is found,
/// or it cannot be shown that nothing notices.
bool find_chains(const Program& program, Chains& chains);

/// True if the rounds of all pipelines may overlap as far as channels go: the k-th signal of a
/// channel and the k-th wait at its other end stand in the same round of equal pipelines.
bool rounds_pair_up(const Program& program);

}  // namespace mscclc::assign
