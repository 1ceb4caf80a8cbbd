#include "executor/cuda/device/switch_cut.h"

#include <catch2/catch.hpp>

namespace mscclc::cuda {
namespace {

TEST_CASE("switch cut: the body is all aligned 16 bytes, head and tail are less than 16") {
  for (uint64_t a = 0; a < 16; ++a) {
    for (uint64_t b = a; b < 64; b += 16) {
      for (uint64_t count = 0; count < 100; ++count) {
        const SwitchCut cut = cut_for_switch(4096 + a, 8192 + b, count);
        INFO(a << " " << b << " " << count);
        CHECK(cut.head <= cut.body_end);
        CHECK(cut.body_end <= count);
        CHECK((cut.body_end - cut.head) % 16 == 0);
        if (cut.body_end > cut.head) {
          CHECK((a + cut.head) % 16 == 0);
          CHECK(cut.head < 16);
          CHECK(count - cut.body_end < 16);
        } else {
          CHECK(count < 31);
        }
      }
    }
  }
}

TEST_CASE("switch cut: what lies differently has no body") {
  for (uint64_t by = 1; by < 16; ++by) {
    const SwitchCut cut = cut_for_switch(4096, 8192 + by, 1000);
    CHECK(cut.head == 1000);
    CHECK(cut.body_end == 1000);
  }
}

}  // namespace
}  // namespace mscclc::cuda
