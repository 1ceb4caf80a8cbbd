#include "tests/fakes/nccl/rounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace fake_nccl {
namespace {

template <typename T>
double load_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}
/// Integers wrap, as NCCL's do.
template <typename T>
void store_as(char* at, double value) {
  T stored;
  if constexpr (std::is_integral_v<T>) {
    stored = static_cast<T>(static_cast<int64_t>(value));
  } else {
    stored = static_cast<T>(value);
  }
  std::memcpy(at, &stored, sizeof stored);
}

uint16_t bits_at(const char* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}
/// Numbers of 16 bits that are finite, rounded to the nearest, to even where two are.
double load_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, rest = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(rest, -24) : std::ldexp(1024 + rest, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
uint16_t f16_of(double value) {
  const double size = std::fabs(value);
  const int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
  const auto parts = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const int bits = std::min(((exponent + 14) << 10) + parts, 0x7c00);
  return static_cast<uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}
double load_bf16(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}
uint16_t bf16_of(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

size_t bytes_of(int type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

double load(int type, const char* at) {
  switch (type) {
    case 0:
      return load_as<int8_t>(at);
    case 1:
      return load_as<uint8_t>(at);
    case 2:
      return load_as<int32_t>(at);
    case 3:
      return load_as<uint32_t>(at);
    case 4:
      return load_as<int64_t>(at);
    case 5:
      return load_as<uint64_t>(at);
    case 6:
      return load_f16(bits_at(at));
    case 7:
      return load_as<float>(at);
    case 8:
      return load_as<double>(at);
    case 9:
      return load_bf16(bits_at(at));
    default:
      std::abort();
  }
}

namespace {

void store(int type, char* at, double value) {
  switch (type) {
    case 0:
      return store_as<int8_t>(at, value);
    case 1:
      return store_as<uint8_t>(at, value);
    case 2:
      return store_as<int32_t>(at, value);
    case 3:
      return store_as<uint32_t>(at, value);
    case 4:
      return store_as<int64_t>(at, value);
    case 5:
      return store_as<uint64_t>(at, value);
    case 6:
      return store_as<uint16_t>(at, f16_of(value));
    case 7:
      return store_as<float>(at, value);
    case 8:
      return store_as<double>(at, value);
    case 9:
      return store_as<uint16_t>(at, bf16_of(value));
    default:
      std::abort();
  }
}

double combine(int op, double a, double b) {
  if (op == 1) return a * b;
  if (op == 2) return std::max(a, b);
  if (op == 3) return std::min(a, b);
  return a + b;
}

/// What all ranks' inputs give, from element `first` on.
std::vector<char> reduced(const Round& round, size_t first, size_t elements) {
  const Part& any = round.parts.begin()->second;
  const size_t bytes = bytes_of(any.type);
  std::vector<char> out(elements * bytes);
  for (size_t i = 0; i < elements; ++i) {
    double value = 0;
    bool begun = false;
    for (const auto& [rank, part] : round.parts) {
      const double own = load(any.type, part.send + (first + i) * bytes) * part.scale;
      value = begun ? combine(any.op, value, own) : own;
      begun = true;
    }
    if (any.op == 4) value /= static_cast<double>(round.parts.size());
    store(any.type, out.data() + i * bytes, value);
  }
  return out;
}

/// The outputs of a round, by rank: made before any is written, as they may lie in inputs.
std::map<int, std::vector<char>> outputs(const Round& round) {
  std::map<int, std::vector<char>> out;
  const int ranks = static_cast<int>(round.parts.size());
  for (const auto& [rank, part] : round.parts) {
    const size_t row = part.count * bytes_of(part.type);
    const auto row_of = [&](int from, int index) {
      const char* const at = round.parts.at(from).send + static_cast<size_t>(index) * row;
      return std::vector<char>(at, at + row);
    };
    std::vector<char>& own = out[rank];
    const auto all_rows = [&](auto index) {
      for (int from = 0; from < ranks; ++from) {
        const std::vector<char> piece = row_of(from, index(from));
        own.insert(own.end(), piece.begin(), piece.end());
      }
    };
    switch (part.kind) {
      case Kind::allreduce:
        own = reduced(round, 0, part.count);
        break;
      case Kind::reduce:
        if (rank == part.root) own = reduced(round, 0, part.count);
        break;
      case Kind::reducescatter:
        own = reduced(round, static_cast<size_t>(rank) * part.count, part.count);
        break;
      case Kind::broadcast:
        own = row_of(part.root, 0);
        break;
      case Kind::scatter:
        own = row_of(part.root, rank);
        break;
      case Kind::allgather:
        all_rows([](int) { return 0; });
        break;
      case Kind::alltoall:
        all_rows([rank = rank](int) { return rank; });
        break;
      case Kind::gather:
        if (rank == part.root) all_rows([](int) { return 0; });
        break;
    }
  }
  return out;
}

}  // namespace

void finish(Round& round) {
  for (auto& [rank, bytes] : outputs(round)) {
    if (!bytes.empty()) std::memcpy(round.parts.at(rank).receive, bytes.data(), bytes.size());
  }
  round.done = true;
}

}  // namespace fake_nccl
