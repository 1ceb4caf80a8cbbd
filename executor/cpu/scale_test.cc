// Scaling: what elements become, in place and not.
#include "executor/cpu/scale.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace mscclc {
namespace {

using device::Element;

template <Dtype T>
std::vector<double> scaled_values(const std::vector<double>& values, double factor, bool in_place) {
  using Bits = typename Element<T>::Bits;
  std::vector<Bits> from, to(values.size());
  for (const double value : values) {
    from.push_back(Element<T>::write(static_cast<device::ValueOf<T>>(value)));
  }
  scale(T, in_place ? from.data() : to.data(), from.data(), from.size(), factor);
  std::vector<double> out;
  for (const Bits bits : in_place ? from : to) out.push_back(Element<T>::read(bits));
  return out;
}

TEMPLATE_TEST_CASE_SIG("a power of two scales floats exactly", "", ((Dtype T), T), Dtype::f64,
                       Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2) {
  for (const bool in_place : {false, true}) {
    CHECK(scaled_values<T>({1, -8, 0, 96}, 0.25, in_place) == std::vector<double>{0.25, -2, 0, 24});
  }
}

TEST_CASE("other factors round to the type, from f32") {
  CHECK(scaled_values<Dtype::f32>({3}, 1.0 / 3, false)[0] == 3 * static_cast<float>(1.0 / 3));
  CHECK(scaled_values<Dtype::f64>({1}, 1.0 / 3, false)[0] == 1.0 / 3);
  CHECK(scaled_values<Dtype::bf16>({1}, 1.0 / 3, false)[0] == 0.333984375);
  CHECK(scaled_values<Dtype::e4m3>({448}, 1.0 / 3, false)[0] == 144);
}

TEST_CASE("what scaling leaves") {
  const float huge = std::numeric_limits<float>::infinity();
  CHECK(scaled_values<Dtype::f32>({huge}, 0.5, false)[0] == huge);
  CHECK(std::isnan(scaled_values<Dtype::f16>({std::nan("")}, 0.5, false)[0]));
  CHECK(scaled_values<Dtype::f32>({}, 0.5, false).empty());
}

}  // namespace
}  // namespace mscclc
