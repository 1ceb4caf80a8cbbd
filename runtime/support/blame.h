// What an error lies in, by its code: interfaces to other languages have result codes for that, but
// not for every diagnostic.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

enum class Blame : uint8_t {
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
Blame blame_of(std::string_view code);
/// Of the first error; internal if there is none.
Blame blame_of(const Diagnostics& diagnostics);

}  // namespace mscclc
