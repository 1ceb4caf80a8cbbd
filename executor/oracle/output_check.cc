#include "executor/oracle/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mscclc {
namespace {

constexpr uint32_t kRow = 4096;           // elements compared at once
constexpr uint64_t kMaxCache = 64 << 20;  // bytes of expected output kept per call variant
constexpr size_t kMaxShown = 4;           // wrong elements reported of a rank
constexpr size_t kMaxRanks = 4;           // ranks reported

}  // namespace

OutputCheck::OutputCheck(const Contract& contract, uint64_t part_bytes, uint32_t align,
                         const TestValues& values, std::optional<uint32_t> only)
    : contract_(contract),
      chunking_(contract, part_bytes, align),
      values_(values),
      element_(values.element()),
      shared_(contract.uniform()) {
  begin_.push_back(0);
  for (uint32_t r = 0; r < (shared_ ? 1 : contract.ranks); ++r) {
    if (shared_ || !only || *only == r) collect(r);
    begin_.push_back(static_cast<uint32_t>(expected_.size()));
  }
}

void OutputCheck::collect(uint32_t rank) {
  const uint32_t chunks = contract_.shape(Side::output, rank).chunks();
  Promise promise;
  for (uint32_t c = 0; c < chunks; ++c) {
    if (contract_.promise(rank, c, promise)) add(promise);
  }
}

bool OutputCheck::extends(const Expected& e, const Promise& promise, uint64_t first) const {
  if (e.first + e.count != first || e.reduced != promise.reduced ||
      e.sources != promise.inputs.size()) {
    return false;
  }
  for (uint32_t i = 0; i < e.sources; ++i) {
    const Source& source = sources_[e.source + i];
    const CallerChunk& input = promise.inputs[i];
    if (source.rank != input.rank || (source.first + e.count) * element_ !=
                                         chunking_.offset(Side::input, input.rank, input.chunk)) {
      return false;
    }
  }
  return true;
}

void OutputCheck::add(const Promise& promise) {
  const auto [rank, chunk] = promise.output;
  const uint64_t first = chunking_.offset(Side::output, rank, chunk) / element_;
  const uint64_t count = chunking_.length(Side::output, rank, chunk) / element_;
  if (count == 0) return;
  const bool own = expected_.size() > begin_.back();
  if (own && extends(expected_.back(), promise, first)) {
    expected_.back().count += count;
    return;
  }
  expected_.push_back({first, count, promise.reduced, static_cast<uint32_t>(sources_.size()),
                       static_cast<uint32_t>(promise.inputs.size())});
  for (const CallerChunk& input : promise.inputs) {
    sources_.push_back(
        {input.rank, chunking_.offset(Side::input, input.rank, input.chunk) / element_});
  }
}

void OutputCheck::fill(uint32_t rank, uint64_t call, uint8_t* input, uint8_t* output) const {
  const uint64_t in_bytes = chunking_.buffer_bytes(Side::input, rank);
  const uint64_t out_bytes = chunking_.buffer_bytes(Side::output, rank);
  if (out_bytes > 0) std::memset(output, kUnwrittenByte, out_bytes);
  if (in_bytes > 0) values_.fill(rank, call, 0, in_bytes / element_, input);
}

void OutputCheck::compare(uint32_t rank, uint64_t call, const uint8_t* output,
                          std::optional<uint64_t> shown) {
  const uint32_t whose = shared_ ? 0 : rank;
  for (uint32_t i = begin_[whose]; i < begin_[whose + 1]; ++i) {
    compare(rank, call, expected_[i], output, shown.value_or(call));
  }
}

void OutputCheck::count_early(uint32_t rank) {
  ++wrong_;
  ++wrong_ranks_[rank].count;
}

void OutputCheck::compute(const Expected& e, uint64_t call, uint64_t at, uint32_t n, uint8_t* to) {
  const Source* sources = sources_.data() + e.source;
  if (!e.reduced && e.sources == 1) {
    values_.fill(sources->rank, call, sources->first + at, n, to);
    return;
  }
  keys_.resize(kRow);
  for (uint32_t i = 0; i < e.sources; ++i) {
    values_.reduce(sources[i].rank, call, sources[i].first + at, n, i == 0, keys_.data());
  }
  values_.finish(keys_.data(), n, e.sources, to);
}

// `n` elements of what is expected, from the `at`-th on. What all ranks expect is kept.
const uint8_t* OutputCheck::expected_row(const Expected& e, uint64_t call, uint64_t at,
                                         uint32_t n) {
  const bool keep =
      shared_ && expected_.size() == 1 && e.reduced && e.count * element_ <= kMaxCache;
  if (!keep) {
    row_.resize(size_t{kRow} * element_);
    compute(e, call, at, n, row_.data());
    return row_.data();
  }
  std::vector<uint8_t>& cache = cache_[call % TestValues::kVariants];
  if (cache.empty()) {
    cache.resize(e.count * element_);
    for (uint64_t i = 0; i < e.count; i += kRow) {
      const auto m = static_cast<uint32_t>(std::min<uint64_t>(kRow, e.count - i));
      compute(e, call, i, m, cache.data() + i * element_);
    }
  }
  return cache.data() + at * element_;
}

void OutputCheck::compare(uint32_t rank, uint64_t call, const Expected& e, const uint8_t* output,
                          uint64_t shown) {
  for (uint64_t at = 0; at < e.count; at += kRow) {
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kRow, e.count - at));
    const uint8_t* row = expected_row(e, call, at, n);
    const uint8_t* got = output + (e.first + at) * element_;
    if (std::memcmp(row, got, size_t{n} * element_) == 0) continue;
    count_wrong(e, rank, shown, e.first + at, row, got, n);
  }
}

bool OutputCheck::is_right(const Expected& e, const uint8_t* expected, const uint8_t* got) const {
  if (e.sources > 1 && !any_zero_) return std::memcmp(expected, got, element_) == 0;
  return same_element(values_.dtype(), expected, got);
}

void OutputCheck::count_wrong(const Expected& e, uint32_t rank, uint64_t call, uint64_t element,
                              const uint8_t* row, const uint8_t* got, uint32_t n) {
  const Dtype dtype = values_.dtype();
  for (uint32_t i = 0; i < n; ++i, row += element_, got += element_) {
    if (is_right(e, row, got)) continue;
    ++wrong_;
    WrongRank& wrong = wrong_ranks_[rank];
    ++wrong.count;
    if (wrong.first.size() >= kMaxShown) continue;
    const bool untouched =
        std::all_of(got, got + element_, [](uint8_t b) { return b == kUnwrittenByte; });
    wrong.first.push_back(
        {call, element + i, element_text(dtype, row),
         element_text(dtype, got) + (untouched ? ", which it held before the call" : "")});
  }
}

void OutputCheck::report(Diagnostics& diagnostics, const std::string& of_plan) const {
  size_t reported = 0;
  for (const auto& [rank, wrong] : wrong_ranks_) {
    if (reported++ == kMaxRanks) {
      diagnostics.error("wrong-data", {},
                        fmt::format("{} more ranks{} have wrong elements",
                                    wrong_ranks_.size() - kMaxRanks, of_plan));
      return;
    }
    if (contract_.kind == CollectiveKind::barrier) {
      diagnostics.error(
          "left-early", {},
          fmt::format("rank {}{} leaves the barrier before all are in", rank, of_plan));
      continue;
    }
    Diagnostic& d = diagnostics.error(
        "wrong-data", {},
        fmt::format("rank {}{}: {} wrong elements in 'output'", rank, of_plan, wrong.count));
    for (const WrongElement& w : wrong.first) {
      d.notes.push_back({fmt::format("call {}, element {}: expected {}, got {}", w.call, w.element,
                                     w.expected, w.got)});
    }
  }
}

}  // namespace mscclc
