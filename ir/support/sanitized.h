// How much tests try. Where a sanitizer watches the build they take many times longer, and try less
// of what goes through the same code; with `bazel test --config=thorough` they try more than CI has
// time for.
#pragma once

namespace mscclc::testing {

#if defined(MSCCLC_ASAN) || defined(MSCCLC_TSAN) || defined(MSCCLC_UBSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#if defined(MSCCLC_THOROUGH)
inline constexpr bool kThorough = true;
#else
inline constexpr bool kThorough = false;
#endif

/// How much a test tries: with a sanitizer the first, without the second.
template <class T>
constexpr T if_sanitized(T sanitized, T otherwise) {
  return kSanitized ? sanitized : otherwise;
}

/// The same; the last with --config=thorough.
template <class T>
constexpr T amount(T sanitized, T usual, T thorough) {
  return kSanitized ? sanitized : kThorough ? thorough : usual;
}

}  // namespace mscclc::testing
