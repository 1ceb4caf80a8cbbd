#include "executor/special/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "executor/special/shape.h"

namespace mscclc {
namespace {

constexpr const char* kHead =
    R"(// Kernels of the plan '{}' alone: what its thread blocks do stands in code, sizes and addresses come
// with a launch. Written by 'mscclc compile --emit=cuda'; compile it with
//   nvcc -std=c++20 -O3 --expt-relaxed-constexpr -arch=sm_90 -cubin
{} "{}"

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
  if ((place & device::kPlacePackets) != 0) more = ", kPlacePackets";
  if ((place & device::kPlaceDoubled) != 0) {
    more += more.empty() ? ", kPlaceDoubled" : " | kPlaceDoubled";
  }
  const bool shared = (place & device::kPlaceShared) != 0;
  return fmt::format("{}_place({}{})", shared ? "shared" : "own", place / device::kPlaceLine, more);
}

/// One step: "block.template run<StepKind::wait, SpecialOperands<1, 0, 0>>(3, 4, 1);"
std::string step_text(const SpecialStep& step, bool leads) {
  const bool data = moves_data(step.kind);
  std::string text =
      fmt::format("    block.template {}<StepKind::{}, SpecialOperands<{}, {}, {}",
                  leads ? "lead" : "run", info(step.kind).name, step.count, step.dsts, step.srcs);
  for (const uint32_t place : step.places) text += ",\n        " + place_text(place);
  // An average is divided where the caller chooses it.
  const bool divides = (step.flags & device::kComplete) != 0 && step.reduce == ReduceOp::call;
  const uint32_t flags =
      (step.flags & device::kRelaxed) | (divides ? uint32_t{device::kComplete} : 0);
  if (leads) return text + fmt::format(">>({});\n", step.extent);
  return text + fmt::format(">>({}, {}, {});\n", step.extent, data ? 0 : step.first, flags);
}

/// The steps of a code: those before its blocks count the call, and the others.
std::string code_text(const SpecialCode& code, size_t shape, size_t number) {
  std::string text = fmt::format("\nstruct Shape{}Code{} {{\n", shape, number);
  for (const bool leads : {true, false}) {
    const bool named = leads ? code.leading > 0 : code.leading < code.steps.size();
    text += fmt::format(
        "  template <class Block>\n  __device__ __forceinline__ static void {}(Block&{}) {{\n",
        leads ? "lead" : "run", named ? " block" : "");
    for (uint32_t s = 0; s < code.steps.size(); ++s) {
      if ((s < code.leading) == leads) text += step_text(code.steps[s], leads);
    }
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

/// Which code a block runs: "if (blockIdx.x < 4) ... else ...". `what`: lead or run.
std::string choice_text(const SpecialShape& shape, size_t number, const char* what) {
  std::string text;
  for (uint32_t b = 0; b < shape.blocks();) {
    uint32_t end = b;
    while (end < shape.blocks() && shape.code_of(end) == shape.code_of(b)) ++end;
    text += end == shape.blocks() ? "        " : fmt::format("        if (blockIdx.x < {}) ", end);
    text += fmt::format("return Shape{}Code{}::{}(block);\n", number, shape.code_of(b), what);
    b = end;
  }
  return text;
}

std::string kernel_text(const SpecialShape& shape, size_t number, const std::string& digest,
                        const std::string& arithmetic) {
  const std::string type = shape.adds() ? fmt::format("OneType<Dtype::{}>", arithmetic) : "NoSums";
  return fmt::format(
      "\nextern \"C\" __global__ void __launch_bounds__({})\n"
      "MSCCLC_KERNEL({}, {}, {})(\n"
      "    const __grid_constant__ LaunchPlan plan,\n"
      "    const __grid_constant__ SpecialArguments<{}> arguments) {{\n"
      "  using Block = SpecialBlock<{}, PacketFormat::{}>;\n"
      "  const uint4* own = arguments.lines + {} + blockIdx.x * {};\n"
      "  run_special<Block>(\n"
      "      plan, arguments.lines, own,\n"
      "      [](Block& block) {{\n{}      }},\n"
      "      [](Block& block) {{\n{}      }});\n"
      "}}\n",
      shape.threads(), digest.substr(0, 32), shape.key(), arithmetic, std::max(1u, shape.lines()),
      type, name(shape.format()), shape.shared_lines(), shape.own_lines(),
      choice_text(shape, number, "lead"), choice_text(shape, number, "run"));
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
  std::vector<SpecialShape> shapes;
  std::map<std::string, size_t> known;
  std::vector<size_t> shape_of;
  for (uint32_t r = 0; r < ranks; ++r) {
    auto shape = SpecialShape::of(program, r, diagnostics);
    if (!shape) return std::nullopt;
    const auto [at, fresh] = known.emplace(shape->key(), shapes.size());
    shape_of.push_back(at->second);
    if (fresh) shapes.push_back(*std::move(shape));
  }
  std::string text = fmt::format(kHead, comment_text(program.name), "#include", kKernelHeader);
  std::string kernels;
  for (size_t s = 0; s < shapes.size(); ++s) {
    const SpecialShape& shape = shapes[s];
    if (shape.blocks() == 0) continue;
    text += fmt::format("\n// Shape {}: rank {}, {} blocks of {} threads.\n", s,
                        numbers_text(ranks, [&](uint32_t r) { return shape_of[r] == s; }),
                        shape.blocks(), shape.threads());
    for (size_t c = 0; c < shape.codes().size(); ++c) text += code_text(shape.codes()[c], s, c);
    if (!shape.adds()) kernels += kernel_text(shape, s, digest, "moves");
    for (const Dtype dtype : dtypes) {
      if (shape.adds()) kernels += kernel_text(shape, s, digest, shape.arithmetic(dtype));
    }
  }
  return text + "\n}  // namespace\n" + kernels;
}

}  // namespace mscclc
