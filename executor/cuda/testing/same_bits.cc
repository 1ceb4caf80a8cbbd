#include "executor/cuda/testing/same_bits.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/oracle/values.h"

namespace mscclc::cuda {
namespace {

struct NoHooks final : CallHooks {
  void before(uint32_t, uint64_t) override {}
  void after(uint32_t, uint64_t) override {}
};

std::string text_of(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

}  // namespace

std::vector<uint8_t> rounding_input(uint64_t bytes, Dtype dtype, uint64_t seed) {
  Dice dice(seed + 1);
  std::vector<uint8_t> data(bytes);
  const DtypeInfo& type = info(dtype);
  for (uint64_t i = 0; i + type.bytes <= bytes; i += type.bytes) {
    uint64_t bits = dice.next();
    if (type.kind == DtypeKind::kFloat) {
      const uint64_t top = uint64_t{0x7} << (8 * type.bytes - 4);  // of the exponent
      bits = (bits & ~top) | (uint64_t{0x3} << (8 * type.bytes - 4));
      const uint64_t sign = uint64_t{1} << (8 * type.bytes - 1);
      if (dice.below(16) == 0) bits &= sign | (sign / 8 - 1);  // far smaller
      const uint64_t place = i / type.bytes % 16;
      if (dice.below(32) == 0 || place == 5) bits &= sign;
      if (place == 11) bits &= sign | 1;
    }
    std::memcpy(data.data() + i, &bits, type.bytes);
  }
  return data;
}

Call SameBits::call(uint64_t elements, Dtype dtype, ReduceOp reduce) const {
  const DtypeInfo& type = info(dtype);
  return {.part_bytes =
              Chunking::part_for_message(program().contract, elements * type.bytes, type.bytes),
          .dtype = dtype,
          .accumulate = type.accumulate,
          .reduce = reduce};
}

bool SameBits::can_chain() const {
  const Contract& contract = program().contract;
  for (uint32_t r = 0; r < contract.ranks; ++r) {
    if (contract.chunk_count(Side::input, r) != contract.chunk_count(Side::output, r)) return false;
  }
  return contract.kind == CollectiveKind::allreduce || contract.kind == CollectiveKind::sendrecv ||
         contract.kind == CollectiveKind::alltoall;
}

std::string SameBits::run(const Call& call, const CudaRanks::Options& options, uint32_t rounds,
                          uint64_t seed) {
  Diagnostics diagnostics;
  Call checked = call;
  cluster_.restart();
  if (!check_call(program(), checked, diagnostics) ||
      !cluster_.prepare(checked, options.in_place, false, diagnostics) ||
      !gpu_.prepare(checked, options, diagnostics)) {
    return text_of(diagnostics);
  }
  for (uint32_t i = 0; i < rounds; ++i) {
    std::string fault = run_round(options, (seed * rounds + i) * 64 * 64);
    if (!fault.empty()) return fault;
  }
  return "";
}

SameBits::Bytes SameBits::input_of(uint32_t rank, uint64_t seed) const {
  return rounding_input(cluster_.bytes(rank, kInput), cluster_.call().dtype, seed + rank);
}

std::string SameBits::run_round(const CudaRanks::Options& options, uint64_t seed) {
  const auto ranks = static_cast<uint32_t>(program().ranks.size());
  Diagnostics diagnostics;
  NoHooks hooks;
  std::vector<std::vector<Bytes>> expected;
  for (uint32_t c = 0; c < options.calls; ++c) {
    for (uint32_t r = 0; r < ranks; ++r) {
      const bool handed_on = options.chained && c > 0;
      const Bytes input = handed_on ? expected.back()[r] : input_of(r, seed + c * 64);
      if (input.empty()) continue;
      std::memcpy(cluster_.data(r, kInput), input.data(), cluster_.bytes(r, kInput));
      if (!handed_on && !gpu_.write(r, kInput, input.data(), diagnostics, c)) {
        return text_of(diagnostics);
      }
    }
    if (!cluster_.run(1, 0, hooks, diagnostics)) return text_of(diagnostics);
    std::vector<Bytes>& all = expected.emplace_back();
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint8_t* data = cluster_.data(r, kOutput);
      all.emplace_back(data, data + cluster_.bytes(r, kOutput));
    }
  }
  if (!gpu_.run(diagnostics)) return text_of(diagnostics);
  // In place, chained calls have one buffer.
  const bool one = options.chained && options.in_place;
  for (uint32_t c = one ? options.calls - 1 : 0; c < options.calls; ++c) {
    std::string fault = compare(c, expected[c]);
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string SameBits::compare(uint32_t call, const std::vector<Bytes>& expected) {
  Diagnostics diagnostics;
  const Dtype dtype = cluster_.call().dtype;
  for (uint32_t r = 0; r < expected.size(); ++r) {
    Bytes wanted = expected[r], got(wanted.size());
    if (got.empty()) continue;
    if (!gpu_.read(r, kOutput, got.data(), diagnostics, call)) return text_of(diagnostics);
    keep_promised(r, wanted);
    keep_promised(r, got);
    const auto [at, other] = std::ranges::mismatch(wanted, got);
    if (at == wanted.end()) continue;
    const uint64_t element = static_cast<uint64_t>(at - wanted.begin()) / info(dtype).bytes;
    return "rank " + std::to_string(r) + ", call " + std::to_string(call) + ": element " +
           std::to_string(element) + " is " +
           element_text(dtype, got.data() + element * info(dtype).bytes) + ", the simulator has " +
           element_text(dtype, wanted.data() + element * info(dtype).bytes);
  }
  return "";
}

/// Clears what the collective does not promise.
void SameBits::keep_promised(uint32_t rank, Bytes& output) const {
  const Contract& contract = program().contract;
  const Chunking chunking(contract, cluster_.call().part_bytes, program().launch.align);
  Bytes kept(output.size());
  Promise promise;
  for (uint32_t c = 0; c < contract.shape(Side::output, rank).chunks(); ++c) {
    if (!contract.promise(rank, c, promise)) continue;
    const uint64_t offset = chunking.offset(Side::output, rank, c);
    const uint64_t length = chunking.length(Side::output, rank, c);
    if (length > 0) std::memcpy(kept.data() + offset, output.data() + offset, length);
  }
  output = std::move(kept);
}

}  // namespace mscclc::cuda
