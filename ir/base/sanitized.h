// Whether a sanitizer watches this build. Tests take many times longer then, and try less of what
// goes through the same code.
#pragma once

namespace mscclc::testing {

#if defined(MSCCLC_ASAN) || defined(MSCCLC_TSAN) || defined(MSCCLC_UBSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How much a test tries: with a sanitizer the first, without the second.
template <class T>
constexpr T if_sanitized(T sanitized, T otherwise) {
  return kSanitized ? sanitized : otherwise;
}

}  // namespace mscclc::testing
