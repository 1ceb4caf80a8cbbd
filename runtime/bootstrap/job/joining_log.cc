#include "runtime/bootstrap/job/joining_log.h"

#include <fmt/format.h>

#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"

namespace mscclc {

void begin_joining_log() {
  Diagnostics reported_later;
  (void)start_log(Environment::of_process(), reported_later);
}

std::unique_ptr<Bootstrap> logged(std::unique_ptr<Bootstrap> made, uint32_t rank,
                                  const Diagnostics& diagnostics) {
  if (made != nullptr) return made;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::error) continue;
    log(LogLevel::warn, LogArea::bootstrap, rank, fmt::format("{}: {}", d.code, d.message));
    for (const Note& note : d.notes) log(LogLevel::warn, LogArea::bootstrap, rank, note.text);
  }
  return made;
}

}  // namespace mscclc
