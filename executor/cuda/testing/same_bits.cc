#include "executor/cuda/testing/same_bits.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/oracle/values.h"
#include "executor/rows/evaluate.h"

namespace mscclc::cuda {
namespace {

struct NoHooks final : CallHooks {
  void before(uint32_t, uint64_t) override {}
  void after(uint32_t, uint64_t) override {}
};

std::string text_of(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

/// Values of an external: of about one, of both signs, here and there any bits.
std::vector<uint8_t> external_input(uint64_t bytes, rows::Type type, Dtype t, uint64_t seed) {
  Dice dice(seed + 99);
  std::vector<float> values(bytes / rows::bytes_of(type, t));
  for (float& value : values) {
    value = (static_cast<float>(dice.below(4096)) - 1024.0f) / 512.0f;
    if (dice.below(64) == 0) value *= 1e6f;
    if (dice.below(64) == 0) value *= 1e-9f;
  }
  return rows::stored_as(type, t, values);
}

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
  return {.part_bytes = Chunking::part_for_message(program().contract, elements * type.bytes,
                                                   unit_of_part(program(), dtype)),
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
  if (!write_externals(seed, diagnostics)) return text_of(diagnostics);
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
  return compare_externals();
}

/// All that ranks have: what is only written is that of both before.
bool SameBits::write_externals(uint64_t seed, Diagnostics& diagnostics) {
  const std::vector<rows::External>& all = program().externals;
  for (uint32_t r = 0; r < program().ranks.size(); ++r) {
    for (uint32_t e = 0; e < all.size(); ++e) {
      const uint64_t own = all[e].holding == rows::Holding::local ? r : 0;
      const Bytes bytes = external_input(cluster_.external_bytes(r, e), all[e].type,
                                         cluster_.call().dtype, seed + 7 * e + 31 * own);
      std::ranges::copy(bytes, cluster_.externals(r)[e]);
      if (!gpu_.write_external(r, e, bytes.data(), diagnostics)) return false;
    }
  }
  return true;
}

std::string SameBits::compare_externals() {
  Diagnostics diagnostics;
  for (uint32_t r = 0; r < program().ranks.size(); ++r) {
    for (uint32_t e = 0; e < program().externals.size(); ++e) {
      const uint8_t* const wanted = cluster_.externals(r)[e];
      Bytes got(cluster_.external_bytes(r, e));
      if (!gpu_.read_external(r, e, got.data(), diagnostics)) return text_of(diagnostics);
      const auto differs = std::ranges::mismatch(got, std::span(wanted, got.size())).in1;
      if (differs == got.end()) continue;
      return "rank " + std::to_string(r) + ": byte " + std::to_string(differs - got.begin()) +
             " of the external '" + program().externals[e].name + "' is not the simulator's";
    }
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
  const Chunking chunking(contract, cluster_.call().part_bytes,
                          program().granule(cluster_.call().dtype));
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
