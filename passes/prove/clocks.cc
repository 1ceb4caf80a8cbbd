#include "passes/prove/clocks.h"

namespace mscclc::proof {

// The compiler makes several versions and picks one for the machine at load time: without them the
// loop goes element by element. Not under sanitizers, which start too late for that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default"), optimize("O3")))
#endif
void latest(uint32_t* to, const uint32_t* a, const uint32_t* b, uint32_t width) {
  for (uint32_t p = 0; p < width; ++p) to[p] = a[p] > b[p] ? a[p] : b[p];
}

}  // namespace mscclc::proof
