#include "ir/program/program.h"

#include <algorithm>
#include <charconv>

#include "ir/support/precondition.h"

namespace mscclc {

NameId Program::intern(std::string_view name) {
  const auto [it, added] = ids_.try_emplace(std::string(name), static_cast<NameId>(names_.size()));
  if (added) names_.emplace_back(name);
  return it->second;
}

std::string Program::text(const Label& label) const {
  std::string out(name_of(label.name));
  if (label.keys.count == 0) return out;
  char sep = '[';
  for (const int64_t key : values(label.keys)) {
    out += sep;
    if (sep == ',') out += ' ';
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, key);
    out.append(digits, end.ptr);
    sep = ',';
  }
  out += ']';
  return out;
}

namespace {

/// Adds operands to an arena, or by an appender.
template <class Operands>
void add_operands(Operands& to, Op& op, std::span<const Operand> dsts,
                  std::span<const Operand> srcs) {
  Operand* const room = to.add(dsts.size() + srcs.size(), op.operands);
  std::ranges::copy(srcs, std::ranges::copy(dsts, room).out);
  op.dsts = static_cast<uint16_t>(dsts.size());
  op.srcs = static_cast<uint16_t>(srcs.size());
}

}  // namespace

void Program::set_operands(Op& op, std::span<const Operand> dsts, std::span<const Operand> srcs) {
  add_operands(operands, op, dsts, srcs);
}

void Additions::set_operands(Op& op, std::span<const Operand> dsts, std::span<const Operand> srcs) {
  add_operands(operands, op, dsts, srcs);
}

std::vector<uint32_t> block_offsets(const Rank& rank) {
  precondition(rank.ops.empty() || rank.ops.back().block < rank.blocks);
  std::vector<uint32_t> offsets(rank.blocks + 1, 0);
  const uint32_t count = static_cast<uint32_t>(rank.ops.size());
  for (uint32_t b = 0, end = 0; b < rank.blocks; ++b) {
    // Steps that double: quick for blocks of one op and for those of thousands.
    uint32_t step = 1;
    for (; end < count && rank.ops[end].block <= b; step *= 2) {
      const uint32_t far = std::min(count, end + step);
      if (rank.ops[far - 1].block > b) break;
      end = far;
    }
    const auto from = rank.ops.begin() + end, to = rank.ops.begin() + std::min(count, end + step);
    end += static_cast<uint32_t>(
        std::partition_point(from, to, [b](const Op& op) { return op.block <= b; }) - from);
    offsets[b + 1] = end;
  }
  return offsets;
}

}  // namespace mscclc
