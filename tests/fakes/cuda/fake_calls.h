// The calls of the fake driver: they are counted, some can be let fail, and some are forbidden.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/fakes/cuda/fake_core.h"

namespace mscclc::cuda {

class FakeCalls : public virtual FakeCore {
 public:
  /// The n-th call from now on (1: the next) fails with `result`. Calls that free something or wait
  /// do so all the same: the driver may report errors of earlier work there.
  void fail_call(uint64_t n, abi::Result result = abi::kUnknown);
  /// The next call of a function fails, from whichever thread.
  void fail_function(std::string_view name);
  /// How many calls there have been, and of one function.
  uint64_t calls() const;
  uint64_t calls(std::string_view name) const;
  /// From now on it answers as at the process's end.
  void deinitialise();

 protected:
  FakeCalls() = default;
  ~FakeCalls() = default;
  /// Makes a call. REQUIRES: mutex() is not held.
  abi::Result call(std::string_view name, const std::function<abi::Result()>& body);

 private:
  abi::Result act(std::string_view name, const std::function<abi::Result()>& body);
  /// How many threads of a process are in calls that one of them at a time may make.
  int count_changing(int process, int more);
  /// Does a capture that is under way forbid this thread a call?
  bool is_forbidden(std::string_view name);

  uint64_t calls_ = 0, fail_at_ = 0;
  abi::Result fail_with_ = abi::kUnknown;
  std::string fail_function_;  ///< "": none
  std::map<std::string_view, uint64_t> calls_of_;
  std::map<int, int> changing_;  ///< by process: count_changing()
  bool deinitialised_ = false;
};

}  // namespace mscclc::cuda
