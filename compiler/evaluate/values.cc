#include "compiler/evaluate/values.h"

#include <algorithm>
#include <new>

namespace mscclc {

std::string_view kind_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::integer:
      return "a number";
    case ValueKind::boolean:
      return "a boolean";
    case ValueKind::list:
      return "a list";
    case ValueKind::format:
      return "a packet format";
    case ValueKind::function:
      return "a function";
    case ValueKind::def:
      return "a def";
    case ValueKind::buffer:
      return "a buffer";
    case ValueKind::channel:
      return "a channel";
    case ValueKind::semaphore:
      return "a semaphore";
    case ValueKind::external:
      return "an external";
    case ValueKind::flags:
      return "an array of flags";
    case ValueKind::row:
      return "a row function";
    case ValueKind::unbound:
      break;
  }
  return "nothing";
}

int64_t* ListArena::allocate(size_t n) {
  constexpr size_t kBlock = 4096;
  while (at_.block < blocks_.size() && blocks_[at_.block].size - at_.used < n) {
    ++at_.block;
    at_.used = 0;
  }
  if (at_.block == blocks_.size()) {
    size_t all = 0;
    for (const Block& b : blocks_) all += b.size;
    if (n > kMaxElements || all + n > kMaxElements) return nullptr;
    const size_t size = std::max(n, kBlock);
    blocks_.push_back({std::make_unique_for_overwrite<int64_t[]>(size), size});
  }
  int64_t* at = blocks_[at_.block].data.get() + at_.used;
  at_.used += n;
  return at;
}

List* ListArena::make(const List& list) {
  static_assert(sizeof(List) % sizeof(int64_t) == 0 && alignof(List) == alignof(int64_t));
  int64_t* at = allocate(sizeof(List) / sizeof(int64_t));
  return at == nullptr ? nullptr : new (at) List(list);
}

void NameValues::set_locals(ast::Symbol function, const Locals* locals) {
  if (function >= locals_.size()) locals_.resize(values_.size());
  locals_[function] = locals;
}

size_t NameValues::save(const Locals& locals) {
  const size_t mark = saved_.size();
  for (const ast::Symbol s : locals) saved_.push_back(values_[s]);
  return mark;
}

void NameValues::restore(const Locals& locals, size_t mark) {
  for (size_t i = 0; i < locals.size(); ++i) values_[locals[i]] = saved_[mark + i];
  saved_.resize(mark);
}

}  // namespace mscclc
