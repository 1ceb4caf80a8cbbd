#include "tests/overlap/gemm_world.h"

#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/interpreter/numbers.h"
#include "executor/interpreter/part_sum.h"

namespace mscclc::testing {
namespace {

template <Dtype T>
MatrixBytes as_type(const std::vector<float>& values) {
  using Bits = typename device::Element<T>::Bits;
  MatrixBytes bytes(values.size() * sizeof(Bits));
  for (size_t i = 0; i < values.size(); ++i) {
    const Bits bits = device::Element<T>::write(values[i]);
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  return bytes;
}

template <Dtype T>
std::vector<float> as_floats(const MatrixBytes& bytes) {
  using Bits = typename device::Element<T>::Bits;
  std::vector<float> values(bytes.size() / sizeof(Bits));
  for (size_t i = 0; i < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = device::Element<T>::read(bits);
  }
  return values;
}

#define OF_TYPE(function, dtype, what)    \
  switch (dtype) {                        \
    case Dtype::f16:                      \
      return function<Dtype::f16>(what);  \
    case Dtype::bf16:                     \
      return function<Dtype::bf16>(what); \
    case Dtype::e4m3:                     \
      return function<Dtype::e4m3>(what); \
    case Dtype::e5m2:                     \
      return function<Dtype::e5m2>(what); \
    default:                              \
      return function<Dtype::f32>(what);  \
  }

MatrixBytes write_matrix(Dtype dtype, const std::vector<float>& values){
    OF_TYPE(as_type, dtype, values)} std::vector<float> read_matrix(Dtype dtype,
                                                                    const MatrixBytes& bytes){
    OF_TYPE(as_floats, dtype, bytes)}
#undef OF_TYPE

MatrixBytes some_matrix(Dtype dtype, uint64_t count, uint64_t seed, MatrixValues how) {
  Dice dice(seed * 0x9e3779b97f4a7c15 + 1);
  std::vector<float> values(count);
  for (float& value : values) {
    value = how == MatrixValues::small
                ? static_cast<float>(dice.below(3)) - 1
                : (static_cast<float>(dice.below(65536)) - 32000.0f) / 30000.0f;
  }
  return write_matrix(dtype, values);
}

bool is_sum(OverlapKind kind) {
  return kind == OverlapKind::gemm_reducescatter || kind == OverlapKind::gemm_allreduce;
}

}  // namespace

uint64_t GemmWorld::a_rows() const {
  return config_.kind == OverlapKind::allgather_gemm ? config_.m / ranks_ : config_.m;
}

uint64_t GemmWorld::out_rows() const {
  return config_.kind == OverlapKind::gemm_reducescatter ? config_.m / ranks_ : config_.m;
}

RankMatrices GemmWorld::matrices(uint32_t rank, uint32_t run) const {
  const uint64_t seed = uint64_t{run} * 1000 + rank * 10;
  RankMatrices made;
  made.a = some_matrix(config_.a_dtype, a_rows() * config_.k, seed, values_);
  const bool scaled = info(config_.a_dtype).bytes == 1;
  if (scaled) made.a_scale = 0.5f;
  for (size_t w = 0; w < config_.n.size(); ++w) {
    made.b.push_back(
        some_matrix(config_.b_dtype, config_.k * config_.n[w], seed + 1 + w * 100000, values_));
    // The bias of a sum is the same on all ranks.
    const uint64_t of = is_sum(config_.kind) ? 7 : seed + 2 + w;
    if (config_.bias)
      made.bias.push_back(some_matrix(config_.out_dtype, config_.n[w], of, values_));
    made.b_scale.push_back(scaled ? 2.0f * static_cast<float>(w + 1) : 1.0f);
  }
  return made;
}

MatrixBytes GemmWorld::gathered(uint32_t rank, uint32_t run) const {
  if (is_sum(config_.kind)) return matrices(rank, run).a;
  MatrixBytes all;
  const uint64_t part = config_.m / ranks_ * config_.k * info(config_.a_dtype).bytes;
  for (uint32_t p = 0; p < ranks_; ++p) {
    const MatrixBytes a = matrices(p, run).a;
    const uint64_t from = config_.kind == OverlapKind::alltoall_gemm ? rank * part : 0;
    all.insert(all.end(), a.begin() + static_cast<ptrdiff_t>(from),
               a.begin() + static_cast<ptrdiff_t>(from + part));
  }
  return all;
}

/// A rank's own, before any sum over ranks.
std::vector<float> GemmWorld::product(uint32_t rank, uint32_t run, size_t weight) const {
  const RankMatrices own = matrices(rank, run);
  const auto a = read_matrix(config_.a_dtype, gathered(rank, run));
  const auto b = read_matrix(config_.b_dtype, own.b[weight]);
  const uint64_t n = config_.n[weight], k = config_.k;
  std::vector<float> d(config_.m * n);
  for (uint64_t i = 0; i < config_.m; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (uint64_t x = 0; x < k; ++x) {
        sum += a[i * k + x] * (config_.b_transposed ? b[j * k + x] : b[x * n + j]);
      }
      d[i * n + j] = sum * own.a_scale * own.b_scale[weight];
    }
  }
  return d;
}

MatrixBytes GemmWorld::expected(uint32_t rank, uint32_t run, size_t weight) const {
  MatrixBytes sums = before_activation(rank, run, weight);
  if (config_.activation == Activation::none) return sums;
  std::vector<float> values = read_matrix(config_.out_dtype, sums);
  for (float& value : values) value = device::gelu(value);
  return write_matrix(config_.out_dtype, values);
}

MatrixBytes GemmWorld::before_activation(uint32_t rank, uint32_t run, size_t weight) const {
  std::vector<float> d = product(rank, run, weight);
  for (uint32_t p = 0; p < ranks_ && is_sum(config_.kind); ++p) {
    if (p == rank) continue;
    const std::vector<float> other = product(p, run, weight);
    for (size_t i = 0; i < d.size(); ++i) d[i] += other[i];
  }
  const uint64_t n = config_.n[weight];
  if (config_.bias) {
    const auto bias = read_matrix(config_.out_dtype, matrices(rank, run).bias[weight]);
    for (size_t i = 0; i < d.size(); ++i) d[i] += bias[i % n];
  }
  if (config_.kind == OverlapKind::gemm_reducescatter) {
    const auto begin = d.begin() + static_cast<ptrdiff_t>(rank * out_rows() * n);
    d = std::vector<float>(begin, begin + static_cast<ptrdiff_t>(out_rows() * n));
  }
  return write_matrix(config_.out_dtype, d);
}

}  // namespace mscclc::testing
