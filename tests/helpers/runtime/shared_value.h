// A number that ranks share with the process that started them, be they threads or forks of it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace mscclc::testing {

class SharedValue {
 public:
  SharedValue()
      : at_(static_cast<std::atomic<int64_t>*>(mmap(nullptr, sizeof(std::atomic<int64_t>),
                                                    PROT_READ | PROT_WRITE,
                                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedValue() {
    if (mapped()) munmap(at_, sizeof *at_);
  }
  SharedValue(const SharedValue&) = delete;
  SharedValue& operator=(const SharedValue&) = delete;
  bool mapped() const { return at_ != MAP_FAILED; }
  /// 0 at first. REQUIRES: mapped().
  std::atomic<int64_t>& at() { return *at_; }

 private:
  std::atomic<int64_t>* at_;
};

}  // namespace mscclc::testing
