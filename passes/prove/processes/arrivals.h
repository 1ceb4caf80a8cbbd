// When thread blocks find out what ports have done.
//
// A port meets only thread blocks: one whose wait takes its signal, one that flushes, one
// that reads its packets. So it needs no column in the clocks, of which a large program would have
// hundreds of thousands: it is enough to keep when each block has learned what. Knowing that the
// block has come so far is knowing that of the port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mscclc::proof {

class Arrivals {
 public:
  explicit Arrivals(uint32_t ports) : by_port_(ports) {}

  /// Block `block` knows from its op count `since` on that the port has done `done` ops.
  void add(uint32_t port, uint32_t block, uint32_t done, uint32_t since) {
    std::vector<Learner>& learners = by_port_[port];
    auto learner = std::ranges::find(learners, block, &Learner::block);
    if (learner == learners.end()) learner = learners.insert(learner, {block, {}});
    std::vector<Step>& steps = learner->steps;
    if (steps.empty() || steps.back().done < done) steps.push_back({done, since});
  }

  /// Is there a block of which `reached(block, count)` says that it is known to have done `count`
  /// ops, and which knew by then that the port had done `time` ops?
  template <class Reached>
  bool known(uint32_t port, uint32_t time, Reached&& reached) const {
    return std::ranges::any_of(by_port_[port], [&](const Learner& learner) {
      const auto step = std::ranges::lower_bound(learner.steps, time, {}, &Step::done);
      return step != learner.steps.end() && reached(learner.block, step->since);
    });
  }

 private:
  struct Step {
    uint32_t done, since;  ///< both rise
  };
  struct Learner {
    uint32_t block;
    std::vector<Step> steps;
  };
  std::vector<std::vector<Learner>> by_port_;  ///< by process of a port
};

}  // namespace mscclc::proof
