// What a function requires of its caller (REQUIRES in its comment), asserted in builds that look
// for mistakes: those without optimisation, and those that a sanitizer watches. Elsewhere it costs
// nothing.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <type_traits>

namespace mscclc {

#if !defined(NDEBUG) || defined(MSCCLC_ASAN) || defined(MSCCLC_TSAN) || defined(MSCCLC_UBSAN)
inline constexpr bool kAssertsPreconditions = true;
#else
inline constexpr bool kAssertsPreconditions = false;
#endif

/// Ends the program, with the function's place, if its caller has not kept to what it requires.
constexpr void precondition(bool kept,
                            std::source_location where = std::source_location::current()) {
  if constexpr (kAssertsPreconditions) {
    if (kept) return;
    std::fprintf(stderr, "%s:%u: %s: a precondition does not hold\n", where.file_name(),
                 static_cast<unsigned>(where.line()), where.function_name());
    std::abort();
  }
}
/// The same of what takes a look to find out: other builds do not call it.
template <class Look>
requires std::is_invocable_r_v<bool, Look>
constexpr void precondition(Look look,
                            std::source_location where = std::source_location::current()) {
  if constexpr (kAssertsPreconditions) precondition(static_cast<bool>(look()), where);
}

}  // namespace mscclc
