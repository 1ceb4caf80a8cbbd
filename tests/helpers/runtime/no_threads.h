// For tests: a system that gives no more threads.
#pragma once

namespace mscclc::testing {

/// While it lives, pthread_create() gives `allowed` more threads, and then fails as it does at a
/// limit (EAGAIN). One at a time.
class NoThreads {
 public:
  explicit NoThreads(int allowed);
  ~NoThreads();
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
};

}  // namespace mscclc::testing
