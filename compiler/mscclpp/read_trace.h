// Reads what Python has kept of a program's calls: 64-bit words, one record a call.
//
// A trace begins with
//
//   format  instances  flags  ranks  { input output scratch } for each rank
//
// (chunks of its buffers); then come records, each of which begins with its number. That of an op
// is its row in ir/ops/ops.def, with kRelaxed for its relaxed form; `at` says where in the code
// object the call is:
//
//   sync                        rank block at
//   barrier                     rank at count { block }
//   acquire, release            rank semaphore block sync at
//   signal, wait, flush         channel block sync at
//   what moves data in a rank   rank block destination source chunks at
//   the same through a channel  channel block destination source chunks at
//   … and adds up               … { further source } reduction
//   what uses a switch          switch rank block offset chunks local at reduction
//
// A destination or a source is 4 * (its first chunk) + (0: input, 1: output, 2: scratch). The
// number of a sum has, from bit 8 on, how many further sources there are. Reductions and kinds of
// channels are numbered as in ir/ops. The other records are numbered from kCode on.
#pragma once

#include <span>

#include "compiler/mscclpp/program.h"

namespace mscclc::mscclpp {

inline constexpr uint64_t kTraceFormat = 3;
inline constexpr uint64_t kRelaxed = 128;  ///< added to the row of an op

enum Flag : uint64_t { kFusion = 1, kAutoSync = 2, kLimits = 4 };

enum Record : uint64_t {
  kCode = 64,       ///< number: later calls are in this code object
  kGroup = 65,      ///< size count { block position }: the next op is for these blocks of a group
  kChannel = 66,    ///< kind source target: channels, and switches, are numbered in this order
  kSwitch = 67,     ///< buffer count { rank }
  kSemaphore = 68,  ///< rank value
  kLoop = 69,       ///< unit chunks at: ops until kEndOfLoop are of a pipeline
  kEndOfLoop = 70,
};

/// nullopt: these words are no trace.
std::optional<Program> read_trace(std::span<const uint64_t> words);

}  // namespace mscclc::mscclpp
