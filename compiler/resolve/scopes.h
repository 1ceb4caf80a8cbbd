// Which names are visible while the resolver walks over a program, and what they are; and of the
// things that ranks own, what is known of them on all ranks together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/resolve/resolve.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

enum class NameKind : uint8_t {
  none,
  value,  ///< let, param, binder
  function,
  def,
  argument,  ///< of a def: a value or a thing
  buffer,
  channel,
  semaphore,
  external,
  flags,
  row,  ///< a row function
};
inline bool is_thing(NameKind kind) { return kind >= NameKind::buffer; }

class Scopes {
 public:
  Scopes(const ast::Ast& ast, Resolution& resolution, Diagnostics& diagnostics);

  // ---- reporting ----
  Diagnostic& error(std::string code, ast::TextRange place, std::string message);
  /// `remedy` follows where no similar name is known: "; write ...".
  void unknown(const ast::Name& name, std::string_view remedy = {});
  void wrong_kind(const ast::Name& name, std::string_view expected);
  /// Something was reported elsewhere.
  void refuse() { good_ = false; }
  bool good() const { return good_; }

  // ---- declaring ----
  NameKind kind(ast::Symbol s) const { return names_[s].kind; }
  /// `warn`: it should be used somewhere.
  bool declare(const ast::Name& name, NameKind kind, bool warn);
  /// Something that a rank owns. With literal keys it may be declared piece by piece.
  void declare_thing(const ast::Name& name, NameKind kind, bool literal_keys, bool warn);
  size_t mark() const { return scope_.size(); }
  /// Forgets what was declared since `mark`.
  void leave(size_t mark);
  /// What is declared until end_body() belongs to the body of this function or def.
  void begin_body(ast::Symbol name, Locals* locals);
  void end_body();

  // ---- using ----
  bool used(ast::Symbol s) const { return names_[s].used; }
  void use(ast::Symbol s) { names_[s].used = things_[s].used = true; }
  /// A thing that is declared in this rank body, or an argument of this def. `remedy`: as
  /// unknown().
  void use_thing(const ast::Name& name, std::string_view expected, bool (*fits)(NameKind),
                 std::string_view remedy = {});
  void use_value(const ast::Name& name);
  /// A function or def that is called.
  void use_callee(const ast::Name& name, NameKind kind);
  /// Names at the far end of a channel; they are looked at when all bodies are known.
  void use_far_buffer(const ast::Name& name) { far_buffers_.push_back(name); }
  void use_far_channel(const ast::Name& name) { far_channels_.push_back(name); }
  /// Ends the walk: far names, and what was never used.
  void finish();

 private:
  struct Declared {
    NameKind kind = NameKind::none;
    bool used = false, warn = false;
    ast::Name name;
    bool two_kinds = false;  ///< declared again as something else, which is reported
  };
  /// What is known of a name in all rank bodies together.
  struct Thing {
    bool buffer = false, channel = false;  ///< declared as such in some body
    bool used = false;
  };

  void declared_note(Diagnostic& d, const ast::Name& name);
  std::string place_text(const ast::Name& name) const;
  template <class Filter>
  std::string did_you_mean(const ast::Name& name, Filter wanted) const;
  bool calls_itself(const ast::Name& name);
  void far_name(const ast::Name& name, bool Thing::*kind, std::string_view expected);

  const ast::Ast& ast_;
  Resolution& resolution_;
  Diagnostics& diagnostics_;
  std::vector<Declared> names_;     ///< by symbol: what is visible
  std::vector<Thing> things_;       ///< by symbol
  std::vector<ast::Symbol> scope_;  ///< what is visible, in order of declaration
  std::vector<ast::Name> far_buffers_, far_channels_, declared_things_;
  Locals* body_names_ = nullptr;
  ast::Symbol being_defined_ = ast::kNoSymbol;
  bool good_ = true;
};

}  // namespace mscclc
