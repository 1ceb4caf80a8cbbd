#include "runtime/core/overlap/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mscclc::overlap {
namespace {

bool check_types(const OverlapConfig& c, Diagnostics& diagnostics) {
  const auto said = fmt::format("A is {}, B {}, out {}", mscclc::info(c.a_dtype).name,
                                mscclc::info(c.b_dtype).name, mscclc::info(c.out_dtype).name);
  if (!is_wide(c.out_dtype)) {
    return refuse_overlap(c, "out must be f32, f16 or bf16; " + said, diagnostics);
  }
  const bool same = is_wide(c.a_dtype) && c.a_dtype == c.b_dtype;
  if (same || (is_narrow(c.a_dtype) && is_narrow(c.b_dtype))) return true;
  return refuse_overlap(
      c, "A and B must both be f32, f16 or bf16, the same; or each e4m3 or e5m2; " + said,
      diagnostics);
}

bool check_sizes(const OverlapConfig& c, uint32_t ranks, Diagnostics& diagnostics) {
  const bool sums = info(c.kind).sums;
  if (c.n.empty() || c.n.size() > (sums ? 1 : kMaxWeights)) {
    return refuse_overlap(
        c,
        fmt::format("it takes {}, and was given {}",
                    sums ? "one B" : fmt::format("1 to {} B", kMaxWeights), c.n.size()),
        diagnostics);
  }
  const uint64_t most = *std::ranges::max_element(c.n), least = *std::ranges::min_element(c.n);
  const auto said = fmt::format("m = {}, k = {}, n = {}", c.m, c.k, fmt::join(c.n, ", "));
  if (c.m == 0 || c.k == 0 || least == 0) {
    return refuse_overlap(c, "sizes must not be 0; " + said, diagnostics);
  }
  const uint64_t side = std::max({c.m, c.k, most});
  if (side > kMaxBytes / 4 || std::max(c.k, most) > kMaxBytes / 4 / c.m ||
      c.k > kMaxBytes / 4 / most) {
    return refuse_overlap(
        c, fmt::format("a matrix must have less than {} bytes; {}", kMaxBytes, said), diagnostics);
  }
  if (c.kind == OverlapKind::gemm_allreduce || c.m % ranks == 0) return true;
  return refuse_overlap(
      c,
      fmt::format("m must be a multiple of the {} ranks, as each has as many rows; m = "
                  "{}: pad it to {}",
                  ranks, c.m, (c.m / ranks + 1) * ranks),
      diagnostics);
}

}  // namespace

bool refuse_overlap(const OverlapConfig& config, const std::string& why, Diagnostics& diagnostics) {
  diagnostics.error("bad-call", {}, fmt::format("{}: {}", name(config.kind), why));
  return false;
}

uint64_t row_elements(const OverlapConfig& config) {
  return info(config.kind).sums ? config.n.front() : config.k;
}

Dtype message_dtype(const OverlapConfig& config) {
  return info(config.kind).sums ? config.out_dtype : config.a_dtype;
}

uint64_t message_bytes(const OverlapConfig& config) {
  return config.m * row_elements(config) * mscclc::info(message_dtype(config)).bytes;
}

bool check_config(const OverlapConfig& config, uint32_t ranks, Diagnostics& diagnostics) {
  if (find_kind(config.kind) == nullptr) {
    diagnostics.error("bad-call", {},
                      fmt::format("kind {} is none: there are 1 (allgather_gemm), 2 "
                                  "(gemm_reducescatter), 3 (gemm_allreduce) and 4 (alltoall_gemm)",
                                  static_cast<int>(config.kind)));
    return false;
  }
  if (config.activation > Activation::gelu) {
    return refuse_overlap(config,
                          fmt::format("activation {} is none: there are 0 (none) and 1 (gelu)",
                                      static_cast<int>(config.activation)),
                          diagnostics);
  }
  if (!check_types(config, diagnostics) || !check_sizes(config, ranks, diagnostics)) return false;
  if (config.chunks <= kMaxChunks) return true;
  return refuse_overlap(
      config, fmt::format("chunks must be 0 to {}; chunks = {}", kMaxChunks, config.chunks),
      diagnostics);
}

NamedValues values_of(const OverlapConfig& config) {
  const auto type = [](Dtype dtype) { return std::string(mscclc::info(dtype).name); };
  // How B lies is each rank's own, as its GEMMs are; only cuBLASMp's are of all ranks.
  const char* const transposed = config.b_transposed ? "1" : "0";
  return {{"kind", std::string(name(config.kind))},
          {"m", std::to_string(config.m)},
          {"k", std::to_string(config.k)},
          {"n", fmt::format("{}", fmt::join(config.n, ", "))},
          {"b_transposed", config.backend == kCublasMp ? transposed : ""},
          {"a_dtype", type(config.a_dtype)},
          {"b_dtype", type(config.b_dtype)},
          {"out_dtype", type(config.out_dtype)},
          {"order", config.order ? std::string(name(*config.order)) : "not given"},
          {"bias", config.bias ? "1" : "0"},
          {"activation", config.activation == Activation::gelu ? "gelu" : "none"},
          {"backend", config.backend},
          {"chunks", std::to_string(config.chunks)},
          {"budget", std::to_string(config.budget)},
          {"agreed", fmt::format("'{}'", config.agreed)}};  // not empty: that is not known
}

}  // namespace mscclc::overlap
