// What an error lies in, by its code: interfaces to other languages have result codes for that, but
// not for every diagnostic.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

enum class ResultKind : uint8_t {
  argument,    ///< of the call
  usage,       ///< calls that do not go together, here or on several ranks; wrong variables
  no_plan,     ///< none serves the call
  not_proved,  ///< a program or plan is wrong
  peer,        ///< another rank
  timeout,     ///< of ranks that wait for one another
  aborted,     ///< this process ended it
  memory,      ///< or another resource that ran out
  system,      ///< the machine
  internal,    ///< this library
};

/// Of a diagnostic's code.
ResultKind result_kind(std::string_view code);
/// Of the first error; internal if there is none.
ResultKind result_kind(const Diagnostics& diagnostics);
/// True of a step that has failed as it does on this rank alone, for want of memory: the others may
/// go on to wait for it.
inline bool lacks_memory(const Diagnostics& failed) {
  return result_kind(failed) == ResultKind::memory;
}
/// True of a choice of a plan that has failed as it may on one rank alone, where a file cannot be
/// read, say. That no plan serves the call, and what a selector answers, is the same on all.
bool may_be_of_one_rank(const Diagnostics& failed);

}  // namespace mscclc
