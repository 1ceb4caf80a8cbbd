// The boundary to C: results, the text of a thread's last error, and no exception beyond it.
#pragma once

#include <new>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

/// Sets the thread's last error. Returns `result`.
mscclc_result_t fail(mscclc_result_t result, const std::string& text);
/// The same, for what diagnostics say; the first error decides on the result.
mscclc_result_t fail(const Diagnostics& diagnostics);
/// "mscclc_compile: 'json' is NULL". Never throws.
mscclc_result_t refuse(const char* function, const char* what) noexcept;
/// A handle was given out before this process was forked.
mscclc_result_t refuse_after_fork(const char* function) noexcept;
/// A handle cannot be destroyed, as another thread uses it.
mscclc_result_t refuse_in_use(const char* function) noexcept;
/// A communicator that is finalized takes no more calls.
mscclc_result_t refuse_finalized(const char* function) noexcept;
/// There was no memory for an answer, not even for its text.
mscclc_result_t out_of_memory() noexcept;
/// Something was thrown that nothing here throws.
mscclc_result_t unexpected(const char* what) noexcept;

/// Runs what a function does; whatever it throws becomes a result.
template <class Fn>
mscclc_result_t guarded(Fn fn) noexcept {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    return unexpected(e.what());
  } catch (...) {
    return unexpected("something was thrown");
  }
}

}  // namespace mscclc::capi
