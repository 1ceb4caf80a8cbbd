// What compiled kernels know of a rank, and what a call passes them: every size and address
// of the packed programs, or nothing.
#include "executor/compiled/shape.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <sstream>

#include "executor/compiled/emit.h"
#include "executor/compiled/name.h"
#include "executor/lower.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using device::CompiledExtent;
using device::CompiledLoop;
using device::CompiledRounds;
using device::Step;
using device::StepExtra;
using device::StepHeader;
using device::StepKind;
using device::StepOperand;
using device::Steps;
using device::StepTarget;

/// A rank packed for a call, with a different address for each base.
struct Packed {
  Packed(const Program& program, uint32_t rank, uint64_t part, uint64_t shift = 0) {
    Diagnostics diagnostics;
    REQUIRE(lower_rank(program, rank, lowered, diagnostics));
    const Chunking chunking(program.contract, part, program.launch.align);
    REQUIRE(fit_rank_to_size(lowered, program, rank, chunking, chunking, diagnostics));
    for (size_t i = 0; i < lowered.bases.size(); ++i) {
      const device::Base& base = lowered.bases[i];
      bases.push_back(
          {reinterpret_cast<uint8_t*>(0x100000 * (i + 1) + shift), base.copy_stride, base.copies});
    }
    for (const Channel& c : program.ranks[rank].channels) {
      ends.push_back({reinterpret_cast<uint64_t*>(0x10), reinterpret_cast<uint64_t*>(0x20), 0,
                      c.kind == ChannelKind::port ? 1u : 0u});
    }
    REQUIRE(programs.pack(lowered, {bases, ends}, WaitSlots(lowered)));
  }
  Steps steps(uint32_t block) const {
    return Steps(
        reinterpret_cast<const StepHeader*>(programs.data() + uint64_t{block} * programs.stride()));
  }
  RankProgram lowered;
  std::vector<device::BaseAddress> bases;
  std::vector<device::ChannelEnd> ends;
  BlockPrograms programs;
};

CompiledShape shape_of(const Program& program, uint32_t rank = 0) {
  Diagnostics diagnostics;
  auto shape = CompiledShape::of(program, rank, diagnostics);
  REQUIRE(shape);
  return *std::move(shape);
}

std::string refusal_of(const Program& program) {
  Diagnostics diagnostics;
  if (CompiledShape::of(program, 0, diagnostics)) return "";
  REQUIRE(diagnostics.all().size() == 1);
  const Diagnostic& d = diagnostics.all().front();
  REQUIRE(d.notes.size() == 1);
  return d.code + ": " + d.message + "\n" + d.notes[0].text;
}

template <class T>
T read_line(const CompiledLine* lines, uint32_t line) {
  T value;
  std::memcpy(&value, lines + line, sizeof value);
  return value;
}

/// What the lines of a block say of one step is what its packed program says.
void check_step(const Steps& packed, const Step& step, const CompiledStep& code,
                const CompiledLine* shared, const CompiledLine* own) {
  REQUIRE(step.kind == code.kind);
  const bool data = moves_data(step.kind);
  if (step.kind == StepKind::pipeline) {
    const auto loop = read_line<CompiledLoop>(own, code.extent);
    CHECK(loop.unit == step.begin);
    CHECK(loop.rounds == (step.count == 0 ? 0 : step.end));
    return;
  }
  if (data && (step.flags & device::kInLoop) != 0) {
    const auto rounds = read_line<CompiledRounds>(own, code.extent);
    CHECK(rounds.begin == step.begin);
    CHECK(rounds.end == step.end);
    CHECK(rounds.run_begin == step.run_begin);
    CHECK(rounds.move_end == step.move_end);
    CHECK(rounds.part == step.part);
    CHECK(rounds.parts == step.parts);
    CHECK((rounds.source & ~device::kCompiledFrees) == step.source);
  } else {
    const auto extent = read_line<CompiledExtent>(own, code.extent);
    CHECK(extent.begin == step.begin - step.run_begin);
    CHECK(extent.end == step.end - step.run_begin);
    CHECK(extent.length == step.length);
    CHECK((extent.source & ~device::kCompiledFrees) == step.source);
  }
  CHECK((code.flags & device::kPosts) == (step.flags & device::kPosts));
  for (uint32_t i = 0; !data && i < step.count; ++i) {
    CHECK(std::memcmp(own + code.first + i, packed.targets + step.first + i, sizeof(StepTarget)) ==
          0);
  }
  REQUIRE(code.places.size() == (data ? step.count * (step.dsts + step.srcs) : 0u));
  for (uint32_t k = 0; k < code.places.size(); ++k) {
    const uint32_t place = code.places[k], line = place / device::kPlaceLine;
    const StepOperand& operand = packed.operands[step.first + k];
    const CompiledLine* from = (place & device::kPlaceShared) != 0 ? shared : own;
    CHECK(std::memcmp(from + line, &operand, sizeof operand) == 0);
    CHECK(((place & device::kPlacePackets) != 0) == ((operand.flags & device::kPackets) != 0));
    CHECK(((place & device::kPlaceDoubled) != 0) == (operand.copies == 2));
    CHECK(((place & device::kPlaceCopied) != 0) == (operand.copies > 2));
    StepExtra extra{device::kNoChannel, 0, nullptr};
    if ((place & device::kPlaceExtra) != 0) extra = read_line<StepExtra>(from, line + 1);
    CHECK(extra == (packed.extras == nullptr ? StepExtra{device::kNoChannel, 0, nullptr}
                                             : packed.extras[step.first + k]));
  }
}

/// The same of all steps of a call in which every step moves something.
void check_lines(const CompiledShape& shape, const Packed& call) {
  std::vector<CompiledLine> lines;
  REQUIRE(shape.fill(call.programs, lines));
  REQUIRE(lines.size() == shape.lines());
  for (uint32_t b = 0; b < shape.blocks(); ++b) {
    const Steps packed = call.steps(b);
    const CompiledCode& code = shape.codes()[shape.code_of(b)];
    const CompiledLine* own = lines.data() + shape.shared_lines() + b * shape.own_lines();
    for (uint32_t s = 0; s < code.steps.size(); ++s) {
      CAPTURE(b, s);
      check_step(packed, packed.steps[s], code.steps[s], lines.data(), own);
    }
  }
}

/// Rank 0 sends its input to rank 1 in packets, and adds up what it gets; rank 1 does the same.
/// `blocks` do one chunk each.
TestProgram one_shot(uint32_t blocks, uint32_t threads = 256, uint32_t copies = 2) {
  TestProgram t(2, blocks);
  t.program.launch.threads = threads;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", blocks, PacketFormat::LL16, copies);
    for (uint32_t b = 0; b < blocks; ++b) {
      add_op(t, r, b, OpKind::put_packets, {far(0, inbox, b)}, {local(kInput, b)});
      add_op(t, r, b, OpKind::reduce_packets, {local(kOutput, b)},
             {local(kInput, b), local(inbox, b)});
    }
  }
  return t;
}

TEST_CASE(
    "compiled kernels: a shape is the same for all sizes, and fill() passes all that is not in "
    "it") {
  TestProgram t = one_shot(3);
  const CompiledShape shape = shape_of(t.program);
  CHECK(shape.blocks() == 3);
  CHECK(shape.threads() == 256);
  CHECK(shape.format() == PacketFormat::LL16);
  CHECK(shape.adds());
  REQUIRE(shape.codes().size() == 1);
  const CompiledCode& code = shape.codes()[0];
  REQUIRE(code.steps.size() == 2);
  CHECK(code.leading == 1);  // packets of plain data are sent before any are read
  for (const uint64_t part : {96u, 4800u, 1u << 20}) {
    const Packed call(t.program, 0, part);
    REQUIRE(shape.takes(call.programs, Dtype::f32, Dtype::f32, ReduceOp::sum));
    check_lines(shape, call);
  }
}

TEST_CASE(
    "compiled kernels: calls of buffers with more copies than two are calls of their kernels") {
  TestProgram t = one_shot(3, 256, 3);
  check_lines(shape_of(t.program), Packed(t.program, 0, 4800));
}

TEST_CASE("compiled kernels: blocks that have nothing to do in a call get empty extents") {
  TestProgram t(1, 4);
  t.program.launch.align = 16;
  for (uint32_t b = 0; b < 4; ++b) {
    add_op(t, 0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)});
  }
  const CompiledShape shape = shape_of(t.program);
  const Packed call(t.program, 0, 16);  // one chunk of four has data
  std::vector<CompiledLine> lines;
  REQUIRE(shape.fill(call.programs, lines));
  for (uint32_t b = 0; b < 4; ++b) {
    const CompiledLine* own = lines.data() + shape.shared_lines() + b * shape.own_lines();
    REQUIRE(shape.codes()[0].steps.size() == 1);
    CompiledExtent extent;
    std::memcpy(&extent, own + shape.codes()[0].steps[0].extent, sizeof extent);
    CAPTURE(b);
    CHECK((extent.begin < extent.end) == (b == 0));
  }
}

TEST_CASE("compiled kernels: operands that all blocks have in common stand in one line") {
  // Two blocks read the same chunk of the input.
  TestProgram t(1, 1);
  const uint32_t scratch = t.buffer(0, "scratch", 2);
  for (uint32_t b = 0; b < 2; ++b) {
    add_op(t, 0, b, OpKind::copy, {local(scratch, b)}, {local(kInput, 0)});
  }
  const CompiledShape shape = shape_of(t.program);
  CHECK(shape.shared_lines() == 1);
  CHECK(shape.own_lines() == 2);  // extent, destination
  const Packed call(t.program, 0, 4096);
  std::vector<CompiledLine> lines;
  REQUIRE(shape.fill(call.programs, lines));
  // One whose blocks do not agree is not of this shape.
  TestProgram other(1, 2);
  const uint32_t apart = other.buffer(0, "scratch", 2);
  for (uint32_t b = 0; b < 2; ++b) {
    add_op(other, 0, b, OpKind::copy, {local(apart, b)}, {local(kInput, b)});
  }
  CHECK_FALSE(shape.fill(Packed(other.program, 0, 4096).programs, lines));
}

TEST_CASE("compiled kernels: calls that the code does not do are left alone") {
  TestProgram t = one_shot(2);
  const CompiledShape shape = shape_of(t.program);
  std::vector<CompiledLine> lines;
  const Packed even(t.program, 0, 4096);
  CHECK(shape.takes(even.programs, Dtype::f16, Dtype::f32, ReduceOp::avg));
  CHECK_FALSE(shape.takes(even.programs, Dtype::f16, Dtype::f16, ReduceOp::sum));
  CHECK_FALSE(shape.takes(even.programs, Dtype::f32, Dtype::f32, ReduceOp::max));
  const Packed uneven(t.program, 0, 4100), shifted(t.program, 0, 4096, 4);
  CHECK_FALSE(shape.takes(uneven.programs, Dtype::f32, Dtype::f32, ReduceOp::sum));
  CHECK_FALSE(shape.takes(shifted.programs, Dtype::f32, Dtype::f32, ReduceOp::sum));
  // Programs of another plan.
  TestProgram other = exchange();
  CHECK_FALSE(shape.fill(Packed(other.program, 0, 4096).programs, lines));
  TestProgram fewer = one_shot(2);
  add_op(fewer, 0, 1, OpKind::sync, {});
  CHECK_FALSE(shape.fill(Packed(fewer.program, 0, 4096).programs, lines));
}

TEST_CASE("compiled kernels: names follow plan, shape, type and device code") {
  TestProgram t = one_shot(2), wide = one_shot(2, 512), more = one_shot(3);
  const std::string digest(64, 'd');
  const CompiledShape shape = shape_of(t.program);
  CHECK(shape.key() == shape_of(one_shot(2).program).key());
  CHECK(shape.key() == shape_of(t.program, 1).key());
  CHECK(shape.key() != shape_of(wide.program).key());
  CHECK(shape.key() != shape_of(more.program).key());
  const std::string name = kernel_name(digest, shape, Dtype::bf16);
  CHECK(name.rfind("mscclc_" + std::string(32, 'd') + "_" + shape.key() + "_bf16_", 0) == 0);
  CHECK(name != kernel_name(digest, shape, Dtype::f32));
  // The header that kernels are compiled with names them alike.
  const std::string header(kernel_header());
  const std::string version = name.substr(name.rfind('_') + 1);
  CHECK(header.find("##arithmetic##_" + version + "\n") != std::string::npos);
  CHECK(kernel_file("a/b.json", "sm_90") == "a/b.sm_90.cubin");
  CHECK(kernel_file("b", "sm_100") == "b.sm_100.cubin");
}

// Which ops they do is one list: what is in it here is what documents say.
TEST_CASE("compiled kernels: every op of the table is done, or refused with a reason") {
  std::map<std::string, std::string> refused;
  uint32_t done = 0;
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      TestProgram t = plan.build(format);
      Diagnostics diagnostics;
      for (uint32_t r = 0; r < t.program.ranks.size(); ++r) {
        const auto shape = CompiledShape::of(t.program, r, diagnostics);
        if (shape) {
          ++done;
          CAPTURE(plan.name, r);
          check_lines(*shape, Packed(t.program, r, 3 * 245760 * t.program.contract.ranks));
          continue;
        }
        REQUIRE(diagnostics.all().back().code == "no-compiled-kernel");
        const std::string& why = diagnostics.all().back().message;
        refused[plan.name] = why.substr(why.rfind(": ") + 2);
      }
    }
  }
  CHECK(done > 0);
  std::string text;
  for (const auto& [name, why] : refused) text += name + ": " + why + "\n";
  CHECK(text ==
        "switch_broadcast: it has ops of switch channels ('switch_broadcast')\n"
        "switch_broadcast_packets: it has ops of switch channels ('switch_broadcast_packets')\n"
        "switch_reduce: it has ops of switch channels ('switch_reduce')\n"
        "switch_reduce_broadcast: it has ops of switch channels ('switch_reduce')\n");
}

TEST_CASE("compiled kernels: what no such kernel does is refused in full words") {
  TestProgram t(2, 2);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t thin = t.buffer(r, "thin", 1, PacketFormat::LL8, 2);
    const uint32_t wide = t.buffer(r, "wide", 1, PacketFormat::LL128, 2);
    add_op(t, r, 0, OpKind::put_packets, {far(0, thin, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::put_packets, {far(0, wide, 0)}, {local(kInput, 1)});
    add_op(t, r, 0, OpKind::unpack_packets, {local(kOutput, 0)}, {local(thin, 0)});
    add_op(t, r, 0, OpKind::unpack_packets, {local(kOutput, 1)}, {local(wide, 0)});
  }
  CHECK(refusal_of(t.program) ==
        "no-compiled-kernel: rank 0 of 'test' cannot be a compiled kernel: it has packets of two "
        "formats\nthe interpreter runs the plan as it is");
}

/// A pipeline whose blocks count the signals that they take, with a buffer of two units.
TestProgram relay() {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  t.program.loops.push_back({.unit = 4096, .chunks = 1});
  const auto looped = [](Op& op) { op.loop = 0; };
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t stage = t.buffer(r, "stage", 1);
    t.program.ranks[r].buffers[stage].units = 2;
    t.program.ranks[r].buffers[stage].unit = 4096;
    looped(add_op(t, r, 0, OpKind::put, {far(0, stage, 0)}, {local(kInput, 0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
    looped(add_op(t, r, 0, OpKind::signal, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::wait, {end_of(0)}));
    looped(add_op(t, r, 0, OpKind::sync, {}));
    looped(add_op(t, r, 0, OpKind::copy, {local(kOutput, 0)}, {local(stage, 0)}));
  }
  return t;
}

TEST_CASE("compiled kernels: a pipeline is a loop, of as many rounds as a call has") {
  TestProgram t = relay();
  const CompiledShape shape = shape_of(t.program);
  CHECK(shape.counts());
  CHECK_FALSE(shape.posts());
  for (const uint64_t part : {4096u, 3 * 4096u, 4096u + 16u, 1u << 24}) {
    CAPTURE(part);
    check_lines(shape, Packed(t.program, 0, part));
  }
  Diagnostics diagnostics;
  const auto source =
      write_kernels(t.program, std::string(64, 'd'), usual_kernel_dtypes(), diagnostics);
  REQUIRE(source);
  CHECK(source->find("    for (block.begin_rounds(0); block.in_rounds(); block.next_round()) {\n"
                     "      block.template run<StepKind::copy, CompiledOperands<1, 1, 1,\n"
                     "          own_place(4, kPlaceExtra),\n"
                     "          shared_place(0)>>(1, 0, 4);\n") != std::string::npos);
  CHECK(source->find("CompiledTraits{.counts = true, .align = 16}") != std::string::npos);
}

TEST_CASE("compiled kernels: a block that posts has its channels in lines") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) {
    add_op(t, r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::signal, {end_of(0)});
    add_op(t, r, 0, OpKind::wait, {end_of(0)});
    add_op(t, r, 0, OpKind::flush, {end_of(0)});
  }
  const CompiledShape shape = shape_of(t.program);
  CHECK(shape.posts());
  CHECK(shape.codes()[0].leading == 0);
  check_lines(shape, Packed(t.program, 0, 4096));
}

TEST_CASE("compiled kernels: lines that are too many for parameters lie in memory") {
  const auto lines_of = [](uint32_t blocks) { return shape_of(one_shot(blocks).program).lines(); };
  const uint32_t each = lines_of(3) - lines_of(2);
  const uint32_t most = device::kMaxCompiledLines / each;
  const CompiledShape few = shape_of(one_shot(most).program);
  TestProgram many = one_shot(most + 1);
  const CompiledShape shape = shape_of(many.program);
  CHECK_FALSE(few.in_memory());
  CHECK(shape.in_memory());
  CHECK(few.key() != shape.key());
  check_lines(shape, Packed(many.program, 0, 16ull * (most + 1)));
  Diagnostics diagnostics;
  const auto source =
      write_kernels(many.program, std::string(64, 'd'), usual_kernel_dtypes(), diagnostics);
  REQUIRE(source);
  CHECK(source->find("const __grid_constant__ CompiledMemory arguments") != std::string::npos);
  CHECK(source->find("CompiledArguments<") == std::string::npos);
  // One block that has more of them than fit in shared memory.
  TestProgram wide(1, 1);
  const uint32_t scratch = wide.buffer(0, "scratch", device::kMaxSharedLines);
  for (uint32_t i = 0; i < device::kMaxSharedLines; ++i) {
    add_op(wide, 0, 0, OpKind::copy, {local(scratch, i)}, {local(kInput, 0)});
  }
  CHECK(refusal_of(wide.program) ==
        "no-compiled-kernel: rank 0 of 'test' cannot be a compiled kernel: a block has 89616 bytes "
        "of sizes and addresses, and 44800 fit in shared memory\nthe interpreter runs the plan as "
        "it is");
}

TEST_CASE("compiled kernels: NVRTC is given all headers that the source includes") {
  const std::span<const char* const> given = standard_names();
  std::istringstream header{std::string(kernel_header())};
  uint32_t included = 0;
  for (std::string line; std::getline(header, line);) {
    if (!line.starts_with("#include <")) continue;
    const std::string name = line.substr(10, line.find('>') - 10);
    CAPTURE(name);
    CHECK(std::find(given.begin(), given.end(), name) != given.end());
    ++included;
  }
  CHECK(included > 0);
  // Twins of the accesses, for device code on the host, are no part of it.
  CHECK(kernel_header().find("namespace mscclc::cuda::host") == std::string_view::npos);
  CHECK(standard_header().find("#include") == std::string_view::npos);
}

TEST_CASE(
    "compiled kernels: source names kernels by the header's macro, and quotes no name as it is") {
  TestProgram t = one_shot(2);
  t.program.name = "a\\\nint x;";
  Diagnostics diagnostics;
  const auto source =
      write_kernels(t.program, std::string(64, 'd'), usual_kernel_dtypes(), diagnostics);
  REQUIRE(source);
  CHECK(source->find("'a__int_x_'") != std::string::npos);
  CHECK(source->find("MSCCLC_KERNEL(dddddddddddddddddddddddddddddddd, " +
                     shape_of(t.program).key() + ", bf16)") != std::string::npos);
  CHECK(source->find("#include \"mscclc_kernels.cuh\"\n") != std::string::npos);
  // Both ranks have one shape: three kernels.
  size_t kernels = 0;
  for (size_t at = source->find("__global__"); at != std::string::npos;
       at = source->find("__global__", at + 1)) {
    ++kernels;
  }
  CHECK(kernels == 3);
}

}  // namespace
}  // namespace mscclc
