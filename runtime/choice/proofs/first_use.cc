#include "runtime/choice/proofs/first_use.h"

#include <fmt/format.h>

#include "runtime/support/observe/log.h"

namespace mscclc {

void FirstUse::log(std::string_view did, std::string_view plan, std::string_view remedy,
                   std::chrono::duration<double, std::milli> took) {
  const LogLevel level = took > kSlow ? LogLevel::warn : LogLevel::info;
  if (!logs(level, LogArea::load)) return;
  std::string text = fmt::format("{} {} in {:.1f} ms", did, plan, took.count());
  if (level == LogLevel::warn) {
    text += fmt::format(", which its first call waited for: {}", remedy);
  }
  mscclc::log(level, LogArea::load, std::nullopt, text);
}

}  // namespace mscclc
