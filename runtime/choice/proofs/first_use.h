// The log line about a plan that a job uses for the first time: what was done for it, and how long
// that took. Above a tenth of a second it is a warning, as the first call waits for it.
#pragma once

#include <chrono>
#include <string_view>

namespace mscclc {

/// Made when the work begins; log() says how long it took, at INFO or at WARN. Of one thread.
class FirstUse {
 public:
  static constexpr std::chrono::milliseconds kSlow{100};

  bool slow() const { return std::chrono::steady_clock::now() - begin_ > kSlow; }
  /// @param did     what has been done, in the past tense: "compiled and proved"
  /// @param plan    the plan's name, in quotes
  /// @param remedy  what spares the next job the wait
  void log(std::string_view did, std::string_view plan, std::string_view remedy) const {
    log(did, plan, remedy, std::chrono::steady_clock::now() - begin_);
  }
  static void log(std::string_view did, std::string_view plan, std::string_view remedy,
                  std::chrono::duration<double, std::milli> took);

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace mscclc
