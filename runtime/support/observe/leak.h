// What work of a device may still use, and cannot be waited for, is not freed: a block or a peer
// would write to memory that has become another's. A driver does not wait for a GPU while one of
// its streams is captured, for example.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/observe/log.h"

#if defined(__SANITIZE_ADDRESS__)
#define FINDS_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FINDS_LEAKS 1
#endif
#endif
#ifdef FINDS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

namespace mscclc {

/// Keeps `used` until the process ends, and logs it, whatever is to be logged. `name`: "memory of
/// …". `why`: what the wait has said.
template <class T>
void leak(T used, std::optional<uint32_t> rank, std::string_view name, const Diagnostics& why) {
  [[maybe_unused]] const T* const kept = new T(std::move(used));
#ifdef FINDS_LEAKS
  __lsan_ignore_object(kept);
#endif
  log_always(LogArea::init, rank,
             fmt::format("{} is never freed, as calls may still use it: {}", name,
                         why.all().empty() ? "the device does not wait for them"
                                           : why.all().front().message));
}

}  // namespace mscclc

#undef FINDS_LEAKS
