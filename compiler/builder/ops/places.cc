#include "compiler/builder/ops/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/builder/draft/texts.h"

namespace mscclc {
namespace {

template <class Map>
auto by_number(const Map& numbers) {
  std::vector<const typename Map::key_type*> keys(numbers.size());
  for (const auto& [key, number] : numbers) keys[number] = &key;
  return keys;
}

}  // namespace

bool Places::enter_block(int64_t block, Mark mark) {
  block_ = group_ = kNone;
  if (!draft_.ready()) return false;
  if (block < 0 || block >= kMaxBlocks) {
    reports_.fail("block", mark,
                  fmt::format("tb {}: thread blocks are 0 to {}", block, kMaxBlocks - 1));
    return false;
  }
  const auto b = static_cast<uint32_t>(block);
  if (!need_block(b)) return false;
  block_ = b;
  if (block_uses_[b].mark.end == 0) block_uses_[b].mark = mark;
  return true;
}

bool Places::need_block(uint32_t b) {
  if (b < draft_.out->blocks) return true;
  if (!budget_.add_blocks(b + 1 - draft_.out->blocks)) return false;
  draft_.out->blocks = b + 1;
  if (b >= block_uses_.size()) block_uses_.resize(2 * b + 4);
  return true;
}

void Places::enter_rank() {
  no_place();
  leave_pipeline();
  // Blocks that another visit made begin anew here; the check at the end looks at the ops.
  if (draft_.out->blocks > block_uses_.size()) block_uses_.resize(draft_.out->blocks);
}

void Places::leave_rank() {
  if (draft_.out == nullptr) return;
  for (uint32_t b = 0; b < draft_.out->blocks; ++b) {
    const bool full = empty_blocks_.size() >= kMaxEmptyBlocks;
    if (!block_uses_[b].has_ops && !full)
      empty_blocks_.push_back({draft_.rank, b, block_uses_[b].mark});
    block_uses_[b] = {};
  }
}

bool Places::enter_group(const List& blocks, Mark mark) {
  block_ = group_ = kNone;
  if (!draft_.ready()) return false;
  if (blocks.count == 0) {
    reports_.fail("group", mark, "an empty group");
    return false;
  }
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t b = blocks[i];
    if (b < 0 || b >= kMaxBlocks) {
      reports_.fail("block", mark,
                    fmt::format("tb {}: thread blocks are 0 to {}", b, kMaxBlocks - 1));
      return false;
    }
    if (blocks.data != nullptr && std::ranges::find(ids, b) != ids.end()) {
      reports_.fail("group", mark, fmt::format("tb {} appears twice in the group", b));
      return false;
    }
    ids.push_back(b);
  }
  if (!need_block(static_cast<uint32_t>(*std::ranges::max_element(ids)))) return false;
  const auto [it, added] =
      groups_.try_emplace(ids, static_cast<uint32_t>(draft_.program.groups.size()));
  if (added) draft_.program.groups.push_back(draft_.program.append(ids));
  group_ = it->second;
  return true;
}

bool Places::enter_pipeline(int64_t unit, int64_t chunks, Mark unit_mark, Mark chunks_mark) {
  if (loop_ != kNone) {
    reports_.fail("nesting", unit_mark, "a pipeline inside a pipeline");
    return false;
  }
  const uint32_t align = draft_.program.launch.align;
  if (unit < 1 || unit % align != 0) {
    reports_.fail("pipeline-unit", unit_mark,
                  fmt::format("'unit' {} is not a positive multiple of {}", unit, align));
    return false;
  }
  if (static_cast<uint64_t>(unit) > kMaxLoopUnit) {
    reports_.fail("pipeline-unit", unit_mark,
                  fmt::format("'unit' {} is more than {} bytes", unit, kMaxLoopUnit));
    return false;
  }
  if (chunks < 1 || chunks > kMaxChunks) {
    reports_.fail("pipeline-chunks", chunks_mark, fmt::format("a pipeline over {} chunks", chunks));
    return false;
  }
  loop_ = static_cast<uint32_t>(draft_.program.loops.size());
  loop_chunks_ = static_cast<uint32_t>(chunks);
  draft_.program.loops.push_back({static_cast<uint64_t>(unit), loop_chunks_});
  // Rounds are ceil(chunks * longest / unit): equal for every message if the ratio is.
  const int64_t divisor = std::gcd(unit, chunks);
  const std::pair<uint64_t, uint64_t> ratio(unit / divisor, chunks / divisor);
  const auto next = static_cast<uint32_t>(round_classes_.size() + 1);
  rounds_ = round_classes_.try_emplace(ratio, next).first->second;
  return true;
}

bool Places::resume_pipeline(uint32_t loop, int64_t unit, int64_t chunks, Mark mark) {
  const Loop& l = draft_.program.loops[loop];
  if (unit != static_cast<int64_t>(l.unit) || chunks != l.chunks) {
    reports_.fail(
        "pipeline-differs", mark,
        fmt::format("this pipeline was begun with unit: {}, chunks: {}", l.unit, l.chunks));
    return false;
  }
  if (!enter_pipeline(static_cast<int64_t>(l.unit), l.chunks, {}, {})) return false;
  draft_.program.loops.pop_back();
  loop_ = loop;
  return true;
}

uint32_t Places::rounds_of(const Loop& loop) const {
  const auto divisor = std::gcd(loop.unit, uint64_t{loop.chunks});
  const auto found = round_classes_.find({loop.unit / divisor, loop.chunks / divisor});
  return found == round_classes_.end() ? 0 : found->second;
}

std::string Places::rounds_text(uint32_t rounds) const {
  for (const auto& [ratio, id] : round_classes_) {
    if (id != rounds) continue;
    return fmt::format("in each round of a pipeline with unit: {}{}", ratio.first,
                       ratio.second == 1 ? "" : fmt::format(", chunks: {}", ratio.second));
  }
  return "outside pipelines";
}

std::string Places::owner_text(uint32_t owner) const {
  if ((owner & kGroupOwner) == 0) return fmt::format("tb {}", owner);
  const Slice blocks = draft_.program.groups[owner & ~kGroupOwner];
  return fmt::format("group {}", list_text(List::stored(draft_.program.values(blocks))));
}

/// By group of `part`: ours.
std::vector<uint32_t> Places::take_groups(const Places& part) {
  std::vector<uint32_t> ours;
  for (const std::vector<int64_t>* blocks : by_number(part.groups_)) {
    const auto next = static_cast<uint32_t>(draft_.program.groups.size());
    const auto [group, added] = groups_.try_emplace(*blocks, next);
    if (added) draft_.program.groups.push_back(draft_.program.append(*blocks));
    ours.push_back(group->second);
  }
  return ours;
}

/// By class of pipelines of `part`: ours. Class 0 is that of what stands in none.
std::vector<uint32_t> Places::take_round_classes(const Places& part) {
  std::vector<const std::pair<uint64_t, uint64_t>*> ratios(part.round_classes_.size());
  for (const auto& [ratio, id] : part.round_classes_) ratios[id - 1] = &ratio;
  std::vector<uint32_t> ours = {0};
  for (const auto* ratio : ratios) {
    const auto next = static_cast<uint32_t>(round_classes_.size() + 1);
    ours.push_back(round_classes_.try_emplace(*ratio, next).first->second);
  }
  return ours;
}

void Places::take_empty_blocks(const Places& part) {
  for (const EmptyBlock& empty : part.empty_blocks_) {
    if (empty_blocks_.size() < kMaxEmptyBlocks) empty_blocks_.push_back(empty);
  }
}

}  // namespace mscclc
