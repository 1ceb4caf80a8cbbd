// Lists that are being parsed. They grow on stacks that are shared by the whole parse and are
// copied to the arena when complete, so a parse allocates next to nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compiler/ast/ast.h"

namespace mscclc {

/// Elements of the lists that are being parsed; inner lists lie above outer ones.
template <class T>
class Stack {
 public:
  size_t mark() const { return items_.size(); }
  void push(const T& item) { items_.push_back(item); }
  /// Moves what lies above `mark` to the arena.
  ast::Array<const T> take(size_t mark, ast::Arena& arena) {
    const size_t count = items_.size() - mark;
    T* copy = static_cast<T*>(arena.allocate(count * sizeof(T)));
    std::copy(items_.begin() + mark, items_.end(), copy);
    items_.resize(mark);
    return {copy, count};
  }

 private:
  std::vector<T> items_;
};

}  // namespace mscclc
