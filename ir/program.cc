#include "ir/program.h"

#include <charconv>

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

Slice Program::append(std::span<const int64_t> values) {
  const Slice s{static_cast<uint32_t>(integers.size()), static_cast<uint32_t>(values.size())};
  integers.insert(integers.end(), values.begin(), values.end());
  return s;
}

void Program::set_operands(Op& op, std::span<const Operand> dsts, std::span<const Operand> srcs) {
  op.operands = static_cast<uint32_t>(operands.size());
  op.dsts = static_cast<uint16_t>(dsts.size());
  op.srcs = static_cast<uint16_t>(srcs.size());
  operands.insert(operands.end(), dsts.begin(), dsts.end());
  operands.insert(operands.end(), srcs.begin(), srcs.end());
}

std::vector<uint32_t> block_offsets(const Rank& rank) {
  std::vector<uint32_t> offsets(rank.blocks + 1, 0);
  for (const Op& op : rank.ops) ++offsets[op.block + 1];
  for (uint32_t b = 0; b < rank.blocks; ++b) offsets[b + 1] += offsets[b];
  return offsets;
}

}  // namespace mscclc
