#include "tests/engines/engine_trial.h"

#include <fmt/format.h>

#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/cuda/host/grid.h"
#include "executor/lower.h"
#include "executor/oracle/values.h"

namespace mscclc {
namespace {

constexpr uint8_t kUnwritten = 0x5b;

std::string text(const Diagnostics& diagnostics) { return render_text(diagnostics, Sources{}, 10); }

/// Elements whose sums are rounded, but neither overflow nor are no numbers.
void fill(uint8_t* to, uint64_t bytes, uint32_t element, Dice& dice) {
  for (uint64_t i = 0; i + element <= bytes; i += element) {
    const uint64_t top = uint64_t{0x7} << (8 * element - 4);
    const uint64_t bits = (dice.next() & ~top) | (uint64_t{0x3} << (8 * element - 4));
    std::memcpy(to + i, &bits, element);
  }
}

/// Zeros of either sign, and now and then a number that is next to zero, or one that is not.
void fill_zeros(uint8_t* to, uint64_t bytes, uint32_t element, Dice& dice) {
  for (uint64_t i = 0; i + element <= bytes; i += element) {
    const uint64_t sign = dice.next() & uint64_t{1} << (8 * element - 1);
    const uint64_t some = dice.below(2) != 0 ? 1 : uint64_t{0x3} << (8 * element - 4);
    const uint64_t bits = sign | (dice.below(8) == 0 ? some : 0);
    std::memcpy(to + i, &bits, element);
  }
}

void fill_wide(uint8_t* to, uint64_t bytes, uint32_t, Dice& dice) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<uint8_t>(dice.next());
}

bool is_minus_zero(const uint8_t* at, uint32_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, element);
  return bits == uint64_t{1} << (8 * element - 1);
}

bool is_nan(Dtype dtype, const uint8_t* at) {
  return element_text(dtype, at).find("nan") != std::string::npos;
}

/// "" if all elements have the same bits; what is no number may be written in any way.
std::string difference(Dtype dtype, const std::vector<uint8_t>& expected,
                       const std::vector<uint8_t>& seen) {
  const uint32_t element = info(dtype).bytes;
  for (uint64_t i = 0; i + element <= expected.size(); i += element) {
    if (std::memcmp(&expected[i], &seen[i], element) == 0) continue;
    if (is_nan(dtype, &expected[i]) && is_nan(dtype, &seen[i])) continue;
    return fmt::format("element {}: {} where the simulator gives {}", i / element,
                       element_text(dtype, &seen[i]), element_text(dtype, &expected[i]));
  }
  return "";
}

}  // namespace

std::string text(const EngineSpec& spec) {
  constexpr const char* kNames[] = {"generic", "fast", "short"};
  return fmt::format(
      "{} engine, {} bytes of {}, {}, {}{}, seed {}, {} calls from {} on, {} threads",
      kNames[static_cast<size_t>(spec.engine)], spec.bytes, info(spec.dtype).name, name(spec.op),
      spec.in_place ? "in place" : "out of place", spec.shifted ? ", shifted" : "", spec.seed,
      spec.calls, spec.first_call, spec.threads);
}

/// What the simulator gives: inputs and outputs by call and rank.
class EngineTrial::Expected final : public CallHooks {
 public:
  Expected(const Cluster& cluster, const EngineSpec& spec)
      : cluster_(cluster), dtype_(cluster.call().dtype), dice_(spec.seed) {
    const bool is_float = info(dtype_).kind == DtypeKind::kFloat;
    const auto fill_in = is_float && spec.zeros  ? fill_zeros
                         : is_float && spec.wide ? fill_wide
                                                 : fill;
    const auto ranks = static_cast<uint32_t>(cluster.program().ranks.size());
    inputs_.resize(spec.calls, std::vector<std::vector<uint8_t>>(ranks));
    outputs_ = inputs_;
    for (auto& call : inputs_) {
      for (uint32_t r = 0; r < ranks; ++r) {
        call[r].resize(cluster.bytes(r, kInput));
        fill_in(call[r].data(), call[r].size(), info(dtype_).bytes, dice_);
      }
    }
  }
  void before(uint32_t rank, uint64_t call) override {
    poison(cluster_.data(rank, kOutput), cluster_.bytes(rank, kOutput));
    copy(cluster_.data(rank, kInput), inputs_[call][rank]);
  }
  void after(uint32_t rank, uint64_t call) override {
    const uint64_t bytes = cluster_.bytes(rank, kOutput);
    if (bytes == 0) return;
    const uint8_t* from = cluster_.data(rank, kOutput);
    outputs_[call][rank].assign(from, from + bytes);
  }
  /// Does the simulator give a -0.0?
  bool has_minus_zero() const {
    const uint32_t element = info(dtype_).bytes;
    if (info(dtype_).kind != DtypeKind::kFloat) return false;
    for (const auto& call : outputs_) {
      for (const std::vector<uint8_t>& output : call) {
        for (uint64_t i = 0; i + element <= output.size(); i += element) {
          if (is_minus_zero(&output[i], element)) return true;
        }
      }
    }
    return false;
  }

  void before(cuda::CudaRanks& ranks, uint32_t rank, uint32_t call) {
    std::vector<uint8_t> unwritten(cluster_.bytes(rank, kOutput));
    poison(unwritten.data(), unwritten.size());
    Diagnostics d;
    good_ &= ranks.write(rank, kOutput, unwritten.data(), d) &&
             ranks.write(rank, kInput, inputs_[call][rank].data(), d);
  }
  void after(const cuda::CudaRanks& ranks, uint32_t rank, uint32_t call) {
    std::vector<uint8_t> seen(outputs_[call][rank].size());
    Diagnostics d;
    good_ &= ranks.read(rank, kOutput, seen.data(), d);
    const std::string found = difference(dtype_, outputs_[call][rank], seen);
    if (found.empty() || !first_.empty()) return;
    first_ = fmt::format("rank {}, call {}: {}", rank, call, found);
  }
  /// The first difference; "" if there is none.
  std::string first() const { return good_ ? first_ : "no memory"; }

 private:
  static void poison(uint8_t* to, uint64_t bytes) {
    if (bytes != 0) std::memset(to, kUnwritten, bytes);
  }
  static void copy(uint8_t* to, const std::vector<uint8_t>& from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }

  const Cluster& cluster_;
  const Dtype dtype_;
  Dice dice_;
  std::vector<std::vector<std::vector<uint8_t>>> inputs_, outputs_;  ///< by call and rank
  std::string first_;
  bool good_ = true;
};

EngineTrial::EngineTrial(const Program& program)
    : program_(program), cluster_(program), ranks_(program) {
  Diagnostics diagnostics;
  if (!cluster_.build(diagnostics) || !ranks_.build(diagnostics)) broken_ = text(diagnostics);
}

std::optional<std::string> EngineTrial::fault(const EngineSpec& spec) {
  if (!broken_.empty()) return broken_;
  const DtypeInfo& type = info(spec.dtype);
  Call call{.part_bytes = Chunking::part_for_message(program_.contract, spec.bytes, type.bytes),
            .dtype = spec.dtype,
            .accumulate = spec.accumulate.value_or(type.accumulate),
            .reduce = spec.op};
  Diagnostics diagnostics;
  cluster_.restart();
  if (!check_call(program_, call, diagnostics) ||
      !cluster_.prepare(call, spec.in_place, true, diagnostics)) {
    return std::nullopt;
  }
  cluster_.set_next_call(spec.first_call);
  Expected expected(cluster_, spec);
  if (!cluster_.run(spec.calls, 0, expected, diagnostics)) {
    return "the simulator hangs: " + text(diagnostics);
  }
  if (spec.zeros && expected.has_minus_zero()) return "a sum is -0.0";
  const cuda::CudaRanks::Options options{.in_place = spec.in_place,
                                         .shifted = spec.shifted,
                                         .carried = spec.seed % 2 == 0,
                                         .apart = true,
                                         .in_short = spec.engine == Engine::short_,
                                         .generic = spec.engine == Engine::generic,
                                         .threads = spec.threads,
                                         .first_call = spec.first_call};
  cuda::host::Gpu::get().set_seed(spec.seed);
  if (!ranks_.prepare(call, options, diagnostics)) return text(diagnostics);
  had_engine_ = spec.engine == Engine::generic ||
                (spec.engine == Engine::fast ? ranks_.has_fast_kernel() : ranks_.in_short());
  const bool ran = ranks_.run_calls(
      spec.calls, [&](uint32_t r, uint32_t c) { expected.before(ranks_, r, c); },
      [&](uint32_t r, uint32_t c) { expected.after(ranks_, r, c); }, diagnostics);
  cuda::host::Gpu::get().set_seed(0);
  if (!ran) return "it hangs: " + text(diagnostics);
  const std::string first = expected.first();
  if (first.empty()) return std::nullopt;
  return first;
}

}  // namespace mscclc
