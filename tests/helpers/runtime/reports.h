// What an end of a lane reports of its failure, for tests.
#pragma once

#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "runtime/api/lane.h"

namespace mscclc {

/// What one end has reported, by whichever thread. Outlives the lane that has its callback.
class Reports {
 public:
  explicit Reports(std::chrono::milliseconds patience) : patience_(patience) {}

  LaneFailed callback() {
    return [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      if (lacks_ > 0) {
        --lacks_;
        throw std::bad_alloc();
      }
      why_ += why + "\n";
    };
  }
  /// So many times there is no memory for a report.
  void lack_memory(int times) {
    const std::lock_guard lock(mutex_);
    lacks_ = times;
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  /// Waits until anything is reported; "": nothing was in time.
  std::string wait() {
    const auto until = std::chrono::steady_clock::now() + patience_;
    while (text().empty() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return text();
  }

 private:
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::string why_;
  int lacks_ = 0;
};

}  // namespace mscclc
