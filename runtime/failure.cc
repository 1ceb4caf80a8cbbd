#include "runtime/failure.h"

#include "executor/host/words.h"

namespace mscclc {

bool Failure::set(const std::string& code, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!code_.empty()) return false;
  code_ = code;
  why_ = why;
  happened_.store(true, std::memory_order_release);
  store_release<uint32_t>(word_->data(), 1);
  return true;
}

bool Failure::waits_end() const { return load_acquire<uint32_t>(word_->data()) != 0; }

Diagnostic* Failure::report(Diagnostics& diagnostics) const {
  const std::lock_guard lock(mutex_);
  return code_.empty() ? nullptr : &diagnostics.error(code_, {}, why_);
}

}  // namespace mscclc
