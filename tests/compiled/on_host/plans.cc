#include "tests/compiled/on_host/plans.h"

#include <cstdlib>

#include "compiler/compile.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"
#include "executor/testing/tree_plans.h"
#include "ir/verify/row_faults.h"
#include "tests/engines/coinciding_programs.h"
#include "tests/library/library.h"
#include "tests/overlap/flag_plans.h"
#include "tests/rows/row_plans.h"

namespace mscclc {
namespace {

using namespace testing;

const std::vector<Dtype> kOne = {Dtype::f32};
const std::vector<Dtype> kAll = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2,
                                 Dtype::i32, Dtype::u32, Dtype::i8,   Dtype::u8};

const std::vector<Dtype> kFloats = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2};

/// A pipeline whose blocks count the signals that they take, with a buffer of two units.
TestProgram relay() {
  constexpr uint32_t kUnit = 1024;
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, ChannelKind::memory);
  t.program.loops.push_back({.unit = kUnit, .chunks = 1});
  const auto looped = [](Op& op) { op.loop = 0; };
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t stage = t.buffer(r, "stage", 1);
    t.program.ranks[r].buffers[stage].units = 2;
    t.program.ranks[r].buffers[stage].unit = kUnit;
    looped(add_op(t, r, 0, OpKind::put, {far(0, stage, 0)}, {local(kInput, 0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
    looped(add_op(t, r, 0, OpKind::signal, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::wait, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
    looped(add_op(t, r, 0, OpKind::copy, {local(kOutput, 0)}, {local(stage, 0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
    looped(add_op(t, r, 0, OpKind::signal, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::wait, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
  }
  return t;
}

/// Two ranks swap so many chunks one by one that lines are too many for the parameters of a launch.
TestProgram many_steps() {
  constexpr uint32_t kBlocks = 6, kEach = 60;
  TestProgram t(2, kBlocks * kEach);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", kBlocks * kEach, PacketFormat::LL16, 2);
    for (uint32_t b = 0; b < kBlocks; ++b) {
      for (uint32_t c = b * kEach; c < (b + 1) * kEach; ++c) {
        add_op(t, r, b, OpKind::put_packets, {far(0, inbox, c)}, {local(kInput, c)});
      }
      for (uint32_t c = b * kEach; c < (b + 1) * kEach; ++c) {
        add_op(t, r, b, OpKind::unpack_packets, {local(kOutput, c)}, {local(inbox, c)});
      }
    }
  }
  return t;
}

void add(std::vector<KernelPlan>& plans, const std::string& name, const TestProgram& t,
         const std::vector<Dtype>& dtypes) {
  plans.push_back({name, std::make_shared<const Program>(t.program), dtypes});
}

std::vector<Dtype> types_in(PacketFormat format) {
  std::vector<Dtype> types;
  for (const DtypeInfo& type : dtype_table()) {
    if (!is_sentinel(format) || type.kind == DtypeKind::kFloat) types.push_back(type.dtype);
  }
  return types;
}

void add_whole_plans(std::vector<KernelPlan>& plans) {
  for (const PacketFormatInfo& format : packet_formats()) {
    const std::string in = " in " + std::string(format.name);
    const bool floats = is_sentinel(format.format);
    add(plans, "one-shot of 4" + in, one_shot(4, 3, format.format), floats ? kFloats : kAll);
    add(plans, "one-shot of 7" + in, one_shot(7, 2, format.format), kOne);
    add(plans, "exchange" + in, exchange_of_packets(3, format.format, true), kOne);
    if (!is_sentinel(format.format)) {
      add(plans, "three copies" + in, one_shot(2, 2, format.format, 3), kOne);
      add(plans, "broadcast" + in, broadcast_of_packets(4, 3, format.format), kOne);
    }
    if (format.goes_everywhere()) {
      add(plans, "two-shot by ports" + in, with_syncs(two_shot_by_ports(4, format.format)), kOne);
    }
  }
  for (const PacketFormat format : kFormatsOfSumsApart) {
    add(plans, kSumsApart + std::string(name(format)), sums_apart(format), kOne);
  }
  add(plans, "two-shot", with_syncs(two_shot(4)), kAll);
  add(plans, "relay", relay(), kOne);
  add(plans, "many steps", many_steps(), kOne);
}

/// Sums as trees, of numbers of sources whose trees have other shapes.
void add_trees(std::vector<KernelPlan>& plans) {
  const auto add_tree = [&](OpKind kind, PacketFormat format, uint32_t sources,
                            const std::vector<Dtype>& dtypes) {
    const std::string in =
        format == PacketFormat::none ? "" : " in " + std::string(mscclc::name(format));
    add(plans, "tree of " + std::to_string(sources) + " by " + std::string(info(kind).name) + in,
        tree_plan(kind, format, sources).plan, dtypes);
  };
  for (const uint32_t sources : {4, 5, 6, 8}) {
    add_tree(OpKind::reduce, PacketFormat::none, sources, kOne);
  }
  add_tree(OpKind::reduce, PacketFormat::none, 7, kAll);
  add_tree(OpKind::read_reduce_send, PacketFormat::none, 16, kOne);
  for (const PacketFormatInfo& format : packet_formats()) {
    add_tree(OpKind::reduce_packets, format.format, 9, kOne);
    add_tree(OpKind::reduce_copy_send_packets, format.format, 5, kOne);
  }
  add_tree(OpKind::reduce_send_packets, PacketFormat::sentinel, 16, kFloats);
}

/// Exact sums.
void add_exact(std::vector<KernelPlan>& plans) {
  const auto add_one = [&](OpKind kind, PacketFormat format, uint32_t sources,
                           const std::vector<Dtype>& dtypes) {
    add(plans,
        "exact sum of " + std::to_string(sources) + " by " + std::string(info(kind).name) + " in " +
            std::string(mscclc::name(format)),
        tree_plan(kind, format, sources, Summation::exact).plan, dtypes);
  };
  for (const uint32_t sources : {3, 4, 9}) {
    add_one(OpKind::reduce, PacketFormat::none, sources, sources == 3 ? kAll : kOne);
  }
  add_one(OpKind::read_reduce_send, PacketFormat::none, 8, kFloats);
  for (const PacketFormatInfo& format : packet_formats()) {
    add_one(OpKind::reduce_packets, format.format, 5, kOne);
  }
  add_one(OpKind::reduce_send_packets, PacketFormat::sentinel, 8, kFloats);
}

/// Row functions: of rows that fill the threads of a block, of longer ones, and of shorter ones.
void add_rows(std::vector<KernelPlan>& plans) {
  const std::vector<Dtype> types = {Dtype::f32, Dtype::f16, Dtype::bf16};
  for (const std::string& name : row_programs()) {
    for (const char* const columns : {"64", "1000", "2880"}) {
      const std::string ranks = columns == std::string("1000") ? "3" : "2";
      plans.push_back({name + " of " + columns + " columns",
                       std::make_shared<const Program>(
                           row_plan(name, {{"R", ranks}, {"N", columns}}, "launch threads: 64\n")),
                       types,
                       {5 * std::stoul(ranks), 13 * std::stoul(ranks)}});
    }
  }
}

/// Buffers whose rows are of another type than the call's.
void add_row_types(std::vector<KernelPlan>& plans) {
  for (const uint32_t columns : {64u, 2880u}) {
    Program program = row_plan("allreduce_quantized", {}, "launch threads: 64\n");
    if (fix_columns(program, columns)) std::abort();
    plans.push_back({"allreduce_quantized of " + std::to_string(columns) + " columns",
                     std::make_shared<const Program>(std::move(program)),
                     {Dtype::f32, Dtype::f16, Dtype::bf16}});
  }
}

/// Each program at the first and the last of its worlds with up to 4 ranks.
void add_library(std::vector<KernelPlan>& plans) {
  for (const LibraryProgram& entry : library()) {
    std::vector<KernelPlan> small;
    for (const Defines& defines : entry.worlds) {
      auto world = std::make_shared<const CompiledWorld>(entry.name, defines);
      if (!world->errors().empty() || world->program().ranks.size() > 4) continue;
      small.push_back(
          {std::string(entry.name) + " " + text(defines), {world, &world->program()}, kOne});
    }
    if (small.empty()) continue;
    plans.push_back(small.front());
    if (small.size() > 1) plans.push_back(small.back());
  }
}

void add_flags(std::vector<KernelPlan>& plans) {
  for (const char* const name : kOverlapPrograms) {
    plans.push_back(
        {name,
         std::make_shared<const Program>(flag_plan(overlap_text(name), {{"R", "3"}, {"T", "64"}})),
         kOne});
  }
  std::string wide = overlap_text("gemm_allreduce");
  wide.replace(wide.find(", raises: K"), 11, ", raises: K, bits: 64, scope: system");
  plans.push_back(
      {"gemm_allreduce of wide flags",
       std::make_shared<const Program>(flag_plan(wide, {{"R", "2"}, {"K", "3"}, {"T", "64"}})),
       kOne});
  std::string raised = overlap_text("allgather_gemm");
  raised.replace(raised.find("of: output"), 10, "of: output, bits: 64, scope: system");
  plans.push_back({"allgather_gemm of wide flags",
                   std::make_shared<const Program>(flag_plan(raised, {{"R", "2"}, {"T", "64"}})),
                   kOne});
}

/// Operands that coincide, where neighbouring ops are one step, too.
void add_coinciding(std::vector<KernelPlan>& plans) {
  for (const CoincidingProgram& p : coinciding_programs()) {
    Sources sources;
    Diagnostics diagnostics;
    auto program = compile(sources, sources.add("test.mscl", p.text), {}, {}, diagnostics);
    if (!program) std::abort();
    plans.push_back({.name = p.name,
                     .program = std::make_shared<const Program>(std::move(*program)),
                     .dtypes = kOne,
                     .in_place = p.in_place});
  }
}

}  // namespace

std::vector<KernelPlan> kernel_plans() {
  std::vector<KernelPlan> plans;
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const std::string in = plan.packets ? " in " + std::string(name(format)) : "";
      add(plans, plan.name + in, plan.build(format), types_in(format));
      plans.back().of_op = true;
    }
  }
  add_trees(plans);
  add_exact(plans);
  add_library(plans);
  add_coinciding(plans);
  for (KernelPlan& plan : plans) plan.on_engines = true;
  add_whole_plans(plans);
  add_row_types(plans);
  add_rows(plans);
  add_flags(plans);
  return plans;
}

}  // namespace mscclc
