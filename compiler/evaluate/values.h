// What names stand for, by symbol. The resolver (resolve.h) has checked that every name is declared
// before it is used, so a name is one load; a call saves and restores what its body declares. Lists
// live in a stack-like arena and are shared, never copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/builder/draft/list.h"
#include "ir/program/program.h"

namespace mscclc {

enum class ValueKind : uint8_t {
  unbound,  ///< also: its mistake has been reported
  integer,
  boolean,
  list,
  format,  ///< of packets; only `packets:` takes it
  function,
  def,
  buffer,
  channel,
  semaphore,
  external,
  flags,
  row,  ///< a row function
};

/// What a name stands for.
struct Value {
  ValueKind kind = ValueKind::unbound;
  union {
    int64_t integer = 0;  ///< boolean: 0 or 1
    PacketFormat format;
    const List* list;
    const ast::Definition* function;
    const ast::Def* def;
    NameId thing;  ///< buffer, channel, semaphore; external, flags, row: the program's number of it
  };
  static Value of(int64_t v) {
    Value out;
    out.kind = ValueKind::integer;
    out.integer = v;
    return out;
  }
  static Value of_bool(bool v) {
    Value out;
    out.kind = ValueKind::boolean;
    out.integer = v ? 1 : 0;
    return out;
  }
};
/// "a number", "a list" …
std::string_view kind_text(ValueKind kind);

/// Memory for lists, freed in reverse order of allocation.
class ListArena {
 public:
  struct Mark {
    size_t block = 0, used = 0;
  };
  Mark mark() const { return at_; }
  void release(Mark mark) { at_ = mark; }
  /// nullptr when more than kMaxElements are alive.
  int64_t* allocate(size_t n);
  List* make(const List& list);

  static constexpr size_t kMaxElements = size_t{1} << 26;

 private:
  struct Block {
    std::unique_ptr<int64_t[]> data;
    size_t size;
  };
  std::vector<Block> blocks_;
  Mark at_;
};

/// Symbols that the body of a function or def declares, to be saved while it runs.
using Locals = std::vector<ast::Symbol>;

class NameValues {
 public:
  explicit NameValues(size_t symbols) : values_(symbols) {}

  Value& of(ast::Symbol s) { return values_[s]; }
  const Value& of(ast::Symbol s) const { return values_[s]; }

  /// Names that the body of a function or def declares.
  void set_locals(ast::Symbol function, const Locals* locals);
  const Locals& locals(ast::Symbol function) const { return *locals_[function]; }

  // A stack of values that are put aside. Marks are what mark() gave.
  size_t mark() const { return saved_.size(); }
  void push(const Value& v) { saved_.push_back(v); }
  const Value& saved(size_t at) const { return saved_[at]; }
  void drop(size_t mark) { saved_.resize(mark); }
  /// Puts the values of `locals` aside, and gives the mark by which restore() brings them back.
  size_t save(const Locals& locals);
  void restore(const Locals& locals, size_t mark);

 private:
  std::vector<Value> values_;
  std::vector<const Locals*> locals_;  ///< by symbol of a function or def
  std::vector<Value> saved_;
};

}  // namespace mscclc
