// Elements times a factor, before they are added up: averages that do not overflow where their
// values do not. The product is taken in the type in which the element is exact (f32, or f64 of
// f64), and rounded to the element's.
#pragma once

#include "executor/interpreter/numbers.h"

namespace mscclc::device {

/// REQUIRES: T is a float.
template <Dtype T>
MSCCLC_HD inline typename Element<T>::Bits scaled(typename Element<T>::Bits bits, double factor) {
  using V = ValueOf<T>;
  return Element<T>::write(Element<T>::read(bits) * static_cast<V>(factor));
}

}  // namespace mscclc::device
