#include "executor/cpu/scale.h"

#include <cstring>

namespace mscclc {
namespace {

template <Dtype T>
void scale_all(uint8_t* to, const uint8_t* from, uint64_t count, double factor) {
  using Bits = typename device::Element<T>::Bits;
  if constexpr (device::Element<T>::kIsFloat) {
    for (uint64_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
      bits = device::scaled<T>(bits, factor);
      std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
  }
}

}  // namespace

void scale(Dtype dtype, void* to, const void* from, uint64_t count, double factor) {
  switch (dtype) {
#define DTYPE(name, ...)                                                                        \
  case Dtype::name:                                                                             \
    return scale_all<Dtype::name>(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), \
                                  count, factor);
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}

}  // namespace mscclc
