#include "runtime/failure.h"

#include "executor/host/words.h"

namespace mscclc {

bool Failure::set(const std::string& code, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!code_.empty()) return false;
  code_ = code;
  why_ = why;
  store_release<uint32_t>(word_->data(), 1);
  return true;
}

bool Failure::happened() const {
  const std::lock_guard lock(mutex_);
  return !code_.empty();
}

Diagnostic* Failure::report(Diagnostics& diagnostics) const {
  const std::lock_guard lock(mutex_);
  return code_.empty() ? nullptr : &diagnostics.error(code_, {}, why_);
}

}  // namespace mscclc
