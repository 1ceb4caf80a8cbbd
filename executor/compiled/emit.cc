#include "executor/compiled/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "executor/compiled/cluster.h"
#include "executor/compiled/emit_rows.h"
#include "executor/compiled/fused_rows.h"
#include "executor/compiled/shape.h"

namespace mscclc {

using device::StepKind;

namespace {

constexpr const char* kHead =
    R"(// Kernels of the plan '{}' alone: what its thread blocks do stands in code, sizes and addresses come
// with a launch. Written by 'mscclc compile --emit=cuda'; compile it with
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -arch=sm_90 -cubin
{}{}{} "{}"
{}
namespace {{

using namespace mscclc;
using namespace mscclc::cuda;
using namespace mscclc::device;
)";

/// A plan's name in a comment: whatever else it holds is not for a compiler.
std::string comment_text(const std::string& name) {
  std::string text = name;
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; }, '_');
  return text;
}

std::string place_text(uint32_t place) {
  std::string more;
  const auto add = [&](uint32_t bit, const char* name) {
    if ((place & bit) != 0) more += (more.empty() ? ", " : " | ") + std::string(name);
  };
  add(device::kPlacePackets, "kPlacePackets");
  add(device::kPlaceDoubled, "kPlaceDoubled");
  add(device::kPlaceCopied, "kPlaceCopied");
  add(device::kPlaceExtra, "kPlaceExtra");
  if ((place & device::kPlaceHanded) != 0) return "kPlaceHanded";
  const bool shared = (place & device::kPlaceShared) != 0;
  return fmt::format("{}_place({}{})", shared ? "shared" : "own", place / device::kPlaceLine, more);
}

/// What the code of a step is made of (compiled_block.cuh).
const char* operands_word(const CompiledStep& step) {
  if ((step.flags & device::kTree) != 0) return "Tree";
  return device::adds_exactly(step) ? "Exact" : "Operands";
}

/// "CompiledOperands<1, 1, 2, places...>", and the values of a row function that is handed a sum.
std::string operands_text(const CompiledStep& step, const std::string& indent) {
  std::string text =
      fmt::format("Compiled{}<{}, {}, {}", operands_word(step), step.count, step.dsts, step.srcs);
  for (size_t k = 0; k < step.places.size(); ++k) {
    const bool first_value = k == step.operands();
    text += first_value ? ">,\n" + indent + "    CompiledValues<" : ",\n" + indent + "    ";
    text += place_text(step.places[k]);
  }
  return text + ">";
}

/// One step: "block.template run<StepKind::wait, CompiledOperands<1, 0, 0>>(3, 4, 1);"
std::string step_text(const CompiledShape& shape, const CompiledStep& step, bool leads,
                      const std::string& indent) {
  const bool data = moves_data(step.kind), rows = has_row_function(step);
  const std::string begins =
      rows ? row_step_text(step, shape.threads())
           : fmt::format("{}<StepKind::{}, ", leads ? "lead" : "run", info(step.kind).name);
  const std::string text =
      fmt::format("{}block.template {}{}>", indent, begins, operands_text(step, indent));
  // An average is divided where the caller chooses it.
  const bool divides = (step.flags & device::kComplete) != 0 && step.reduce == ReduceOp::call;
  const uint32_t orders = data ? 0 : uint32_t{device::kRelaxed};
  const uint32_t flags = (step.flags & (orders | device::kInLoop | device::kPosts)) |
                         (divides ? uint32_t{device::kComplete} : 0);
  if (leads || step.kind == StepKind::apply) return text + fmt::format("({});\n", step.extent);
  if (rows) return text + fmt::format("({}, {});\n", step.extent, flags);
  return text + fmt::format("({}, {}, {});\n", step.extent, data ? 0 : step.first, flags);
}

/// The steps from `begin` to `end`. The body of a pipeline is a loop, which ends at the round that
/// a call says.
std::string steps_text(const CompiledShape& shape, const CompiledCode& code, size_t begin,
                       size_t end, bool leads, const std::string& indent = "    ") {
  std::string text;
  for (size_t s = begin; s < end; ++s) {
    const CompiledStep& step = code.steps[s];
    if (step.kind == StepKind::sync && s == code.leading && s > 0) {  // all met to count the call
      text += fmt::format("{}block.met({});\n", indent, step.extent);
      continue;
    }
    if (step.kind != StepKind::pipeline) {
      text += step_text(shape, step, leads, indent);
      continue;
    }
    text +=
        fmt::format("{}for (block.begin_rounds({}); block.in_rounds(); block.next_round()) {{\n",
                    indent, step.extent);
    text += steps_text(shape, code, s + 1, s + 1 + step.count, leads, indent + "  ");
    text += indent + "}\n";
    s += step.count;
  }
  return text;
}

/// The steps of a code: those before its blocks count the call, and the others.
std::string code_text(const CompiledShape& shape, size_t shape_number, size_t number) {
  const CompiledCode& code = shape.codes()[number];
  std::string text = fmt::format("\nstruct Shape{}Code{} {{\n", shape_number, number);
  for (const bool leads : {true, false}) {
    const bool named = leads ? code.leading > 0 : code.leading < code.steps.size();
    text += fmt::format(
        "  template <class Block>\n  __device__ __forceinline__ static void {}(Block&{}) {{\n",
        leads ? "lead" : "run", named ? " block" : "");
    text += leads ? steps_text(shape, code, 0, code.leading, leads)
                  : steps_text(shape, code, code.leading, code.steps.size(), leads);
    text += "  }\n";
  }
  return text + "};\n";
}

/// "0 to 3, 8", of the numbers for which `has` is true.
template <class Has>
std::string numbers_text(uint32_t count, Has has) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) {
    if (!has(i)) continue;
    uint32_t end = i;
    while (end + 1 < count && has(end + 1)) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
    if (end > i) text += fmt::format(" to {}", end);
    i = end;
  }
  return text;
}

/// Which code a block runs: "if (block_of_rank() < 4) ... else ...". `what`: lead or run.
std::string choice_text(const CompiledShape& shape, size_t number, const char* what) {
  std::string text;
  for (uint32_t b = 0; b < shape.blocks();) {
    uint32_t end = b;
    while (end < shape.blocks() && shape.code_of(end) == shape.code_of(b)) ++end;
    text +=
        end == shape.blocks() ? "        " : fmt::format("        if (block_of_rank() < {}) ", end);
    text += fmt::format("return Shape{}Code{}::{}(block);\n", number, shape.code_of(b), what);
    b = end;
  }
  return text;
}

/// Where a kernel has its lines: in its second parameter, or fetched from where that points to.
struct ArgumentsText {
  std::string type, lines, own;
};
ArgumentsText arguments_text(const CompiledShape& shape) {
  const uint32_t shared = shape.shared_lines(), own = shape.own_lines();
  if (!shape.in_memory()) {
    return {fmt::format("CompiledArguments<{}>", std::max(1u, shape.lines())),
            "  const uint4* lines = arguments.lines;\n",
            fmt::format("lines + {} + block_of_rank() * {}", shared, own)};
  }
  return {"CompiledMemory",
          fmt::format("  using Lines = CompiledLines<{0}, {1}>;\n"
                      "  MSCCLC_SHARED(Lines, fetched);\n"
                      "  fetch_arguments(arguments.lines, fetched);\n"
                      "  const uint4* lines = fetched.lines;\n",
                      shared, own),
          fmt::format("lines + {}", shared)};
}

/// "CompiledBlock<OneType<Dtype::f32>, PacketFormat::LL16, {.align = 16}>"
std::string block_text(const CompiledShape& shape, const std::string& type) {
  std::string traits;
  if (shape.posts()) traits += ".posts = true, ";
  if (shape.counts()) traits += ".counts = true, ";
  traits += fmt::format(".align = {}", shape.align());
  return fmt::format("CompiledBlock<{}, PacketFormat::{}, CompiledTraits{{{}}}>", type,
                     name(shape.format()), traits);
}

/// Over how many CUDA blocks each thread block is spread, of all kernels of a plan.
uint32_t cluster_of(std::span<const CompiledShape> shapes, const Program& program) {
  uint32_t cluster = 0;
  for (const CompiledShape& shape : shapes) {
    if (shape.blocks() == 0) continue;
    const uint32_t own = cluster_of(shape, program);
    if (cluster != 0 && own != cluster) return 1;
    cluster = own;
  }
  return std::max(1u, cluster);
}

/// Registers are so few that all blocks of the plan are there at once, as they wait for one
/// another.
std::string bounds_text(const CompiledShape& shape, uint32_t cluster) {
  constexpr uint32_t kMultiprocessors = 132;  // of an H100 (SXM) or H200
  constexpr uint32_t kMostThreads = 2048;     // of a multiprocessor
  if (cluster > 1) return fmt::format("MSCCLC_CLUSTER_BOUNDS({})", shape.threads());
  const uint32_t together = (shape.blocks() + kMultiprocessors - 1) / kMultiprocessors;
  if (together < 2 || shape.threads() > kMostThreads / together) {
    return fmt::format("__launch_bounds__({})", shape.threads());
  }
  return fmt::format("__launch_bounds__({}, {})", shape.threads(), together);
}

std::string kernel_text(const CompiledShape& shape, size_t number, uint32_t cluster,
                        const std::string& digest, const std::string& arithmetic) {
  const ArgumentsText arguments = arguments_text(shape);
  const bool typed = shape.adds() || shape.has_rows();
  const std::string type = typed ? fmt::format("OneType<Dtype::{}>", arithmetic) : "NoSums";
  return fmt::format(
      "\nextern \"C\" __global__ void {}\n"
      "MSCCLC_KERNEL({}, {}, {})(\n"
      "    const __grid_constant__ LaunchPlan plan,\n"
      "    const __grid_constant__ {} arguments) {{\n"
      "  using Block = {};\n"
      "{}"
      "  run_compiled<Block>(\n"
      "      plan, lines, {},\n"
      "      [](Block& block) {{\n{}      }},\n"
      "      [](Block& block) {{\n{}      }});\n"
      "}}\n",
      bounds_text(shape, cluster), digest.substr(0, 32), shape.key(), arithmetic, arguments.type,
      block_text(shape, type), arguments.lines, arguments.own, choice_text(shape, number, "lead"),
      choice_text(shape, number, "run"));
}

}  // namespace

std::span<const Dtype> usual_kernel_dtypes() {
  static constexpr Dtype kUsual[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
  return kUsual;
}

// Those whose sums are in a type of 4 bytes: OneType has registers for these.
bool has_kernels(Dtype dtype) { return info(info(dtype).accumulate).bytes == 4; }

std::optional<std::string> write_kernels(const Program& program, const std::string& digest,
                                         std::span<const Dtype> dtypes, Diagnostics& diagnostics) {
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  std::vector<CompiledShape> shapes;
  std::map<std::string, size_t> known;
  std::vector<size_t> shape_of;
  for (uint32_t r = 0; r < ranks; ++r) {
    auto shape = CompiledShape::of(program, r, diagnostics);
    if (!shape) return std::nullopt;
    const auto [at, fresh] = known.emplace(shape->key(), shapes.size());
    shape_of.push_back(at->second);
    if (fresh) shapes.push_back(*std::move(shape));
  }
  const auto apart = why_rows_apart(program);
  const uint32_t cluster = cluster_of(shapes, program);
  std::string text = fmt::format(
      kHead, comment_text(program.name), apart ? "// Of this plan " + *apart + ".\n" : "",
      cluster == 1 ? "" : fmt::format("#define MSCCLC_CLUSTER {}\n", cluster), "#include",
      kKernelHeader, row_functions_text(program, shapes, dtypes));
  std::string kernels;
  for (size_t s = 0; s < shapes.size(); ++s) {
    const CompiledShape& shape = shapes[s];
    if (shape.blocks() == 0) continue;
    text += fmt::format("\n// Shape {}: rank {}, {} blocks of {} threads.\n", s,
                        numbers_text(ranks, [&](uint32_t r) { return shape_of[r] == s; }),
                        shape.blocks(), shape.threads());
    for (size_t c = 0; c < shape.codes().size(); ++c) text += code_text(shape, s, c);
    const bool typed = shape.adds() || shape.has_rows();
    if (!typed) kernels += kernel_text(shape, s, cluster, digest, "moves");
    for (const Dtype dtype : dtypes) {
      if (shape.has_rows() && !has_rows_of(program, dtype)) continue;
      if (typed) kernels += kernel_text(shape, s, cluster, digest, shape.arithmetic(dtype));
    }
  }
  return text + "\n}  // namespace\n" + kernels;
}

}  // namespace mscclc
