// The log, for a callback of the application.
#include "runtime/support/observe/log.h"

#include "runtime/doors/c/errors.h"

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_set_log(mscclc_log_fn log, void* user) {
  return guarded([&] {
    LogSink sink;
    if (log != nullptr) sink = [log, user](const std::string& line) { log(user, line.c_str()); };
    Diagnostics diagnostics;
    return set_log_sink(std::move(sink), diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS}
                                                      : fail(diagnostics);
  });
}
