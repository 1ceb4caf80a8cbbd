#include "tools/lsp/language/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "compiler/evaluate/evaluate.h"
#include "compiler/parser/parser.h"
#include "compiler/resolve/options.h"

namespace mscclc::lsp {
namespace {

constexpr size_t kShown = 4;            // values that differ
constexpr size_t kMaxVariables = 4096;  // values of a loop variable that are looked at
constexpr size_t kMaxAround = 500;      // loops, values and conditions in one another
constexpr uint64_t kMaxSteps = uint64_t{1} << 22;

class Values {
 public:
  Values(Tree& tree, const Names& names, const Defines& defines)
      : tree_(tree), names_(names), evaluator_(prepare(defines), unused_) {}

  std::string of(const Declared& d) {
    if (!known_ || !d.evaluable) return "";
    evaluator_.steps().set_max(kMaxSteps, kMaxSteps);
    header();
    if (d.kind == Kind::parameter) return one(evaluator_.value(d.symbol));
    if (d.kind != Kind::value && d.kind != Kind::variable) return "";
    for (uint32_t a = d.around; a != kNothing; a = names_.around(a).outer) {
      around_.push_back(&names_.around(a));
    }
    if (around_.size() > kMaxAround) return "";
    std::ranges::reverse(around_);
    within(d, 0);
    return d.kind == Kind::variable ? variable_text() : value_text();
  }

 private:
  /// Everything that has names must be read before the evaluator counts them.
  const ast::Ast& prepare(const Defines& defines) {
    for (const auto& [name, text] : defines) {
      Define& d = defines_.emplace_back(Define{.name = name, .text = text});
      const FileId id = tree_.sources.add("-D " + name, text);
      d.symbol = tree_.ast.names().intern(std::string_view(tree_.sources.file(id).name).substr(3));
      if (!parse_define(id, tree_.ast, d.value)) d.value = {};
    }
    known_ = resolve(tree_.ast, tree_.items, defines_, tree_.main->is_ir, resolution_, unused_);
    return tree_.ast;
  }

  // ---- the file's own values ----

  void header() {
    for (const Item& item : tree_.items) {
      if (item.stmt->kind == ast::StmtKind::param || item.stmt->kind == ast::StmtKind::let) {
        for (const ast::Definition& d : item.stmt->as<ast::Let>().definitions) define(d);
      }
    }
  }

  void define(const ast::Definition& d) {
    Value v;
    if (d.function) {
      v.kind = ValueKind::function;
      v.function = &d;
      evaluator_.names().set_locals(d.name.id, resolution_.by_symbol[d.name.id]);
    } else {
      const Define* said = find(d.name.id);
      v = evaluated(said != nullptr && said->value.given() ? said->value : d.value);
    }
    evaluator_.value(d.name.id) = v;
  }

  const Define* find(ast::Symbol symbol) const {
    const auto found = std::ranges::find(defines_, symbol, &Define::symbol);
    return found == defines_.end() ? nullptr : &*found;
  }

  Value evaluated(const ast::Expr& e) {
    Value v;
    if (const auto format = packet_format_word(tree_.ast, e)) {
      v.kind = ValueKind::format;
      v.format = *format;
    } else if (!evaluator_.eval(e, v)) {
      v = {};
    }
    return v;
  }

  // ---- what lies within ranks and loops ----

  /// Goes through all that encloses the declaration, from the i-th on. False: enough is seen.
  bool within(const Declared& d, size_t i) {
    if (i == around_.size()) return at_declaration(d);
    const Around& around = *around_[i];
    if (around.binder != nullptr) {
      (void)evaluator_.each_value(*around.binder, false, [&] { return within(d, i + 1); });
      return !enough();
    }
    if (around.condition != nullptr) {
      bool holds = false;
      if (!evaluator_.boolean(*around.condition, holds) || holds != around.holds) return !enough();
      return within(d, i + 1);
    }
    const ListArena::Mark mark = evaluator_.lists().mark();
    evaluator_.value(around.definition->name.id) = evaluated(around.definition->value);
    const bool goes_on = within(d, i + 1);
    evaluator_.lists().release(mark);
    return goes_on;
  }

  bool at_declaration(const Declared& d) {
    if (d.binder != nullptr) {
      (void)evaluator_.each_value(*d.binder, false, [&] {
        numbers_.insert(evaluator_.context().bindings.back().value);
        return !enough();
      });
      return !enough();
    }
    const ListArena::Mark mark = evaluator_.lists().mark();
    const std::string text = one(evaluated(d.definition->value));
    evaluator_.lists().release(mark);
    if (text.empty() || std::ranges::find(texts_, text) != texts_.end()) return !enough();
    texts_.push_back(text);
    when_.push_back(bindings_text());
    return !enough();
  }

  bool enough() const {
    return texts_.size() > kShown || numbers_.size() > kMaxVariables ||
           evaluator_.steps().stopped();
  }

  std::string one(const Value& v) const {
    if (v.kind == ValueKind::unbound) return "";
    if (v.kind == ValueKind::format) return std::string(mscclc::name(v.format));
    return evaluator_.context().value_text(v);
  }

  std::string bindings_text() const {
    std::string text;
    for (const Binding& b : evaluator_.context().bindings) {
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", tree_.ast.text(b.name), b.value);
    }
    return text;
  }

  /// One value is shown alone; several with what they belong to.
  std::string value_text() const {
    if (texts_.size() == 1) return texts_[0];
    std::string text;
    for (size_t i = 0; i < std::min(texts_.size(), kShown); ++i) {
      text += fmt::format("{}{} when {}", i == 0 ? "" : "; ", texts_[i], when_[i]);
    }
    return texts_.size() > kShown ? text + "; ..." : text;
  }

  /// Numbers in a row as "a..b", as the language has them.
  std::string variable_text() const {
    const std::vector<int64_t> all(numbers_.begin(), numbers_.end());
    std::string text;
    size_t parts = 0;
    for (size_t i = 0; i < all.size() && parts < 2 * kShown; ++parts) {
      size_t end = i + 1;
      while (end < all.size() && all[end] == all[end - 1] + 1) ++end;
      if (!text.empty()) text += ", ";
      text += end - i < 3 ? fmt::format("{}", fmt::join(std::span(all).subspan(i, end - i), ", "))
                          : fmt::format("{}..{}", all[i], all[end - 1] + 1);
      i = end;
      if (parts + 1 == 2 * kShown && end < all.size()) text += ", ...";
    }
    return text;
  }

  Tree& tree_;
  const Names& names_;
  std::vector<const Around*> around_;
  std::vector<Define> defines_;
  Resolution resolution_;
  Diagnostics unused_;
  bool known_ = false;
  Evaluator evaluator_;
  std::set<int64_t> numbers_;
  std::vector<std::string> texts_, when_;
};

}  // namespace

std::string values_of(Tree& tree, const Names& names, const Declared& declared,
                      const Defines& defines) {
  return Values(tree, names, defines).of(declared);
}

}  // namespace mscclc::lsp
