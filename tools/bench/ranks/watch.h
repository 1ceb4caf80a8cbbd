// What a run is at: said by rank 0, in memory shared with the process that has started the ranks,
// which ends them when nothing new begins for too long. A baseline's library that hangs reports
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace mscclc::bench {

class Watch {
 public:
  /// Something begins, and with it the time that it may take. Words beyond kMax are cut off.
  void begin(std::string_view what);
  /// How much has begun.
  uint64_t begun() const { return begun_.load(std::memory_order_acquire); }
  /// What began last. To be read while nothing begins.
  std::string what() const { return what_; }

 private:
  static constexpr size_t kMax = 255;
  std::atomic<uint64_t> begun_{0};
  char what_[kMax + 1] = "starting up";
};

}  // namespace mscclc::bench
