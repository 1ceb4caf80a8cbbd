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

  /// Block `block` knows from its op count `since` on that the port has done `done` ops; `alone`:
  /// or only the last of them.
  void add(uint32_t port, uint32_t block, uint32_t done, bool alone, uint32_t since) {
    std::vector<Step>& steps = of(by_port_[port], block).steps;
    const uint32_t first = alone ? done : 0;
    const auto at = std::ranges::lower_bound(steps, done, {}, &Step::done);
    const auto says_it = [first](const Step& step) { return step.first <= first; };
    if (std::any_of(at, steps.end(), says_it)) return;
    steps.insert(std::ranges::upper_bound(steps, done, {}, &Step::done), {first, done, since});
  }

  /// What the block has found out of the port after its op count `count` it may not have.
  void forget(uint32_t port, uint32_t block, uint32_t count) {
    std::erase_if(of(by_port_[port], block).steps,
                  [count](const Step& step) { return step.since > count; });
  }

  /// Is there a block of which `reached(block, count)` says that it is known to have done `count`
  /// ops, and which knew by then that the port had done its op number `time`?
  template <class Reached>
  bool known(uint32_t port, uint32_t time, Reached&& reached) const {
    const auto knew = [&](const Learner& learner) {
      const std::vector<Step>& steps = learner.steps;
      auto step = std::ranges::lower_bound(steps, time, {}, &Step::done);
      for (; step != steps.end(); ++step) {
        if (step->first <= time && reached(learner.block, step->since)) return true;
        if (step->first == 0) return false;  // what shows more was learned later
      }
      return false;
    };
    return knew(by_port_[port].first) || std::ranges::any_of(by_port_[port].others, knew);
  }

 private:
  struct Step {
    uint32_t first, done;  ///< the ops of the port; 0: from the beginning. `done` does not fall
    uint32_t since;
  };
  struct Learner {
    uint32_t block = 0;
    std::vector<Step> steps = {};  ///< none: it has not learned anything
  };
  struct Learners {
    Learner first;  ///< most have no other
    std::vector<Learner> others;
  };

  static Learner& of(Learners& learners, uint32_t block) {
    if (learners.first.steps.empty()) learners.first.block = block;
    if (learners.first.block == block) return learners.first;
    const auto other = std::ranges::find(learners.others, block, &Learner::block);
    return other != learners.others.end() ? *other : learners.others.emplace_back(Learner{block});
  }

  std::vector<Learners> by_port_;  ///< by process of a port
};

}  // namespace mscclc::proof
