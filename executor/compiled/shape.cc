#include "executor/compiled/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "executor/compiled/fused_rows.h"
#include "executor/kernel_threads.h"
#include "executor/lower.h"
#include "executor/rows/externals.h"
#include "ir/support/fnv.h"

namespace mscclc {

using device::CompiledExtent;
using device::CompiledLoop;
using device::CompiledRounds;
using device::Step;
using device::StepExtra;
using device::StepFamily;
using device::StepHeader;
using device::StepKind;
using device::StepOperand;
using device::Steps;
using device::StepTarget;

namespace {

/// What a call settles, not the code.
constexpr uint8_t kSettled = device::kFreesNext | device::kShowsPeers;
/// What calls of compiled kernels never use.
constexpr uint32_t kNever = device::kUsesSwitch | device::kUsesUneven | device::kUsesOtherSums |
                            device::kUsesLong | device::kUsesOdd;
constexpr uint32_t kSentinels =
    device::uses_of_formats([](const PacketFormatInfo& row) { return is_sentinel(row.format); });

/// A block's packed program.
struct Packed {
  Packed(const BlockPrograms& programs, uint32_t block)
      : header(reinterpret_cast<const StepHeader*>(programs.data() +
                                                   uint64_t{block} * programs.stride())),
        program(header) {}
  std::span<const Step> steps() const { return {program.steps, header->steps}; }
  const StepOperand* operands(const Step& step) const { return program.operands + step.first; }
  StepExtra extra(const Step& step, uint32_t k) const {
    if (program.extras == nullptr) return {device::kNoChannel, 0, nullptr};
    return program.extras[step.first + k];
  }
  const StepTarget* targets(const Step& step) const { return program.targets + step.first; }

  const StepHeader* header;
  const Steps program;
};

bool is_of_rows(StepKind kind) { return info(kind).family == StepFamily::rows; }

/// How many operands a step has, and the values of its row function where it hands it a sum.
uint32_t operands_of(const Step& step) {
  const uint32_t own = step.count * (uint32_t{step.dsts} + step.srcs);
  return is_of_rows(step.kind) && step.kind != StepKind::apply ? own + step.parts : own;
}

/// What the code knows of operand `k` of a step.
uint32_t place_bits(const Packed& block, const Step& step, uint32_t k) {
  const StepOperand& operand = block.operands(step)[k];
  const StepExtra extra = block.extra(step, k);
  return ((operand.flags & device::kPackets) != 0 ? device::kPlacePackets : 0u) |
         (operand.copies == 2 ? device::kPlaceDoubled : 0u) |
         (operand.copies > 2 ? device::kPlaceCopied : 0u) |
         ((operand.flags & device::kHanded) != 0 ? device::kPlaceHanded : 0u) |
         (extra.channel != device::kNoChannel || extra.units != 0 ? device::kPlaceExtra : 0u);
}
constexpr uint32_t kPlaceBits = device::kPlacePackets | device::kPlaceDoubled |
                                device::kPlaceCopied | device::kPlaceExtra | device::kPlaceHanded;

bool in_loop(uint8_t flags) { return (flags & device::kInLoop) != 0; }

/// Lines of what a call says of a step, before its operands or targets.
uint32_t extent_lines(const CompiledStep& step) {
  const bool rounds = moves_data(step.kind) && in_loop(step.flags);
  return (rounds ? sizeof(CompiledRounds) : sizeof(CompiledExtent)) / sizeof(CompiledLine);
}
uint32_t targets_of(const CompiledStep& step) {
  const bool none = moves_data(step.kind) || step.kind == StepKind::pipeline;
  return none ? 0 : step.count;
}

CompiledStep code_of_step(const Packed& block, const Step& step) {
  CompiledStep code;
  code.kind = step.kind;
  code.reduce = step.reduce;
  code.flags = static_cast<uint8_t>(step.flags & ~kSettled);
  code.count = step.count;
  if (!moves_data(step.kind)) return code;
  code.dsts = step.dsts;
  code.srcs = step.srcs;
  if (is_of_rows(step.kind)) code.function = step.part;
  for (uint32_t k = 0; k < operands_of(step); ++k) {
    code.places.push_back(place_bits(block, step, k));
  }
  return code;
}

/// Is a packed step of this code? Formats are the kernel's.
bool is_of(const Packed& block, const Step& step, const CompiledStep& code) {
  if (step.kind != code.kind || step.reduce != code.reduce ||
      (step.flags & ~kSettled) != code.flags) {
    return false;
  }
  if (step.kind == StepKind::pipeline) return true;  // some of its body may have nothing to do
  if (step.count != code.count) return false;
  if (!moves_data(step.kind)) return true;
  if (step.dsts != code.dsts || step.srcs != code.srcs) return false;
  if (is_of_rows(step.kind) && step.part != code.function) return false;
  if (operands_of(step) != code.places.size()) return false;
  for (uint32_t k = 0; k < code.places.size(); ++k) {
    if (place_bits(block, step, k) != (code.places[k] & kPlaceBits)) return false;
  }
  return true;
}

/// Why no compiled kernel can do such a step.
std::optional<Error> refusal(const Step& step) {
  const std::string_view name = info(step.kind).name;
  switch (info(step.kind).family) {
    case StepFamily::plain:
    case StepFamily::packets:
    case StepFamily::target:
    case StepFamily::block:
    case StepFamily::sent:
    case StepFamily::flags:
    case StepFamily::rows:
    case StepFamily::loop:
      break;
    case StepFamily::switched:
      return Error{fmt::format("it has ops of switch channels ('{}')", name)};
  }
  if (info(step.kind).adds && step.reduce != ReduceOp::call && step.reduce != ReduceOp::sum) {
    return Error{fmt::format("it has a reduction that is always {}", mscclc::name(step.reduce))};
  }
  return std::nullopt;
}

/// Does a wait take signals that its block counts itself?
bool counts_signals(const Packed& block, const Step& step) {
  const StepTarget* targets = block.targets(step);
  return step.kind == StepKind::wait &&
         std::any_of(targets, targets + step.count, [](const StepTarget& t) {
           return (t.flags & device::kCounted) == 0 && t.slot != device::kNoSlot;
         });
}

/// May the step come before the block has counted its call? It reads no packets.
bool leads(const CompiledStep& step) {
  if (step.kind != StepKind::copy && step.kind != StepKind::move_packets) return false;
  if ((step.flags & (device::kInLoop | device::kPosts)) != 0) return false;
  const uint32_t each = step.dsts + step.srcs;
  for (uint32_t k = 0; k < step.places.size(); ++k) {
    if (k % each >= step.dsts && (step.places[k] & device::kPlacePackets) != 0) return false;
  }
  return true;
}

/// Where buffer or external `i` of a sample begins: far from all others.
uint8_t* sample_address(size_t i) { return reinterpret_cast<uint8_t*>((i + 1) << 44); }

/// Packs a rank at a message whose chunks are all alike, large enough that each block has some of
/// all that the rank moves, with an address of its own for each buffer.
bool pack_sample(const Program& program, uint32_t rank, BlockPrograms& programs,
                 Diagnostics& diagnostics) {
  RankProgram lowered;
  if (!lower_rank(program, rank, lowered, diagnostics, compiled_row_steps(program))) return false;
  const Contract& contract = program.contract;
  // A chunk of whole lines and units for up to 128 blocks and more; or of so many rows.
  const uint32_t granule = program.granule(Dtype::f32);
  const uint64_t kChunk = contract.columns == 0 ? 16 * 120 * 128 : uint64_t{1024} * granule;
  const uint64_t chunks = std::max<uint64_t>(
      {1, contract.chunk_count(Side::input, rank), contract.chunk_count(Side::output, rank)});
  const Chunking chunking(contract, chunks * kChunk, granule);
  lowered.align = granule;
  if (!fit_rank_to_size(lowered, program, rank, chunking, chunking, diagnostics)) return false;
  std::vector<device::BaseAddress> bases;
  for (size_t i = 0; i < lowered.bases.size(); ++i) {
    const device::Base& base = lowered.bases[i];
    // How far copies lie apart is no part of the shape, and rows of a sample are long.
    bases.push_back({sample_address(i), device::kCopyLine, base.copies});
  }
  std::vector<BlockPrograms::Places::External> externals;
  for (const rows::ExternalLayout& layout :
       rows::lay_out_externals(program, rank, chunking, Dtype::f32)) {
    externals.push_back({.address = sample_address(bases.size() + externals.size()),
                         .first_row = layout.first_row,
                         .row_bytes = layout.shared ? 0 : layout.row_bytes});
  }
  std::vector<device::ChannelEnd> ends;
  for (const Channel& c : program.ranks[rank].channels) {
    ends.push_back({nullptr, nullptr, 0, c.kind == ChannelKind::port ? 1u : 0u});
  }
  const BlockPrograms::Places places{.bases = bases, .ends = ends, .externals = externals};
  if (programs.pack(lowered, places, WaitSlots(lowered))) return true;
  diagnostics.error("too-large", {}, std::string(programs.refusal()));
  return false;
}

}  // namespace

Result<void> CompiledShape::add_blocks(const BlockPrograms& programs) {
  for (uint32_t b = 0; b < code_of_.size(); ++b) {
    const Packed block(programs, b);
    CompiledCode code;
    for (const Step& step : block.steps()) {
      if (auto why = refusal(step)) return *std::move(why);
      if (step.format != PacketFormat::none && format_ != PacketFormat::none &&
          step.format != format_) {
        return Error{"it has packets of two formats"};
      }
      if (step.format != PacketFormat::none) format_ = step.format;
      adds_ |= info(step.kind).adds;
      has_rows_ |= is_of_rows(step.kind);
      counts_ |= counts_signals(block, step);
      code.steps.push_back(code_of_step(block, step));
    }
    while (code.leading < code.steps.size() && leads(code.steps[code.leading])) ++code.leading;
    const auto found = std::find(codes_.begin(), codes_.end(), code);
    code_of_[b] = static_cast<uint32_t>(found - codes_.begin());
    if (found == codes_.end()) codes_.push_back(std::move(code));
  }
  posts_ = (programs.uses() & device::kUsesProxy) != 0;
  return {};
}

/// Gives lines to the arguments of the blocks of each code. An operand that the blocks have in
/// common stands in one line for all of them; one that a block names twice stands in one line, too.
void CompiledShape::place_operands(const BlockPrograms& programs) {
  for (uint32_t c = 0; c < codes_.size(); ++c) {
    std::vector<Packed> blocks;
    for (uint32_t b = 0; b < code_of_.size(); ++b) {
      if (code_of_[b] == c) blocks.emplace_back(programs, b);
    }
    using Addresses = std::vector<const uint8_t*>;
    std::map<Addresses, uint32_t> known;  // by the operand's addresses in all blocks: its place
    uint32_t own = 0;
    for (size_t s = 0; s < codes_[c].steps.size(); ++s) {
      CompiledStep& step = codes_[c].steps[s];
      step.extent = own;
      own += extent_lines(step);
      step.first = own;
      own += targets_of(step);
      for (uint32_t k = 0; k < step.places.size(); ++k) {
        if ((step.places[k] & device::kPlaceHanded) != 0) continue;
        if ((step.places[k] & device::kPlaceExtra) != 0) {
          step.places[k] |= device::own_place(own);
          own += 2;
          continue;
        }
        Addresses addresses;
        for (const Packed& block : blocks) {
          addresses.push_back(block.operands(block.steps()[s])[k].address);
        }
        const bool alike = std::adjacent_find(addresses.begin(), addresses.end(),
                                              std::not_equal_to<>()) == addresses.end();
        const auto [at, fresh] = known.try_emplace(std::move(addresses));
        if (fresh) {
          at->second = alike ? device::shared_place(shared_lines_++) : device::own_place(own++);
        }
        step.places[k] |= at->second;
      }
    }
    own_lines_ = std::max(own_lines_, own);
  }
}

static_assert(device::kColumnsOfThread == device::kMaxRowChunk);

/// What keeps rows of the plan from a kernel whose blocks have so many threads.
Result<void> CompiledShape::check_rows(const Program& program) const {
  if (!has_rows_) return {};
  if (!program.loops.empty()) return Error{"it has row functions and pipelines"};
  const uint32_t columns = program.contract.columns;
  if (device::row_chunk(columns, threads_, 4) > device::kMaxRowChunk) {
    return Error{fmt::format("its rows have {} columns, and blocks of {} threads take {} at most",
                             columns, threads_, threads_ * device::kMaxRowChunk)};
  }
  return {};
}

std::optional<CompiledShape> CompiledShape::of(const Program& program, uint32_t rank,
                                               Diagnostics& diagnostics) {
  BlockPrograms programs;
  if (!pack_sample(program, rank, programs, diagnostics)) return std::nullopt;
  CompiledShape shape;
  shape.code_of_.resize(program.ranks[rank].blocks);
  auto added = shape.add_blocks(programs);
  uint32_t most = device::threads_for(shape.format_);
  if (shape.has_rows_)
    most = device::row_threads(program.ranks.size(), program.contract.columns, most);
  const uint32_t warps = std::max(1u, (program.launch.threads + 31) / 32);
  shape.threads_ = std::min(most, 32 * warps);
  if (added) added = shape.check_rows(program);
  if (added) {
    shape.place_operands(programs);
    const uint32_t each = shape.shared_lines() + shape.own_lines();
    if (shape.in_memory() && each > device::kMaxSharedLines) {
      added = Error{
          fmt::format("a block has {} bytes of sizes and addresses, and {} fit in shared memory",
                      each * sizeof(CompiledLine), device::kMaxSharedLines * sizeof(CompiledLine))};
    }
  }
  if (!added) {
    Diagnostic& d = diagnostics.error("no-compiled-kernel", {},
                                      fmt::format("rank {} of '{}' cannot be a compiled kernel: {}",
                                                  rank, program.name, added.error().text()));
    if (program.functions.empty()) {
      d.notes.push_back({.text = "the interpreter runs the plan as it is"});
    }
    return std::nullopt;
  }
  shape.align_ = program.launch.align;
  return shape;
}

bool CompiledShape::takes(const BlockPrograms& programs, Dtype dtype, Dtype accumulate,
                          ReduceOp reduce) const {
  if ((programs.uses() & kNever) != 0) return false;
  if ((programs.uses() & device::kUsesProxy) != 0 && !posts_) return false;
  if ((programs.uses() & kSentinels) != 0 && info(dtype).bytes == 8) return false;
  return !adds_ || (info(dtype).accumulate == accumulate &&
                    (reduce == ReduceOp::sum || reduce == ReduceOp::avg));
}

namespace {

/// Writes what a call says of one step, from `line` on; false: it says too much.
bool put_extent(const Step& step, CompiledLine* line) {
  if (step.kind == StepKind::pipeline) {
    const CompiledLoop loop{step.begin, step.count == 0 ? 0 : step.end};
    std::memcpy(line, &loop, sizeof loop);
    return true;
  }
  if (step.end - step.run_begin > 0xffffffffu || step.length > 0xffffffffu) return false;
  const uint32_t source =
      step.source | ((step.flags & device::kFreesNext) != 0 ? device::kCompiledFrees : 0u);
  if (moves_data(step.kind) && in_loop(step.flags)) {
    const CompiledRounds rounds{step.begin, step.end, step.run_begin, step.move_end, step.part,
                                step.parts, 0,        source};
    std::memcpy(line, &rounds, sizeof rounds);
  } else {
    const CompiledExtent extent{static_cast<uint32_t>(step.begin - step.run_begin),
                                static_cast<uint32_t>(step.end - step.run_begin),
                                static_cast<uint32_t>(step.length), source};
    std::memcpy(line, &extent, sizeof extent);
  }
  return step.source < device::kCompiledFrees;
}

/// Lines of operands. Where several stand in one line, they must agree.
class OperandLines {
 public:
  explicit OperandLines(std::span<CompiledLine> lines) : lines_(lines), is_set_(lines.size()) {}
  bool put(uint32_t i, const StepOperand& operand) {
    if (is_set_[i]) return std::memcmp(&lines_[i], &operand, sizeof operand) == 0;
    std::memcpy(&lines_[i], &operand, sizeof operand);
    is_set_[i] = true;
    return true;
  }
  CompiledLine& operator[](uint32_t i) { return lines_[i]; }

 private:
  std::span<CompiledLine> lines_;
  std::vector<bool> is_set_;
};

bool put_step(const Packed& block, const Step& step, const CompiledStep& code, OperandLines& shared,
              OperandLines& own) {
  static_assert(sizeof(StepOperand) == sizeof(CompiledLine));
  static_assert(sizeof(StepTarget) == sizeof(CompiledLine));
  static_assert(sizeof(StepExtra) == sizeof(CompiledLine));
  if (!put_extent(step, &own[code.extent])) return false;
  for (uint32_t i = 0; i < targets_of(code); ++i) {
    std::memcpy(&own[code.first + i], block.targets(step) + i, sizeof(StepTarget));
  }
  for (uint32_t k = 0; k < code.places.size(); ++k) {
    if ((code.places[k] & device::kPlaceHanded) != 0) continue;
    const bool is_shared = (code.places[k] & device::kPlaceShared) != 0;
    const uint32_t line = code.places[k] / device::kPlaceLine;
    if (!(is_shared ? shared : own).put(line, block.operands(step)[k])) return false;
    const StepExtra extra = block.extra(step, k);
    if (extra.multicast != nullptr) return false;
    if ((code.places[k] & device::kPlaceExtra) != 0) {
      std::memcpy(&own[line + 1], &extra, sizeof extra);
    }
  }
  return true;
}

}  // namespace

bool CompiledShape::fill(const BlockPrograms& programs, std::vector<CompiledLine>& lines) const {
  lines.assign(this->lines(), {});
  OperandLines shared({lines.data(), shared_lines_});
  for (uint32_t b = 0; b < blocks(); ++b) {
    const Packed block(programs, b);
    OperandLines own({lines.data() + shared_lines_ + b * own_lines_, own_lines_});
    size_t next = 0;
    for (const CompiledStep& code : codes_[code_of_[b]].steps) {
      const bool there = next < block.steps().size() && is_of(block, block.steps()[next], code);
      if (!there && (has_rows_ || !moves_data(code.kind))) return false;
      if (there && !counts_ && counts_signals(block, block.steps()[next])) return false;
      if (there && !put_step(block, block.steps()[next++], code, shared, own)) return false;
    }
    if (next != block.steps().size()) return false;
  }
  return true;
}

std::string CompiledShape::arithmetic(Dtype dtype) const {
  return adds_ || has_rows_ ? std::string(info(dtype).name) : "moves";
}

// Over all that the code depends on.
std::string CompiledShape::key() const {
  Fnv hash;
  const auto add = [&](uint64_t value) { hash.add_number(value); };
  for (const uint32_t value :
       {static_cast<uint32_t>(format_), threads_, blocks(), shared_lines_, own_lines_, align_,
        (adds_ ? 1u : 0u) | (posts_ ? 2u : 0u) | (counts_ ? 4u : 0u) | (has_rows_ ? 8u : 0u)}) {
    add(value);
  }
  for (const uint32_t code : code_of_) add(code);
  for (const CompiledCode& code : codes_) {
    add(code.steps.size());
    add(code.leading);
    for (const CompiledStep& step : code.steps) {
      add(static_cast<uint64_t>(step.kind) | static_cast<uint64_t>(step.reduce) << 8 |
          uint64_t{step.flags} << 16 | uint64_t{step.count} << 32);
      add(step.dsts | uint64_t{step.srcs} << 16 | uint64_t{step.extent} << 32);
      add(step.first | uint64_t{step.function} << 32);
      for (const uint32_t place : step.places) add(place);
    }
  }
  return hash.hex();
}

}  // namespace mscclc
