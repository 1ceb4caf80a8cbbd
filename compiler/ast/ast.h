// The syntax tree of `.mscl` files and of IR text. One `Ast` holds all files of a compilation (the
// program and its imports): nodes live in one arena, words are interned once by the lexer.
//
// What the unroller needs to know:
//  - Names are `Symbol`s, small dense integers: keep bindings in an array indexed by symbol, of
//    `ast.names().size()` elements (no name hides another, so one array does; save and restore it
//    around the body of a def). Every word of words.def has a fixed symbol `w_<word>`, so options
//    and functions are distinguished by a `switch`. Ops have symbols too: op_of(symbol).
//    `Expr::name.slot` of a name is for the unroller (a resolved slot, say); it starts as 0.
//  - Places are 8 bytes, global to the Ast: `ast.span(place)` makes the Span for diagnostics and
//    sites, `ast.text(place)` gives the source text ("overflow in 'x * y'"). A `Name` knows its
//    place from where it begins: ast.place(name).
//  - Everything is const after parsing (except slots) and trivially destructible; pointers into the
//    arena stay valid as long as the Ast. Depth of expressions, blocks and binder lists is bounded
//    (kMaxDepth …), so recursion over the tree is safe.
//  - Words of options (`LL16`, `either`, `sum`, `min`) are plain name expressions: the reader of
//    the option decides. Parentheses leave no trace in the tree; `-5` is an integer. Strings have
//    their escapes resolved.
//
// Division of errors: lexer and parser report all of 'Text' of the catalogue, unknown ops, reserved
// words used as names ('signal' is an op; choose another name), items inside blocks and
// statements at file level, repeated or misplaced header lines, an unknown language version, and
// what IR text must not contain, and exceeded nesting bounds. Everything else is the unroller's:
// names, values, unknown options, where `tb`, `channel` … may stand, operand shapes ('<-' of an op
// that takes none), a missing `collective`.
// Do not unroll a tree that has errors.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/ast/arena.h"
#include "compiler/ast/symbols.h"
#include "ir/rows/external.h"
#include "ir/rows/row_function.h"
#include "ir/support/source.h"

namespace mscclc::ast {

/// Bytes [begin, end) of the texts of an Ast, which follow one another.
struct TextRange {
  uint32_t begin = 0, end = 0;
};

/// A name where it is written.
struct Name {
  Symbol id = kNoSymbol;
  uint32_t begin = 0;
  bool given() const { return id != kNoSymbol; }
};

// ---- expressions ---------------------------------------------------------------------------

enum class ExprKind : uint8_t {
  none,           ///< left out (an optional expression)
  integer,        ///< value
  boolean,        ///< value is 0 or 1
  name,           ///< name.id; also the words of options
  call,           ///< kids[0] is the callee's name, the rest are arguments: f(x), min(a, b)
  index,          ///< kids[0] [ kids[1] ]
  string,         ///< *string; among the words of options only (tags)
  list,           ///< kids are the elements
  comprehension,  ///< [ loop->element for loop->binders ]
  conditional,    ///< if kids[0] then kids[1] else kids[2]
  negate,         ///< - kids[0]
  not_,           ///< not kids[0]
  binary,         ///< kids[0] op kids[1]
};

// clang-format off
enum class BinaryOp : uint8_t {
  or_, and_, eq, ne, lt, le, gt, ge, in, except, range, add, sub, mul, div, mod, pow,
  shl, shr, bit_and, bit_or, bit_xor,
};
// clang-format on

struct Comprehension;

struct Expr {
  ExprKind kind = ExprKind::none;
  BinaryOp op = BinaryOp::or_;
  uint16_t depth = 1;  ///< levels below and including this one, at most kMaxDepth
  uint32_t count = 0;  ///< of kids
  TextRange place;
  struct NameRef {
    Symbol id;
    mutable uint32_t slot;
  };
  union {
    int64_t value = 0;
    NameRef name;
    const Expr* kids;
    const Comprehension* loop;
    const std::string_view* string;
  };
  bool given() const { return kind != ExprKind::none; }
  Array<const Expr> children() const { return {kids, count}; }
};
static_assert(sizeof(Expr) == 24 && std::is_trivially_copyable_v<Expr>);

/// `p in L where C`. Also stands where a bare expression may stand instead: then `name` is not
/// given and the expression is `list` (`tb 2`, the keys of `up[1, 3]`).
struct Binder {
  Name name;
  Expr list;
  const Expr* where = nullptr;  ///< null: no condition
  TextRange place;
};

struct Comprehension {
  Expr element;
  Array<const Binder> binders;
};

/// `name`, `name: value` or `name: value..`.
struct Option {
  Name name;
  Expr value;             ///< not given: a bare word (`relaxed`)
  bool open_end = false;  ///< `2..`
  TextRange place;
};

/// `head[…].member[…] for p in L`; head is a buffer, a channel or a semaphore.
struct Operand {
  Name head, member;        ///< member not given: no '.'
  Array<const Expr> index;  ///< empty: no brackets (brackets are never empty)
  Array<const Expr> member_index;
  const Binder* binder = nullptr;  ///< null: no `for`
  TextRange place;                 ///< without the `for`
  uint32_t head_end = 0;           ///< `head[…]` is [place.begin, head_end)
};

/// One `@` of an op in IR text.
struct LocationValue {
  Name name;
  int64_t value;
};
struct Location {
  std::string_view file;  ///< empty: this file (IR text: the one of its `from`)
  uint32_t line = 0, column = 0;
  Array<const LocationValue> values;
  TextRange place;
};

/// `output[c] at q`.
struct Term {
  Name buffer;
  Array<const Expr> index;
  Expr rank;
  TextRange place;
};

// ---- items and statements ------------------------------------------------------------------

// clang-format off
enum class StmtKind : uint8_t {
  language, ir, program, import, require, param, collective, ensure, select, launch, def, rank,
  row, external, flags, let,
  buffer, channel, semaphore, tb, group, for_, pipeline, if_, call, barrier, op,
};
// clang-format on

/// Base of all items and statements; `as<T>()` gives the whole.
struct Stmt {
  StmtKind kind;
  TextRange place;    ///< all of it, blocks included
  TextRange keyword;  ///< the word it begins with (of a call the def's name)
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*this);
  }
};

struct Block {
  Array<const Stmt* const> statements;
  TextRange place;  ///< from '{' to '}', both included
};

struct Version : Stmt {  ///< language, ir
  int64_t number;
  std::string_view from;  ///< ir 1 from "FILE": the file of locations that name none
};

struct ProgramItem : Stmt {
  Name name;  ///< a string's content if written as a string, as IR text may
  /// The comment above, without '# ', lines joined by '\n'.
  std::string_view description;
};

struct Import : Stmt {
  std::string_view path;
  TextRange path_place;
};

struct Require : Stmt {
  Expr condition;
  std::string_view message;
  TextRange message_place;
};

/// One definition of `let` or `param`.
struct Definition {
  Name name;
  bool function = false;  ///< let f(x) = …
  Array<const Name> parameters;
  /// Of a function with a body, `{ let y = … ; value }`: its values, in order.
  Array<const Definition> locals;
  Expr value;
};
struct Let : Stmt {  ///< let, param
  Array<const Definition> definitions;
};

struct Collective : Stmt {
  Name collective;  ///< any word; find it with find_collective(ast.text(collective))
  Array<const Option> options;
};

/// ensure left = terms[0] for binders, or (reduced)
/// ensure left = reduce(terms for inner) for binders. Both `for` may be left out.
struct Ensure : Stmt {
  Term left;
  bool reduced = false;
  Array<const Term> terms;  ///< one or, of a reduce, more
  Array<const Binder> inner, binders;
};

struct Options : Stmt {  ///< select, launch
  Array<const Option> options;
};

struct Def : Stmt {
  Name name;
  Array<const Name> parameters;
  Block body;
};

struct RowItem : Stmt {  ///< a row function, of Ast::functions()
  Name name;
  uint32_t function;
};

/// name: kind type use holding
struct ExternalDecl {
  Name name;
  rows::Kind kind;
  rows::Type type;
  uint32_t group;
  rows::Use use;
  rows::Holding holding;
};
struct Externals : Stmt {
  Array<const ExternalDecl> externals;
};

/// external flags name[count] of: input, raises: n, bits: 64, scope: system, after: other
struct FlagsDecl : Stmt {
  Name name;
  Array<const Expr> count;  ///< one number
  Array<const Option> options;
};

struct Placed : Stmt {  ///< rank, tb: binder (name given) or one value
  Binder at;
  Block body;
};

struct BufferDecl : Stmt {
  Name name;
  /// Without a name: a number or a list. With one, later dimensions may depend on the index.
  Array<const Binder> dims;
  TextRange dims_place;  ///< from '[' to ']'
  Array<const Option> options;
};

/// channel name[keys] = kind(peer) to other[other_keys] where condition credits: n
struct ChannelDecl : Stmt {
  Name name;
  Array<const Binder> keys;  ///< all with names, or none
  Name channel;              ///< memory, port, switch, or a mistake
  Expr peer;
  Name other;  ///< not given: no 'to'
  Array<const Expr> other_keys;
  TextRange other_place;
  const Expr* where = nullptr;  ///< null: no condition
  Array<const Option> options;
};

struct SemaphoreDecl {
  Name name;
  Array<const Binder> keys;
  Expr initial;  ///< may be not given
  TextRange place;
};
struct Semaphores : Stmt {
  Array<const SemaphoreDecl> semaphores;
};

struct Group : Stmt {
  Expr blocks;
  Block body;
};

struct For : Stmt {
  Array<const Binder> binders;
  Block body;
};

struct Pipeline : Stmt {
  Array<const Option> options;
  Block body;
};

/// if … { } else if … { } else { }
struct If : Stmt {
  struct Arm {
    Expr condition;  ///< not given in a last, plain `else`
    Block body;
  };
  Array<const Arm> arms;
};

struct DefCall : Stmt {
  Name def;
  Array<const Expr> arguments;
};

struct Barrier : Stmt {
  Expr blocks;
  Array<const Location> locations;
};

struct OpStmt : Stmt {
  OpKind op;
  Name function;           ///< of `apply`, or after `then`
  bool has_arrow = false;  ///< '<-' is written
  bool has_then = false;   ///< `then FUNCTION results <- parameters`
  uint32_t dst_count = 0, src_count = 0;
  /// After `then`: externals among the results; where `_` stands among results and parameters.
  uint32_t result_count = 0, output = 0, sum = 0;
  /// Destinations (or all there are, without '<-'), then sources; after `then` externals: results,
  /// then parameters.
  Array<const Operand> operands;
  Array<const Option> options;
  Array<const Location> locations;
  Array<const Operand> dsts() const { return {operands.begin(), dst_count}; }
  Array<const Operand> srcs() const { return {operands.begin() + dst_count, src_count}; }
  Array<const Operand> results() const {
    return {operands.begin() + dst_count + src_count, result_count};
  }
  Array<const Operand> params() const {
    const uint32_t before = dst_count + src_count + result_count;
    return {operands.begin() + before, operands.size() - before};
  }
};

// ---- the whole -----------------------------------------------------------------------------

/// Levels of an expression, of nested blocks, binders in one list.
inline constexpr int kMaxDepth = 256, kMaxBlocks = 64, kMaxBinders = 64;
/// Bytes of a file.
inline constexpr uint32_t kMaxFileBytes = 1u << 30;

/// One parsed file.
struct File {
  FileId id = 0;
  uint32_t base = 0;  ///< its first byte among the Ast's places
  std::string_view text;
  bool is_ir = false;  ///< begins with `ir 1`
  Array<const Stmt* const> items;

  /// Line (from 0) that holds byte `offset` of the text, and where a line begins.
  uint32_t line_at(uint32_t offset) const;
  uint32_t line_begin(uint32_t line) const { return lines_[line]; }

 private:
  mutable std::vector<uint32_t> lines_;     // filled when first asked for
  mutable std::atomic<uint32_t> last_ = 0;  // several threads may ask
};

/// True if the value of `e` depends on the name.
bool mentions(const Expr& e, Symbol name);

class Ast {
 public:
  explicit Ast(const Sources& sources) : sources_(sources) {}
  Ast(const Ast&) = delete;
  Ast& operator=(const Ast&) = delete;

  Names& names() { return names_; }
  const Names& names() const { return names_; }
  std::string_view text(Symbol s) const { return names_.text(s); }
  std::string_view text(const Name& n) const { return names_.text(n.id); }
  TextRange place(const Name& n) const {
    return {n.begin, n.begin + static_cast<uint32_t>(names_.text(n.id).size())};
  }
  Span span(TextRange place) const;
  Span span(const Name& n) const { return span(place(n)); }
  /// The source text of a place.
  std::string_view text(TextRange place) const;
  const File& file_of(TextRange place) const;
  const std::deque<File>& files() const { return files_; }
  const std::deque<rows::Function>& functions() const { return functions_; }
  /// Several threads may ask for spans from now on.
  void prepare_for_threads() const {
    for (const File& file : files_) file.line_at(0);
  }

  // For the parser.
  Arena& arena() { return arena_; }
  /// nullptr if the file is too big (not reported).
  File* add_file(FileId id);
  /// Its number in functions().
  uint32_t add_function(rows::Function function) {
    functions_.push_back(std::move(function));
    return static_cast<uint32_t>(functions_.size() - 1);
  }

 private:
  const Sources& sources_;
  Names names_;
  Arena arena_;
  std::deque<File> files_;
  std::deque<rows::Function> functions_;
};

}  // namespace mscclc::ast
