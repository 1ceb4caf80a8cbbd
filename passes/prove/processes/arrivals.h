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
    std::vector<Step>& steps = of(by_port_[port], block).steps;
    if (steps.empty() || steps.back().done < done) steps.push_back({done, since});
  }

  /// What the block has found out of the port after its op count `count` it may not have.
  void forget(uint32_t port, uint32_t block, uint32_t count) {
    std::vector<Step>& steps = of(by_port_[port], block).steps;
    while (!steps.empty() && steps.back().since > count) steps.pop_back();
  }

  /// Is there a block of which `reached(block, count)` says that it is known to have done `count`
  /// ops, and which knew by then that the port had done `time` ops?
  template <class Reached>
  bool known(uint32_t port, uint32_t time, Reached&& reached) const {
    const auto knew = [&](const Learner& learner) {
      const auto step = std::ranges::lower_bound(learner.steps, time, {}, &Step::done);
      return step != learner.steps.end() && reached(learner.block, step->since);
    };
    return knew(by_port_[port].first) || std::ranges::any_of(by_port_[port].others, knew);
  }

 private:
  struct Step {
    uint32_t done, since;  ///< both rise
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
