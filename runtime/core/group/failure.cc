#include "runtime/core/group/failure.h"

#include <algorithm>
#include <utility>

#include "executor/shared_atomics.h"

namespace mscclc {

bool Failure::set(const std::string& code, const std::string& why) {
  std::string its_code = code, its_why = why;  // all that takes memory
  const std::lock_guard lock(mutex_);
  if (!code_.empty()) return false;
  code_ = std::move(its_code);
  why_ = std::move(its_why);
  happened_.store(true, std::memory_order_release);
  store_release<uint32_t>(word_->data(), 1);
  return true;
}

bool Failure::waits_end() const { return load_acquire<uint32_t>(word_->data()) != 0; }

bool Failure::is_open() const {
  const std::lock_guard lock(mutex_);
  return !concluded_ && (code_.empty() || code_ == "hang" || code_ == "peer-failed");
}

bool Failure::is_own() const {
  const std::lock_guard lock(mutex_);
  return !code_.empty() && code_ != "hang" && code_ != "peer-failed";
}

void Failure::conclude(const std::string& verdict) {
  const std::lock_guard lock(mutex_);
  if (code_ != "hang" && code_ != "peer-failed") return;
  why_ = verdict;
  concluded_ = true;
}

Diagnostic* Failure::report(Diagnostics& diagnostics) {
  Diagnostic* const error = describe(diagnostics);
  if (error != nullptr) note_known();
  return error;
}

Diagnostic* Failure::describe(Diagnostics& diagnostics) const {
  const std::lock_guard lock(mutex_);
  if (code_.empty()) return nullptr;
  size_t end = std::min(why_.find('\n'), why_.size());
  Diagnostic& error = diagnostics.error(code_, {}, why_.substr(0, end));
  while (end < why_.size()) {
    const size_t begin = end + 1;
    end = std::min(why_.find('\n', begin), why_.size());
    error.notes.push_back({why_.substr(begin, end - begin)});
  }
  return &error;
}

}  // namespace mscclc
