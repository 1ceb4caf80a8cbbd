// Names of a program: what is declared, where each name stands, and which are visible where. The
// rules are those of the resolver (compiler/resolve), which reports what breaks them; here a name
// that means nothing is left out.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/ast/ast.h"
#include "tools/lsp/language/tree.h"

namespace mscclc::lsp {

enum class Kind : uint8_t {
  parameter,  ///< param
  value,      ///< let
  variable,   ///< of a loop, a list or a rank's body
  argument,   ///< of a def or a function
  function,
  def,
  buffer,
  channel,
  semaphore,
  row,       ///< a row function
  external,  ///< rows or a number of the caller's
  flags,     ///< an array of flags
  callers,   ///< input and output
};
/// "parameter", "loop variable" …
std::string_view name_of(Kind kind);

inline constexpr uint32_t kNothing = 0xffffffffu;

/// What encloses a declaration: it decides what a name's values are.
struct Around {
  const ast::Binder* binder = nullptr;          ///< a loop over its values
  const ast::Definition* definition = nullptr;  ///< a value
  const ast::Expr* condition = nullptr;         ///< of an 'if'
  bool holds = true;                            ///< the condition; else its opposite
  uint32_t outer = kNothing;                    ///< what encloses this, in Names::around()
};

struct Declared {
  Kind kind = Kind::value;
  ast::Symbol symbol = ast::kNoSymbol;
  const ast::Stmt* statement = nullptr;         ///< that declares it
  const ast::Definition* definition = nullptr;  ///< of parameters, values and functions
  const ast::Binder* binder = nullptr;          ///< of variables
  std::vector<ast::TextRange> scopes = {};      ///< where it is visible
  uint32_t around = kNothing;                   ///< the innermost, in Names::around()
  bool evaluable = true;  ///< no argument of a def or a function is visible there
};

/// A name where it stands.
struct Use {
  ast::TextRange place;
  uint32_t declared = 0;  ///< in Names::all()
  bool declares = false;
};

class Names {
 public:
  /// The tree must outlive it.
  explicit Names(const Tree& tree);
  const std::vector<Declared>& all() const { return all_; }
  /// All uses, in the order of their places.
  const std::vector<Use>& uses() const { return uses_; }
  /// The name at a byte of the document, or right before it; nullptr: there is none.
  const Use* at(size_t byte) const;
  /// The places where it stands, and whether they declare it.
  std::vector<Use> uses_of(uint32_t declared) const;
  /// What is visible at a byte of the document.
  std::vector<const Declared*> visible(size_t byte) const;
  const Around& around(uint32_t number) const { return around_[number]; }
  const Tree& tree() const { return tree_; }

 private:
  friend class NameFinder;
  const Tree& tree_;
  std::vector<Declared> all_;
  std::vector<Use> uses_;
  std::vector<Around> around_;
};

}  // namespace mscclc::lsp
