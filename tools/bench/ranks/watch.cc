#include "tools/bench/ranks/watch.h"

namespace mscclc::bench {

void Watch::begin(std::string_view what) {
  what_[what.copy(what_, kMax)] = '\0';
  begun_.fetch_add(1, std::memory_order_release);
}

}  // namespace mscclc::bench
