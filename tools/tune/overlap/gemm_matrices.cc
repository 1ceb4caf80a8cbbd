#include "tools/tune/overlap/gemm_matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/interpreter/numbers.h"
#include "runtime/core/overlap/config.h"

namespace mscclc::tune {
namespace {

/// Elements before values repeat: a prime, so that rows differ.
constexpr uint64_t kPeriod = 1048573;
/// Of each product, looked at.
constexpr uint64_t kPlaces = 64;

/// -1, -0.5, 0, 0.5, 1: sums of products are exact in f32.
float value_at(uint64_t seed, uint64_t i) {
  uint64_t x = (i % kPeriod + 1) * 0x9e3779b97f4a7c15 + seed * 0xbf58476d1ce4e5b9;
  x ^= x >> 31;
  x *= 0x94d049bb133111eb;
  return static_cast<float>(static_cast<int>((x >> 40) % 5) - 2) / 2;
}

uint64_t seed_of_a(uint32_t rank) { return uint64_t{2} * rank; }
uint64_t seed_of_b(uint32_t rank, size_t weight) { return uint64_t{2} * rank + 1 + weight * 4096; }

template <Dtype T>
void write_values(uint64_t seed, uint64_t count, uint8_t* to) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto bits = device::Element<T>::write(value_at(seed, i));
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

template <Dtype T>
float read_value(const uint8_t* from) {
  typename device::Element<T>::Bits bits;
  std::memcpy(&bits, from, sizeof bits);
  return device::Element<T>::read(bits);
}

void write_values_of(Dtype dtype, uint64_t seed, uint64_t count, uint8_t* to) {
  switch (dtype) {
    case Dtype::f16:
      return write_values<Dtype::f16>(seed, count, to);
    case Dtype::bf16:
      return write_values<Dtype::bf16>(seed, count, to);
    case Dtype::e4m3:
      return write_values<Dtype::e4m3>(seed, count, to);
    case Dtype::e5m2:
      return write_values<Dtype::e5m2>(seed, count, to);
    default:
      return write_values<Dtype::f32>(seed, count, to);
  }
}

float read_value_of(Dtype dtype, const uint8_t* from) {
  if (dtype == Dtype::f16) return read_value<Dtype::f16>(from);
  if (dtype == Dtype::bf16) return read_value<Dtype::bf16>(from);
  return read_value<Dtype::f32>(from);
}

/// What a number may be off by when it is rounded once, as a part of it.
double rounding_of(Dtype dtype) {
  return dtype == Dtype::bf16 ? 1.0 / 256 : dtype == Dtype::f16 ? 1.0 / 2048 : 1.0 / (1 << 23);
}

}  // namespace

GemmMatrices::GemmMatrices(Device& device, const OverlapConfig& shape, uint32_t rank,
                           uint32_t ranks)
    : device_(device), shape_(shape), rank_(rank), ranks_(ranks) {
  for (size_t w = 0; w < shape_.n.size(); ++w) {
    for (uint64_t i = 0; i < kPlaces; ++i) {
      places_.push_back({w, i * 7919 % out_rows(), i * 104729 % shape_.n[w]});
    }
  }
}

uint64_t GemmMatrices::out_rows() const {
  return shape_.kind == OverlapKind::gemm_reducescatter ? shape_.m / ranks_ : shape_.m;
}

/// nullptr: reported.
uint8_t* GemmMatrices::take(uint64_t bytes, Diagnostics& diagnostics) {
  memory_.push_back(device_.allocate(bytes, "a matrix", diagnostics));
  return memory_.back() == nullptr ? nullptr : memory_.back()->data();
}

bool GemmMatrices::fill(uint8_t* to, uint64_t count, uint64_t seed,
                        Diagnostics& diagnostics) const {
  const uint64_t size = info(shape_.a_dtype).bytes, block = std::min(count, kPeriod);
  std::vector<uint8_t> values(block * size);
  write_values_of(shape_.a_dtype, seed, block, values.data());
  for (uint64_t first = 0; first < count; first += block) {
    const uint64_t now = std::min(block, count - first);
    if (!device_.write(to + first * size, values.data(), now * size, diagnostics)) return false;
  }
  return true;
}

std::unique_ptr<GemmMatrices> GemmMatrices::make(Device& device, const OverlapConfig& shape,
                                                 uint32_t rank, uint32_t ranks,
                                                 Diagnostics& diagnostics) {
  std::unique_ptr<GemmMatrices> made(new GemmMatrices(device, shape, rank, ranks));
  const uint64_t size = info(shape.a_dtype).bytes;
  const auto matrix = [&](uint64_t count, uint64_t seed) -> uint8_t* {
    uint8_t* const at = made->take(count * size, diagnostics);
    return at != nullptr && made->fill(at, count, seed, diagnostics) ? at : nullptr;
  };
  const uint64_t rows = shape.kind == OverlapKind::allgather_gemm ? shape.m / ranks : shape.m;
  OverlapCall& call = made->call_;
  call.a = matrix(rows * shape.k, seed_of_a(rank));
  bool well = call.a != nullptr;
  for (size_t w = 0; w < shape.n.size() && well; ++w) {
    call.b.push_back(matrix(shape.k * shape.n[w], seed_of_b(rank, w)));
    call.out.push_back(
        made->take(made->out_rows() * shape.n[w] * info(shape.out_dtype).bytes, diagnostics));
    well = call.b.back() != nullptr && call.out.back() != nullptr;
  }
  return well ? std::move(made) : nullptr;
}

bool GemmMatrices::fit(const OverlapConfig& c) const {
  return c.kind == shape_.kind && c.m == shape_.m && c.k == shape_.k && c.n == shape_.n &&
         c.a_dtype == shape_.a_dtype && c.out_dtype == shape_.out_dtype;
}

uint8_t* GemmMatrices::address_of(const LookedAt& place) const {
  const uint64_t element = place.row * shape_.n[place.weight] + place.column;
  return static_cast<uint8_t*>(call_.out[place.weight]) + element * info(shape_.out_dtype).bytes;
}

bool GemmMatrices::poison(Diagnostics& diagnostics) {
  const uint32_t no_number = 0xffffffff;
  return std::ranges::all_of(places_, [&](const LookedAt& place) {
    return device_.write(address_of(place), &no_number, info(shape_.out_dtype).bytes, diagnostics);
  });
}

/// Of a row of what rank `of` gives, and this rank's or, of sums, its own B.
double GemmMatrices::product(const LookedAt& place, uint32_t of, uint64_t row) const {
  const uint32_t b_of = overlap::info(shape_.kind).sums ? of : rank_;
  double sum = 0;
  for (uint64_t x = 0; x < shape_.k; ++x) {
    sum += double{value_at(seed_of_a(of), row * shape_.k + x)} *
           double{value_at(seed_of_b(b_of, place.weight), place.column * shape_.k + x)};
  }
  return sum;
}

/// By the definition, however partial sums are added and rounded.
bool GemmMatrices::is_right(const LookedAt& place, float got) const {
  const uint64_t part = shape_.m / ranks_;
  double expected = 0, parts = 0;
  const auto add = [&](uint32_t of, uint64_t row) {
    const double more = product(place, of, row);
    expected += more;
    parts += std::abs(more);
  };
  switch (shape_.kind) {
    case OverlapKind::allgather_gemm:
      add(static_cast<uint32_t>(place.row / part), place.row % part);
      break;
    case OverlapKind::alltoall_gemm:
      add(static_cast<uint32_t>(place.row / part), rank_ * part + place.row % part);
      break;
    default: {
      const bool scatters = shape_.kind == OverlapKind::gemm_reducescatter;
      for (uint32_t p = 0; p < ranks_; ++p) add(p, (scatters ? rank_ * part : 0) + place.row);
    }
  }
  const double allowed = (ranks_ + 1) * rounding_of(shape_.out_dtype) * parts;
  return std::abs(double{got} - expected) <= allowed;
}

std::optional<uint64_t> GemmMatrices::wrong(Diagnostics& diagnostics) const {
  uint64_t count = 0;
  for (const LookedAt& place : places_) {
    uint8_t bytes[4] = {};
    if (!device_.read(bytes, address_of(place), info(shape_.out_dtype).bytes, diagnostics)) {
      return std::nullopt;
    }
    count += !is_right(place, read_value_of(shape_.out_dtype, bytes));
  }
  return count;
}

}  // namespace mscclc::tune
