// Every op that adds up as a tree, or exactly, gives what the definition says, bit for bit: with
// every number of sources, packet format, data type, accumulation type and reduction.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <span>

#include "executor/cpu/dice.h"
#include "executor/lower.h"
#include "executor/oracle/exact.h"
#include "executor/oracle/tree.h"
#include "executor/oracle/values.h"
#include "executor/simulator/cluster.h"
#include "executor/testing/tree_plans.h"
#include "ir/ops/trees.h"

namespace mscclc {
namespace {

using namespace testing;
using ChunkBytes = std::vector<uint8_t>;

constexpr ReduceOp kTreeReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                        ReduceOp::avg};
constexpr uint32_t kTreeSizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 16};
constexpr uint32_t kChunk = 48;  ///< bytes

/// Elements whose sums are rounded, of one sign or the other; some are zero.
ChunkBytes rounding_chunks(uint64_t bytes, const DtypeInfo& type, Dice& dice) {
  ChunkBytes data(bytes);
  for (uint64_t i = 0; i + type.bytes <= bytes; i += type.bytes) {
    const uint64_t sign = uint64_t{1} << (8 * type.bytes - 1);
    uint64_t bits = dice.next();
    if (type.kind == DtypeKind::kFloat) {
      bits = (bits & ~(sign - sign / 8)) | sign / 8 * 3;
      if (dice.below(8) == 0) bits &= sign;
    }
    std::memcpy(data.data() + i, &bits, type.bytes);
  }
  return data;
}

/// Elements of all sizes; some are infinite, or NaN.
ChunkBytes wide_chunks(uint64_t bytes, Dice& dice) {
  ChunkBytes data(bytes);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(dice.next());
  return data;
}

/// Of one call: fills in the inputs, and keeps the outputs.
struct KeptCall final : CallHooks {
  const Cluster& cluster;
  std::vector<ChunkBytes> inputs, outputs;
  explicit KeptCall(const Cluster& from) : cluster(from), inputs(2), outputs(2) {}
  void before(uint32_t rank, uint64_t) override {
    std::memcpy(cluster.data(rank, kInput), inputs[rank].data(), inputs[rank].size());
  }
  void after(uint32_t rank, uint64_t) override {
    const uint8_t* from = cluster.data(rank, kOutput);
    outputs[rank].assign(from, from + cluster.bytes(rank, kOutput));
  }
};

struct TreeTrial {
  TreePlan made;
  Cluster cluster;
  uint32_t sources;
  Summation summation;
  TreeTrial(OpKind kind, PacketFormat format, uint32_t n, Summation form = Summation::tree)
      : made(tree_plan(kind, format, n, form)),
        cluster(made.plan.program),
        sources(n),
        summation(form) {
    Diagnostics diagnostics;
    REQUIRE(cluster.build(diagnostics));
  }

  void run(const DtypeInfo& type, Dtype accumulate, ReduceOp reduce, uint64_t seed) {
    const bool is_float = type.kind == DtypeKind::kFloat;
    const bool exact = summation == Summation::exact;
    if (exact && sources > 2 && is_float && reduce == ReduceOp::prod) return;  // refused
    Diagnostics diagnostics;
    Call call{.part_bytes = kChunk * sources,
              .dtype = type.dtype,
              .accumulate = accumulate,
              .reduce = reduce};
    cluster.restart();
    const bool ready = check_call(made.plan.program, call, diagnostics) &&
                       cluster.prepare(call, false, true, diagnostics);
    INFO(render_text(diagnostics, {}));
    REQUIRE(ready);
    KeptCall kept(cluster);
    Dice dice(seed + 1);
    for (uint32_t r = 0; r < 2; ++r) {
      const uint64_t bytes = cluster.bytes(r, kInput);
      const bool wide = exact && is_float && seed % 2 == 0 && sources > 2;
      kept.inputs[r] = wide ? wide_chunks(bytes, dice) : rounding_chunks(bytes, type, dice);
    }
    REQUIRE(cluster.run(1, seed % 4, kept, diagnostics));
    for (uint32_t r = 0; r < 2; ++r) {
      const ChunkBytes expected = sum_of(r, kept, type.dtype, accumulate, reduce);
      const auto is_expected = [&](const ChunkBytes& output, size_t from) {
        return same_elements(type.dtype, std::span(output).subspan(from, expected.size()),
                             expected);
      };
      if (!is_expected(kept.outputs[r], 0)) FAIL("rank " << r);
      const ChunkBytes& other = kept.outputs[1 - r];
      if (made.sends && !is_expected(other, other.size() / 2)) {
        FAIL("rank " << r << " at the other one");
      }
    }
  }

  ChunkBytes sum_of(uint32_t rank, const KeptCall& kept, Dtype dtype, Dtype accumulate,
                    ReduceOp reduce) const {
    std::vector<ChunkBytes> rows;
    for (const CallerChunk& place : made.sources[rank]) {
      const ChunkBytes& input = kept.inputs[place.rank];
      const size_t chunk = input.size() / sources;
      const auto begin = input.begin() + static_cast<std::ptrdiff_t>(place.chunk * chunk);
      rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(chunk));
    }
    const uint32_t divisor = reduce == ReduceOp::avg ? sources : 1;
    const auto by_definition =
        summation == Summation::exact && sources > 2 ? reduce_exactly : reduce_as_tree;
    return by_definition(dtype, accumulate, reduce, divisor, rows);
  }
};

/// Every op, format, type and reduction, of so many sources.
void try_all(Summation summation, std::span<const uint32_t> sizes) {
  uint64_t seed = 0;
  for (const OpKind kind : tree_ops()) {
    for (const PacketFormat format : formats_of_tree(kind)) {
      for (const uint32_t n : sizes) {
        TreeTrial trial(kind, format, n, summation);
        for (const DtypeInfo& type : dtype_table()) {
          if (is_sentinel(format) && type.kind != DtypeKind::kFloat) continue;
          for (const ReduceOp reduce : kTreeReductions) {
            INFO(info(kind).name << ' ' << name(format) << ' ' << n << ' ' << type.name << ' '
                                 << name(reduce));
            trial.run(type, type.accumulate, reduce, seed++);
          }
        }
      }
    }
  }
}

/// Plain sums of so many sources in every type that they may be made in.
void try_accumulations(Summation summation, std::span<const uint32_t> sizes) {
  uint64_t seed = 0;
  for (const uint32_t n : sizes) {
    TreeTrial trial(OpKind::reduce, PacketFormat::none, n, summation);
    for (const DtypeInfo& type : dtype_table()) {
      for (const DtypeInfo& sums : dtype_table()) {
        if (!can_accumulate(type.dtype, sums.dtype)) continue;
        for (const ReduceOp reduce : kTreeReductions) {
          INFO(n << ' ' << type.name << " in " << sums.name << ' ' << name(reduce));
          trial.run(type, sums.dtype, reduce, seed++);
        }
      }
    }
  }
}

TEST_CASE("a tree gives what its definition says") { try_all(Summation::tree, kTreeSizes); }

TEST_CASE("a tree in every accumulation type") { try_accumulations(Summation::tree, kTreeSizes); }

TEST_CASE("an exact sum gives what its definition says") {
  try_all(Summation::exact, std::array{2u, 3u, 8u});
}

TEST_CASE("an exact sum in every accumulation type") {
  try_accumulations(Summation::exact, std::array{3u, 16u, 200u});
}

TEST_CASE("the largest tree") {
  TreeTrial trial(OpKind::reduce, PacketFormat::none, kMaxTreeSources);
  const DtypeInfo& type = info(Dtype::f32);
  trial.run(type, type.accumulate, ReduceOp::sum, 1);
}

TEST_CASE("the trees of 2, 4 and 8 sources are parts of one another, and no lines") {
  Dice dice(7);
  const DtypeInfo& type = info(Dtype::f32);
  std::vector<ChunkBytes> rows;
  for (uint32_t i = 0; i < 8; ++i) rows.push_back(rounding_chunks(4096, type, dice));
  const auto sum = [](std::span<const ChunkBytes> some) {
    return reduce_as_tree(Dtype::f32, Dtype::f32, ReduceOp::sum, 1, some);
  };
  const std::span<const ChunkBytes> all = rows;
  const std::vector<ChunkBytes> halves = {sum(all.first(4)), sum(all.subspan(4))};
  std::vector<ChunkBytes> pairs;
  for (uint32_t i = 0; i < 8; i += 2) pairs.push_back(sum(all.subspan(i, 2)));
  CHECK(sum(halves) == sum(all));
  CHECK(sum(pairs) == sum(all));
  ChunkBytes line = rows[0];
  for (uint32_t i = 1; i < 8; ++i) line = sum(std::vector<ChunkBytes>{line, rows[i]});
  CHECK(line != sum(all));
}

}  // namespace
}  // namespace mscclc
