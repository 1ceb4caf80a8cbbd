// Scratch that plans of a set share without laying it out alike: any chunk of the one may lie on
// any chunk of the other, depending on the sizes of their messages. So everything that one plan has
// done to a rank's scratch must be over before anything of the other begins there. Kept are the
// last accesses of each process, by rank and part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes/prove/model/finding.h"

namespace mscclc::proof {

class SharedScratch {
 public:
  /// By process, the last access that it has made.
  using Accesses = std::vector<Event>;

  SharedScratch(size_t ranks, size_t parts) : parts_(parts), last_(ranks * parts) {}

  const Accesses& of(uint32_t rank, size_t part) const { return last_[rank * parts_ + part]; }
  void note(uint32_t rank, size_t part, const Event& event) {
    Accesses& list = last_[rank * parts_ + part];
    const auto own = std::ranges::find(list, event.process, &Event::process);
    if (own == list.end()) {
      list.push_back(event);
    } else {
      *own = event;
    }
  }

 private:
  size_t parts_;
  std::vector<Accesses> last_;
};

}  // namespace mscclc::proof
