#include "runtime/doors/c/errors.h"

#include <array>

#include "runtime/doors/c/thread_state.h"
#include "runtime/support/result_kind.h"
#include "runtime/support/version.h"

namespace mscclc::capi {
namespace {

constexpr std::array kTexts = {"success",       "invalid argument", "invalid usage", "no plan",
                               "not proved",    "peer failed",      "timeout",       "aborted",
                               "out of memory", "system error",     "internal error"};

static_assert(MSCCLC_INVALID_ARGUMENT == 1 + static_cast<int>(ResultKind::argument) &&
              MSCCLC_INVALID_USAGE == 1 + static_cast<int>(ResultKind::usage) &&
              MSCCLC_NO_PLAN == 1 + static_cast<int>(ResultKind::no_plan) &&
              MSCCLC_NOT_PROVED == 1 + static_cast<int>(ResultKind::not_proved) &&
              MSCCLC_PEER_FAILED == 1 + static_cast<int>(ResultKind::peer) &&
              MSCCLC_TIMEOUT == 1 + static_cast<int>(ResultKind::timeout) &&
              MSCCLC_ABORTED == 1 + static_cast<int>(ResultKind::aborted) &&
              MSCCLC_OUT_OF_MEMORY == 1 + static_cast<int>(ResultKind::memory) &&
              MSCCLC_SYSTEM_ERROR == 1 + static_cast<int>(ResultKind::system) &&
              MSCCLC_INTERNAL_ERROR == 1 + static_cast<int>(ResultKind::internal));

/// "mscclc_compile: 'json' is NULL". Never throws.
mscclc_result_t fail_with(mscclc_result_t result, const char* function, const char* what) noexcept {
  try {
    return fail(result, std::string(function) + ": " + what);
  } catch (const std::bad_alloc&) {
    ThreadState::get().last_error.fixed = what;
    return result;
  }
}

}  // namespace

mscclc_result_t fail(mscclc_result_t result, const std::string& text) {
  LastError& last = ThreadState::get().last_error;
  last.text = text;
  last.fixed = nullptr;
  return result;
}

mscclc_result_t fail(const Diagnostics& diagnostics) {
  if (!diagnostics.has_errors()) {
    return fail(MSCCLC_INTERNAL_ERROR, "it does not say why it has failed");
  }
  return fail(static_cast<mscclc_result_t>(1 + static_cast<int>(result_kind(diagnostics))),
              message_of(diagnostics));
}

mscclc_result_t refuse(const char* function, const char* what) noexcept {
  return fail_with(MSCCLC_INVALID_ARGUMENT, function, what);
}

mscclc_result_t refuse_after_fork(const char* function) noexcept {
  return fail_with(MSCCLC_INVALID_USAGE, function,
                   "it was made before this process was forked: only the process that made it may "
                   "use it");
}

mscclc_result_t refuse_finalized(const char* function) noexcept {
  return fail_with(MSCCLC_INVALID_USAGE, function, "the communicator is finalized");
}

mscclc_result_t refuse_in_use(const char* function) noexcept {
  return fail_with(MSCCLC_INVALID_USAGE, function, "another thread is inside, and it stays");
}

mscclc_result_t out_of_memory() noexcept {
  ThreadState::get().last_error.fixed = "the host has no memory for it";
  return MSCCLC_OUT_OF_MEMORY;
}

mscclc_result_t unexpected(const char* what) noexcept {
  try {
    return fail(MSCCLC_INTERNAL_ERROR, what);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

const char* mscclc_result_text(mscclc_result_t result) {
  const bool known = result >= 0 && static_cast<size_t>(result) < kTexts.size();
  return known ? kTexts[static_cast<size_t>(result)] : "unknown result";
}

const char* mscclc_last_error(void) {
  const LastError& last = ThreadState::get().last_error;
  return last.fixed != nullptr ? last.fixed : last.text.c_str();
}

const char* mscclc_version(void) { return kVersion; }
