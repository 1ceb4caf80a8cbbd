#include "runtime/capi/errors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/diagnostics/diagnostic_codes.h"
#include "runtime/base/version.h"

namespace mscclc::capi {
namespace {

/// Texts that need memory, and one for when there is none.
struct LastError {
  std::string text;
  const char* fixed = "";
};
thread_local LastError last_error;

constexpr std::array kTexts = {"success",       "invalid argument", "invalid usage", "no plan",
                               "not proved",    "peer failed",      "timeout",       "aborted",
                               "out of memory", "system error",     "internal error"};

/// Codes whose area does not say it.
constexpr std::pair<std::string_view, mscclc_result_t> kResults[] = {
    {"aborted", MSCCLC_ABORTED},
    {"bad-call", MSCCLC_INVALID_ARGUMENT},
    {"bad-selection", MSCCLC_INVALID_USAGE},
    {"bad-unique-id", MSCCLC_INVALID_ARGUMENT},
    {"bootstrap-gone", MSCCLC_PEER_FAILED},
    {"bootstrap-mismatch", MSCCLC_INVALID_USAGE},
    {"bootstrap-refused", MSCCLC_PEER_FAILED},
    {"bootstrap-timeout", MSCCLC_TIMEOUT},
    {"call-differs", MSCCLC_INVALID_USAGE},
    {"false-claim", MSCCLC_NOT_PROVED},
    {"hang", MSCCLC_TIMEOUT},
    {"memory", MSCCLC_OUT_OF_MEMORY},
    {"message-size", MSCCLC_INVALID_ARGUMENT},
    {"name-taken", MSCCLC_INVALID_ARGUMENT},
    {"no-buffer", MSCCLC_INVALID_ARGUMENT},
    {"no-descriptors", MSCCLC_OUT_OF_MEMORY},
    {"no-memory", MSCCLC_OUT_OF_MEMORY},
    {"no-plan", MSCCLC_NO_PLAN},
    {"no-such-device", MSCCLC_INVALID_ARGUMENT},
    {"no-thread", MSCCLC_OUT_OF_MEMORY},
    {"not-mapped", MSCCLC_INVALID_USAGE},
    {"not-proved", MSCCLC_NOT_PROVED},
    {"options-differ", MSCCLC_INVALID_USAGE},
    {"out-of-memory", MSCCLC_OUT_OF_MEMORY},
    {"outside-buffer", MSCCLC_INVALID_USAGE},
    {"over-capacity", MSCCLC_INVALID_ARGUMENT},
    {"overlap", MSCCLC_INVALID_ARGUMENT},
    {"peer-failed", MSCCLC_PEER_FAILED},
    {"plan-differs", MSCCLC_INVALID_USAGE},
    {"rank-died", MSCCLC_PEER_FAILED},
    {"rank-gave-up", MSCCLC_PEER_FAILED},
    {"rank-left", MSCCLC_PEER_FAILED},
    {"sentinel-width", MSCCLC_INVALID_ARGUMENT},
    {"stale-registration", MSCCLC_INVALID_USAGE},
    {"too-few-descriptors", MSCCLC_OUT_OF_MEMORY},
    {"two-threads", MSCCLC_INVALID_USAGE},
    {"wrong-binding", MSCCLC_INVALID_ARGUMENT},
    {"wrong-size", MSCCLC_INVALID_ARGUMENT},
};

mscclc_result_t result_of(CodeArea area) {
  switch (area) {
    case CodeArea::language:
    case CodeArea::ir:
    case CodeArea::prover:
      return MSCCLC_NOT_PROVED;
    case CodeArea::plan:
      return MSCCLC_INVALID_ARGUMENT;
    case CodeArea::runtime:
    case CodeArea::tools:
      break;
  }
  return MSCCLC_SYSTEM_ERROR;
}

}  // namespace

mscclc_result_t result_of(const std::string& code) {
  for (const auto& [name, result] : kResults) {
    if (name == code) return result;
  }
  for (const CodeInfo& row : code_table()) {
    if (row.name == code) return result_of(row.area);
  }
  return MSCCLC_INTERNAL_ERROR;
}

mscclc_result_t fail(mscclc_result_t result, const std::string& text) {
  last_error.text = text;
  last_error.fixed = nullptr;
  return result;
}

mscclc_result_t fail(const Diagnostics& diagnostics) {
  const auto& all = diagnostics.all();
  const auto first = std::find_if(
      all.begin(), all.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
  if (first == all.end()) return fail(MSCCLC_INTERNAL_ERROR, "it does not say why it has failed");
  std::string text = render_text(diagnostics, Sources{});
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return fail(result_of(first->code), text);
}

mscclc_result_t refuse(const char* function, const char* what) noexcept {
  try {
    return fail(MSCCLC_INVALID_ARGUMENT, std::string(function) + ": " + what);
  } catch (const std::bad_alloc&) {
    last_error.fixed = what;
    return MSCCLC_INVALID_ARGUMENT;
  }
}

mscclc_result_t out_of_memory() noexcept {
  last_error.fixed = "the host has no memory for it";
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
  return last_error.fixed != nullptr ? last_error.fixed : last_error.text.c_str();
}

const char* mscclc_version(void) { return kVersion; }
