#include "compiler/ast/arena.h"

#include <sys/mman.h>

#include <algorithm>

namespace mscclc::ast {
namespace {

constexpr size_t kFirstBlock = 16 << 10, kLastBlock = 8 << 20;  // bytes
constexpr size_t kHugePage = 2 << 20;

}  // namespace

/// Large blocks ask for huge pages: a tree of hundreds of MB would spend more time in page faults
/// than in the parser.
void* Arena::more(size_t bytes) {
  const size_t doubled = std::min(kLastBlock, kFirstBlock << std::min<size_t>(blocks_.size(), 16));
  size_t size = std::max(doubled, bytes);
  const bool huge = size >= kHugePage;
  if (huge) size = (size + kHugePage - 1) / kHugePage * kHugePage;
  const auto align = std::align_val_t{huge ? kHugePage : alignof(std::max_align_t)};
  char* block = static_cast<char*>(::operator new(size, align));
  blocks_.emplace_back(block, Free{align});
  if (huge) madvise(block, size, MADV_HUGEPAGE);  // a hint: it may fail
  at_ = block + bytes;
  end_ = block + size;
  return block;
}

}  // namespace mscclc::ast
