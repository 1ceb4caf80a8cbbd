#include "runtime/doors/c/ranges.h"

namespace mscclc::capi {

NvtxRange range_of(const char* function, std::optional<uint64_t> bytes) {
  static const NvtxDomain domain("mscclc");
  return NvtxRange(domain, function, bytes);
}

}  // namespace mscclc::capi
