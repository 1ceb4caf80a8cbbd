// Calls at other places than one that was packed: they get the lines that packing them gives, and
// what differs in more than places is packed.
#include "runtime/core/communicator/compiled_kernels/moved_calls.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "executor/compiled/fused_rows.h"
#include "executor/compiled/shape.h"
#include "executor/cpu/dice.h"
#include "executor/lower.h"
#include "executor/rows/externals.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {
namespace {

using device::LaunchPlan;
using Places = BlockPrograms::Places;

/// An address for each of so many things of a kind, all far apart.
uint8_t* far_place(uint64_t i, uint64_t kind) {
  return reinterpret_cast<uint8_t*>((i + 1) << 44 | kind << 40);
}

/// Where a call's memory lies.
struct Memory {
  std::vector<device::BaseAddress> bases;
  std::vector<device::ChannelEnd> ends;
  std::vector<Places::External> externals;
  std::vector<Places::Flags> flags;
  Places places() const {
    return {.bases = bases, .ends = ends, .externals = externals, .flags = flags};
  }
};

/// A rank of a plan, fitted to a call.
class FittedCalls {
 public:
  FittedCalls(const KernelPlan& plan, uint32_t rank) : plan_(*plan.program), rank_(rank) {
    Diagnostics diagnostics;
    shape_ = CompiledShape::of(plan_, rank, diagnostics);
    REQUIRE(lower_rank(plan_, rank, lowered_, diagnostics, compiled_row_steps(plan_)));
    launch_.blocks = plan_.ranks[rank].blocks;
  }
  /// False: no kernel does its blocks.
  bool has_shape() const { return shape_.has_value(); }

  /// False: the plan does no call of this size.
  bool fit(Call call) {
    Diagnostics diagnostics;
    if (!check_call(plan_, call, diagnostics)) return false;
    static_cast<Call&>(launch_) = call;
    lowered_.align = plan_.granule(call.dtype);
    chunking_.emplace(plan_.contract, call.part_bytes, lowered_.align);
    return fit_rank_to_size(lowered_, plan_, rank_, *chunking_, *chunking_, diagnostics);
  }

  /// The caller's memory lies elsewhere for each seed, at whole lines.
  Memory memory(uint64_t seed, bool in_place) const {
    Memory made;
    for (const device::Base& base : lowered_.bases) {
      made.bases.push_back(
          {address(base.rank, base.buffer, seed, in_place), base.copy_stride, base.copies});
    }
    for (const Channel& c : plan_.ranks[rank_].channels) {
      const auto at = reinterpret_cast<uint64_t*>(far_place(made.ends.size(), 4));
      made.ends.push_back({at, at + 1, 0, c.kind == ChannelKind::port ? 1u : 0u});
    }
    for (const FlagArray& array : plan_.flags) {
      const auto first = static_cast<uint32_t>(64 * made.flags.size());
      made.flags.push_back({far_place(made.flags.size(), 5), first, array.raises});
    }
    if (plan_.contract.columns == 0) return made;
    for (const rows::ExternalLayout& layout :
         rows::lay_out_externals(plan_, rank_, *chunking_, launch_.dtype)) {
      const size_t e = made.externals.size();
      const bool is_value = plan_.externals[e].kind == rows::Kind::scalar && e % 2 == 1;
      Dice dice(seed * 64 + e);
      uint8_t* const at = is_value ? reinterpret_cast<uint8_t*>(uint64_t{dice.below(1u << 31)})
                                   : far_place(e, 6) + 16 * uint64_t{dice.below(1u << 20)};
      made.externals.push_back(
          {at, layout.first_row, is_value || layout.shared ? 0 : layout.row_bytes, is_value});
    }
    return made;
  }

  /// As runtime/core/communicator/bind.cc.
  bool pack(const Places& places, std::vector<CompiledLine>& lines) {
    ++packed_;
    return programs_.pack(lowered_, places, WaitSlots(lowered_)) &&
           shape_->takes(programs_, launch_.dtype, launch_.accumulate, launch_.reduce) &&
           shape_->fill(programs_, lines);
  }
  MovedCalls::Fill fill() {
    return [this](const Places& at, std::vector<CompiledLine>& lines) { return pack(at, lines); };
  }
  const LaunchPlan& launch() const { return launch_; }
  /// How often it was packed.
  uint32_t packed() const { return packed_; }

 private:
  uint8_t* address(uint32_t rank, uint32_t buffer, uint64_t seed, bool in_place) const {
    if (buffer >= kFirstScratch) return far_place(rank, 3) + (uint64_t{buffer} << 32);
    const CallerBuffers callers = caller_buffers(plan_.contract, *chunking_, rank, in_place);
    const bool is_inner = callers.shared && buffer != callers.outer;
    const uint32_t outer = is_inner ? callers.outer : buffer;
    Dice dice((seed * 64 + rank) * 2 + outer);
    return far_place(rank, 1 + outer) + 128 * uint64_t{dice.below(1u << 20)} +
           (is_inner ? callers.inner_offset : 0);
  }

  const Program& plan_;
  const uint32_t rank_;
  std::optional<CompiledShape> shape_;
  RankProgram lowered_;
  std::optional<Chunking> chunking_;
  LaunchPlan launch_;
  BlockPrograms programs_;
  uint32_t packed_ = 0;
};

constexpr int kKernel = 0;  ///< stands for one

/// Packs a call, and moves it to other places. False: no kernel takes it, or its addresses are not
/// to be found.
bool moves(FittedCalls& calls, bool in_place) {
  const Memory first = calls.memory(0, in_place);
  CompiledCall compiled;
  compiled.kernel = &kKernel;
  if (!calls.pack(first.places(), compiled.lines)) return false;
  MovedCalls moved;
  const Places at = first.places();
  moved.keep({at, 0, in_place}, calls.launch(), compiled);
  for (const uint64_t seed : {1, 2, 3}) {
    const Memory other = calls.memory(seed, in_place);
    const Places there = other.places();
    std::vector<CompiledLine> packed;
    REQUIRE(calls.pack(there, packed));
    LaunchPlan launch = calls.launch();
    CompiledCall made;
    if (!moved.move({there, 0, in_place}, calls.fill(), launch, made)) return false;
    CHECK(made.kernel == &kKernel);
    CHECK(made.lines == packed);
    CHECK(launch.blocks == calls.launch().blocks);
  }
  return true;
}

/// Calls of all ranks, of several sizes: how many were moved, and which plans have some that were
/// not, though kernels take them.
struct Tried {
  uint64_t moved = 0;
  std::set<std::string> left;

  void add(const KernelPlan& plan) {
    const Contract& contract = plan.program->contract;
    std::vector<uint64_t> elements = {uint64_t{1} << 12, uint64_t{1} << 18};
    if (!plan.rows.empty()) elements.clear();
    for (const uint64_t rows : plan.rows) elements.push_back(rows * contract.columns);
    for (uint32_t r = 0; r < contract.ranks; ++r) {
      FittedCalls calls(plan, r);
      if (!calls.has_shape()) continue;
      const Dtype dtype = plan.dtypes[r % plan.dtypes.size()];
      for (const uint64_t count : elements) {
        const uint64_t part = Chunking::part_for_message(contract, count * info(dtype).bytes,
                                                         unit_of_part(*plan.program, dtype));
        if (!calls.fit({part, dtype, info(dtype).accumulate})) continue;
        for (const bool in_place : {false, true}) {
          if (contract.in_place == (in_place ? InPlace::no : InPlace::yes)) continue;
          CAPTURE(plan.name, r, count, in_place);
          std::vector<CompiledLine> lines;
          if (!calls.pack(calls.memory(0, in_place).places(), lines) || lines.empty()) continue;
          const bool was_moved = moves(calls, in_place);
          moved += was_moved ? 1 : 0;
          if (!was_moved) left.insert(plan.name);
        }
      }
    }
  }
};

TEST_CASE("moved calls: of programs with row functions") {
  Tried tried;
  for (const KernelPlan& plan : fused_row_plans()) tried.add(plan);
  for (const KernelPlan& plan : uneven_row_plans()) tried.add(plan);
  CHECK(tried.moved > 1000);
  CHECK(tried.left == std::set<std::string>{});
}

TEST_CASE("moved calls: of the library's programs, of every op, and of random plans") {
  Tried tried;
  for (const KernelPlan& plan : kernel_plans()) tried.add(plan);
  for (const KernelPlan& plan : proved_plans()) tried.add(plan);
  CHECK(tried.moved > 1000);
  CHECK(tried.left == std::set<std::string>{});
}

/// A call that is kept, and others beside it.
struct Kept {
  Kept()
      : plan(fused_row_plans().front()), calls(plan, 0), memory((fit(), calls.memory(0, false))) {
    compiled.kernel = &kKernel;
    REQUIRE(calls.pack(memory.places(), compiled.lines));
    keep(memory);
  }
  void fit() {
    const Dtype dtype = plan.dtypes[0];
    const uint64_t columns = plan.program->contract.columns;
    const uint64_t bytes = 8 * plan.program->contract.ranks * columns * info(dtype).bytes;
    REQUIRE(calls.fit({bytes, dtype, info(dtype).accumulate}));
  }
  void keep(const Memory& at) {
    const Places places = at.places();
    moved.keep({places, 0, false}, calls.launch(), compiled);
  }
  bool moves(const Memory& at, const LaunchPlan& like, uint64_t pitch = 0, bool in_place = false) {
    return moves(at, like, calls.fill(), pitch, in_place);
  }
  bool moves(const Memory& at, const LaunchPlan& like, const MovedCalls::Fill& fill,
             uint64_t pitch = 0, bool in_place = false) {
    LaunchPlan launch = like;
    CompiledCall made;
    const Places places = at.places();
    return moved.move({places, pitch, in_place}, fill, launch, made);
  }
  KernelPlan plan;
  FittedCalls calls;
  Memory memory;
  CompiledCall compiled;
  MovedCalls moved;
};

TEST_CASE("moved calls: what differs in more than places is packed") {
  Kept kept;
  const LaunchPlan& like = kept.calls.launch();
  const auto other = [&](auto change) {
    LaunchPlan launch = like;
    change(launch);
    return kept.moves(kept.memory, launch);
  };
  CHECK(kept.moves(kept.memory, like));
  CHECK_FALSE(other([](LaunchPlan& l) { l.part_bytes *= 2; }));
  CHECK_FALSE(other([](LaunchPlan& l) { l.dtype = Dtype::f64; }));
  CHECK_FALSE(other([](LaunchPlan& l) { l.accumulate = Dtype::f64; }));
  CHECK_FALSE(other([](LaunchPlan& l) { l.reduce = ReduceOp::avg; }));
  CHECK_FALSE(other([](LaunchPlan& l) { l.previous_allows_early = true; }));
  CHECK_FALSE(other([](LaunchPlan& l) { l.any_order = true; }));
  CHECK_FALSE(kept.moves(kept.memory, like, 1 << 20));
  CHECK_FALSE(kept.moves(kept.memory, like, 0, true));
  // A buffer that begins elsewhere in a line, and a value where there was memory.
  for (const uint64_t by : {4, 16, 64}) {
    Memory shifted = kept.memory;
    shifted.bases[0].address += by;
    CHECK_FALSE(kept.moves(shifted, like));
  }
  Memory value = kept.memory;
  REQUIRE(!value.externals.empty());
  value.externals.back().is_value = !value.externals.back().is_value;
  CHECK_FALSE(kept.moves(value, like));
  CHECK(kept.moves(kept.memory, like));
}

TEST_CASE("moved calls: a launch says of itself what the kept one said") {
  Kept kept;
  LaunchPlan launch = kept.calls.launch();
  launch.programs = reinterpret_cast<const uint8_t*>(&launch);
  launch.threads = 96;
  launch.most_blocks = 7;
  launch.uses = 5;
  const Places places = kept.memory.places();
  kept.compiled.lines_at = &launch;
  kept.moved.keep({places, 0, false}, launch, kept.compiled);
  LaunchPlan made = kept.calls.launch();
  CompiledCall call;
  REQUIRE(kept.moved.move({places, 0, false}, kept.calls.fill(), made, call));
  CHECK(made.threads == 96);
  CHECK(made.most_blocks == 7);
  CHECK(made.uses == 5);
  CHECK(made.programs == nullptr);
  CHECK(call.lines_at == nullptr);
  CHECK(call.arguments() == call.lines.data());
}

TEST_CASE("moved calls: a call is packed once more for all that are moved") {
  Kept kept;
  const Memory other = kept.calls.memory(1, false);
  const uint32_t before = kept.calls.packed();
  CHECK(kept.moves(kept.memory, kept.calls.launch()));
  const uint32_t each = kAssertsPreconditions ? 1 : 0;  // which look whether the lines are right
  CHECK(kept.calls.packed() == before + 1 + each);
  CHECK(kept.moves(other, kept.calls.launch()));
  CHECK(kept.calls.packed() == before + 1 + 2 * each);
}

TEST_CASE("moved calls: where addresses are not to be found, calls are packed") {
  Kept kept;
  for (const uint32_t word : {0, 1}) {
    // A line that is neither the kept one nor the same at another address.
    const MovedCalls::Fill fill = [&](const Places& at, std::vector<CompiledLine>& lines) {
      const bool filled = kept.calls.pack(at, lines);
      lines.back().words[word] += 1;
      return filled;
    };
    CHECK_FALSE(kept.moves(kept.memory, kept.calls.launch(), fill));
  }
  const MovedCalls::Fill none = [](const Places&, std::vector<CompiledLine>&) { return false; };
  CHECK_FALSE(kept.moves(kept.memory, kept.calls.launch(), none));
  CHECK(kept.moves(kept.memory, kept.calls.launch()));
}

}  // namespace
}  // namespace mscclc
