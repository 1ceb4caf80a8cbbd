// For tests: one thread goes on when another has done something, or has failed before: the first
// must not wait for that forever.
#pragma once

#include <atomic>

namespace mscclc::testing {

class GoAhead {
 public:
  /// The second time it does nothing.
  void give() {
    given_ = true;
    given_.notify_all();
  }
  void wait() const { given_.wait(false); }

 private:
  std::atomic<bool> given_ = false;
};

/// Gives it at the end of what a thread does, however that ends. nullptr: nothing.
struct GivenAtEnd {
  explicit GivenAtEnd(GoAhead* of) : go_ahead(of) {}
  ~GivenAtEnd() {
    if (go_ahead != nullptr) go_ahead->give();
  }
  GivenAtEnd(const GivenAtEnd&) = delete;
  GoAhead* const go_ahead;
};

}  // namespace mscclc::testing
