// Which forms of steps (executor/block_programs.h) the plans have that tests run, by engine: read
// from the programs that launches are given. The interpreters run all plans of tests/engines, and
// every other launch of the others; kernels what they take.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>

#include "executor/compiled/fused_rows.h"
#include "executor/compiled/shape.h"
#include "executor/cuda/testing/same_bits.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;
using cuda::SameBits;
using device::Step;
using device::StepFamily;
using device::StepKind;

/// A step, with what belongs to it.
struct Seen {
  const Step& step;
  const device::Steps& program;

  uint32_t operands() const {
    const uint32_t own = step.count * (uint32_t{step.dsts} + step.srcs);
    const bool more = info(step.kind).family == StepFamily::rows && step.kind != StepKind::apply;
    return moves_data(step.kind) ? own + (more ? step.parts : 0) : 0;
  }
  uint32_t flags(uint32_t k) const { return program.operands[step.first + k].flags; }
  bool packets(uint32_t k) const { return (flags(k) & device::kPackets) != 0; }
  /// Of move `i`: is its first destination, or its first source, in packets?
  bool to_packets(uint32_t i) const { return packets(i * (step.dsts + step.srcs)); }
  bool from_packets(uint32_t i) const { return packets(i * (step.dsts + step.srcs) + step.dsts); }
  bool to(bool kept) const {
    for (uint32_t k = 0; k < step.dsts; ++k) {
      if (packets(k) == kept) return true;
    }
    return false;
  }
  bool from(bool kept) const {
    for (uint32_t k = step.dsts; k < uint32_t{step.dsts} + step.srcs; ++k) {
      if (packets(k) == kept) return true;
    }
    return false;
  }
  bool has(uint8_t flag) const { return (step.flags & flag) != 0; }
  template <class Pick>
  bool any_operand(Pick pick) const {
    for (uint32_t k = 0; k < operands(); ++k) {
      if (pick(step.first + k)) return true;
    }
    return false;
  }
  template <class Pick>
  bool any_target(Pick pick) const {
    for (uint32_t i = 0; i < step.count; ++i) {
      if (pick(program.targets[step.first + i])) return true;
    }
    return false;
  }
};

struct Variant {
  const char* name;
  std::vector<StepKind> kinds;
  bool (*is)(const Seen&);
};

bool is_plain_copy(const Seen& s, uint32_t i) { return !s.to_packets(i) && !s.from_packets(i); }

/// What the lowering, or a machine, goes about in ways of its own.
const std::vector<Variant>& variants() {
  using enum StepKind;
  static const std::vector<Variant> all = {
      {"of several moves", {copy, move_packets}, [](const Seen& s) { return s.step.count > 1; }},
      {"to several places",
       {reduce, move_packets, reduce_packets, reduce_packets_apply},
       [](const Seen& s) { return s.step.dsts > 1; }},
      {"by the proxy", {copy, signal}, [](const Seen& s) { return s.has(device::kPosts); }},
      {"with its signals", {copy}, [](const Seen& s) { return s.has(device::kWithSignals); }},
      {"in rounds",
       {copy, reduce, signal, wait, release, acquire, sync},
       [](const Seen& s) { return s.has(device::kInLoop); }},
      {"in rounds, a part",
       {copy},
       [](const Seen& s) { return s.has(device::kInLoop) && s.step.parts > 1; }},
      {"through units",
       {copy},
       [](const Seen& s) {
         return s.any_operand([&](uint32_t k) {
           return s.program.extras != nullptr && s.program.extras[k].units != 0;
         });
       }},
      {"as a tree", {reduce, reduce_packets}, [](const Seen& s) { return s.has(device::kTree); }},
      {"exact", {reduce, reduce_packets}, [](const Seen& s) { return adds_exactly(s.step); }},
      {"complete",
       {reduce, reduce_packets, switch_reduce, reduce_packets_apply},
       [](const Seen& s) { return s.has(device::kComplete); }},
      {"relaxed", {signal, wait}, [](const Seen& s) { return s.has(device::kRelaxed); }},
      {"counted by the call",
       {wait},
       [](const Seen& s) {
         return s.any_target([](const auto& t) { return (t.flags & device::kCounted) != 0; });
       }},
      {"counted by its block",
       {wait},
       [](const Seen& s) {
         return s.any_target([](const auto& t) {
           return (t.flags & device::kCounted) == 0 && t.slot != device::kNoSlot;
         });
       }},
      {"makes packets",
       {move_packets},
       [](const Seen& s) { return s.to_packets(0) && !s.from_packets(0); }},
      {"unpacks",
       {move_packets},
       [](const Seen& s) { return !s.to_packets(0) && s.from_packets(0); }},
      {"hands packets on",
       {move_packets},
       [](const Seen& s) { return s.to_packets(0) && s.from_packets(0); }},
      {"a copy before it unpacks",
       {move_packets},
       [](const Seen& s) { return s.step.count > 1 && is_plain_copy(s, 0); }},
      {"a copy after it makes packets",
       {move_packets},
       [](const Seen& s) {
         return s.step.count > 1 && s.to_packets(0) && is_plain_copy(s, s.step.count - 1);
       }},
      {"a copy as one of the places",
       {move_packets},
       [](const Seen& s) { return s.step.count == 1 && s.to(true) && s.to(false); }},
      {"to packets", {reduce_packets}, [](const Seen& s) { return s.to(true); }},
      {"to plain data", {reduce_packets}, [](const Seen& s) { return s.to(false); }},
      {"of plain data, too", {reduce_packets}, [](const Seen& s) { return s.from(false); }},
      {"of three copies",
       {move_packets, reduce_packets},
       [](const Seen& s) {
         return s.any_operand([&](uint32_t k) { return s.program.operands[k].copies > 2; });
       }},
      {"of 64 bits",
       {await, notify},
       [](const Seen& s) {
         return s.any_target([](const auto& t) { return (t.flags & device::kWideFlag) != 0; });
       }},
      {"of the system",
       {await, notify},
       [](const Seen& s) {
         return s.any_target([](const auto& t) { return (t.flags & device::kSystemFlag) != 0; });
       }},
  };
  return all;
}

bool has_formats(StepKind kind) {
  const StepFamily family = info(kind).family;
  return family == StepFamily::packets || family == StepFamily::sent ||
         kind == StepKind::switch_broadcast_packets || kind == StepKind::reduce_packets_apply;
}

std::string form(StepKind kind, PacketFormat format, const char* variant) {
  std::string text(info(kind).name);
  if (has_formats(kind)) text += " in " + std::string(name(format));
  return *variant == 0 ? text : text + ", " + variant;
}

/// No plan can have it, or none has.
bool is_impossible(StepKind kind, const PacketFormatInfo& format, std::string_view variant) {
  if (info(kind).family == StepFamily::sent && !format.goes_everywhere()) return true;
  // Rows are not whole lines: a sum of these is stored first (executor/compiled/fused_rows.h).
  if (kind == StepKind::reduce_packets_apply && format.format == PacketFormat::LL128) return true;
  // No program has it yet: fused sums of sentinels are stored in one place.
  if (kind == StepKind::reduce_packets_apply && is_sentinel(format.format) &&
      variant == "to several places") {
    return true;
  }
  const bool beside = variant.find("a copy ") != variant.npos || variant == "of three copies";
  return beside && is_sentinel(format.format);
}

enum class Runs : uint8_t { interpreter, fast, short_, kernel };
constexpr Runs kRuns[] = {Runs::interpreter, Runs::fast, Runs::short_, Runs::kernel};
constexpr const char* kNames[] = {"interpreter", "fast", "short", "compiled"};

/// Does the engine run steps of that form? (executor/cuda/kernels.cuh, executor/short_program.h,
/// executor/compiled/shape.h.)
bool can_run(Runs runs, StepKind kind, PacketFormat format, std::string_view variant) {
  const StepFamily family = info(kind).family;
  const bool otherwise = variant == "as a tree" || variant == "exact";
  const bool switched = family == StepFamily::switched, rows = family == StepFamily::rows;
  switch (runs) {
    case Runs::interpreter:
      return !rows;
    case Runs::kernel:
      return !switched;
    case Runs::fast:
      // By ports it sends lines alone.
      return !rows && !switched && !otherwise && family != StepFamily::flags &&
             variant != "of three copies" && variant != "through units" &&
             (family != StepFamily::sent || format == PacketFormat::LL128);
    case Runs::short_:
      if (kind == StepKind::signal) return variant.empty() || variant == "relaxed";
      if (kind == StepKind::wait) {
        return variant.empty() || variant == "relaxed" || variant == "counted by the call";
      }
      return family == StepFamily::packets && !otherwise && variant != "of three copies";
  }
  return false;
}

/// All forms, and which engines run them.
using Forms = std::map<std::string, std::set<Runs>>;

Forms all_forms() {
  Forms all;
  const auto add = [&](StepKind kind, const char* variant) {
    for (const PacketFormatInfo& format : packet_formats()) {
      if (is_impossible(kind, format, variant)) continue;
      std::set<Runs>& by = all[form(kind, format.format, variant)];
      for (const Runs runs : kRuns) {
        if (can_run(runs, kind, format.format, variant)) by.insert(runs);
      }
    }
  };
  for (size_t k = 0; k < device::step_table().size(); ++k) add(static_cast<StepKind>(k), "");
  for (const Variant& variant : variants()) {
    for (const StepKind kind : variant.kinds) add(kind, variant.name);
  }
  return all;
}

/// The forms of a rank's steps.
std::set<std::string> forms_of(const BlockPrograms& programs) {
  std::set<std::string> found;
  const uint8_t* const end = programs.data() + programs.bytes();
  for (const uint8_t* at = programs.data(); at != end; at += programs.stride()) {
    const auto* header = reinterpret_cast<const device::StepHeader*>(at);
    const device::Steps program(header);
    for (uint32_t s = 0; s < header->steps; ++s) {
      const Seen seen{program.steps[s], program};
      const StepKind kind = seen.step.kind;
      found.insert(form(kind, seen.step.format, ""));
      for (const Variant& v : variants()) {
        const bool goes = std::ranges::find(v.kinds, kind) != v.kinds.end();
        if (goes && v.is(seen)) found.insert(form(kind, seen.step.format, v.name));
      }
    }
  }
  return found;
}

class Count {
 public:
  /// Calls of a plan, as tests make them.
  void add(const KernelPlan& plan) {
    const bool rows = !plan.program->functions.empty();
    SameBits both(*plan.program);
    Diagnostics d;
    REQUIRE(both.build(d, compiled_row_steps(*plan.program)));
    const Contract& contract = plan.program->contract;
    const uint64_t each = contract.columns != 0 && !plan.rows.empty() ? contract.columns : 0;
    const uint64_t parts = contract.kind == CollectiveKind::custom ? contract.part_chunks() : 1;
    const uint64_t cut = std::max<uint64_t>(contract.ranks, parts);
    const uint64_t elements =
        each != 0 ? each * plan.rows[0] : 60 * cut * (16 / info(plan.dtypes[0]).bytes);
    const Call call = both.call(elements, plan.dtypes[0]);
    prepare(both, plan, call, Runs::kernel);
    if (rows) return;
    prepare(both, plan, call, Runs::fast);
    if (!plan.on_engines) return;
    prepare(both, plan, call, Runs::interpreter);
    prepare(both, plan, call, Runs::short_);
  }
  const std::set<std::string>& of(Runs runs) { return forms_[runs]; }

 private:
  void prepare(SameBits& both, const KernelPlan& plan, const Call& call, Runs runs) {
    std::set<std::string> here;
    CudaRanks::Options options{.in_place = plan.in_place,
                               .apart = true,
                               .in_short = runs == Runs::short_,
                               .generic = runs == Runs::interpreter,
                               .threads = 32};
    options.compiled_kernel = [&](const CudaRanks::RankCall& of_rank,
                                  const device::LaunchPlan& launch) {
      if (runs != Runs::kernel || takes(plan, of_rank.rank, of_rank.programs, launch)) {
        here.merge(forms_of(of_rank.programs));
      }
      return CudaRanks::Start();
    };
    Call checked = call;
    Diagnostics d;
    if (!check_call(*plan.program, checked, d) || !both.gpu().prepare(checked, options, d)) return;
    Runs by = runs;
    if (runs == Runs::fast && !both.gpu().has_fast_kernel()) by = Runs::interpreter;
    if (runs == Runs::short_ && !both.gpu().in_short()) return;
    forms_[by].merge(here);
  }
  static bool takes(const KernelPlan& plan, uint32_t rank, const BlockPrograms& programs,
                    const device::LaunchPlan& launch) {
    Diagnostics d;
    const auto shape = CompiledShape::of(*plan.program, rank, d);
    std::vector<CompiledLine> lines;
    return shape && shape->takes(programs, launch.dtype, launch.accumulate, launch.reduce) &&
           shape->fill(programs, lines);
  }

  std::map<Runs, std::set<std::string>> forms_;
};

TEST_CASE("every form of a step is run, by every engine that can") {
  Count count;
  for (const KernelPlan& plan : kernel_plans()) count.add(plan);
  for (const KernelPlan& plan : fused_row_plans()) count.add(plan);
  const Forms all = all_forms();
  for (const Runs runs : kRuns) {
    size_t can = 0;
    for (const auto& [one, by] : all) {
      CAPTURE(kNames[static_cast<size_t>(runs)], one);
      CHECK(count.of(runs).contains(one) == by.contains(runs));
      can += by.contains(runs) ? 1 : 0;
    }
    std::cout << kNames[static_cast<size_t>(runs)] << ": " << count.of(runs).size() << " of " << can
              << " forms, of " << all.size() << " that there are\n";
    for (const std::string& one : count.of(runs)) CHECK(all.contains(one));
  }
  for (const auto& [one, by] : all) {
    CAPTURE(one);
    CHECK(!by.empty());
  }
}

}  // namespace
}  // namespace mscclc
