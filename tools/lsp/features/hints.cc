#include "tools/lsp/features/hints.h"

#include <fmt/format.h>

#include <string>

#include "tools/lsp/features/placements.h"

namespace mscclc::lsp {
namespace {

class Hints {
 public:
  Hints(Document& document, const Range& range)
      : document_(document),
        tree_(*document.tree()),
        begin_(document.lines().byte(range.start)),
        end_(document.lines().byte(range.end)),
        ranks_(document.checked().program->ranks.size()),
        placements_(placements_of(*document.checked().program)) {}

  Json list() {
    for (const Item& item : tree_.items) {
      if (item.imported) continue;
      if (item.stmt->kind == ast::StmtKind::rank) block(item.stmt->as<ast::Placed>().body, false);
      if (item.stmt->kind == ast::StmtKind::def) block(item.stmt->as<ast::Def>().body, true);
    }
    return std::move(out_);
  }

 private:
  /// `placed`: the author has chosen the thread blocks.
  void block(const ast::Block& b, bool placed) {
    for (const ast::Stmt* s : b.statements) statement(*s, placed);
  }

  void statement(const ast::Stmt& s, bool placed) {
    switch (s.kind) {
      case ast::StmtKind::tb:
        return block(s.as<ast::Placed>().body, true);
      case ast::StmtKind::group:
        return block(s.as<ast::Group>().body, true);
      case ast::StmtKind::for_:
        return block(s.as<ast::For>().body, placed);
      case ast::StmtKind::pipeline:
        return block(s.as<ast::Pipeline>().body, placed);
      case ast::StmtKind::if_:
        for (const ast::If::Arm& arm : s.as<ast::If>().arms) block(arm.body, placed);
        return;
      case ast::StmtKind::op:
        return op(s.as<ast::OpStmt>(), placed);
      case ast::StmtKind::channel:
        return channel(s.as<ast::ChannelDecl>());
      default:
        return;
    }
  }

  LineColumn place_of(ast::TextRange place) const {
    const Span span = tree_.ast.span(place);
    return {span.line, span.column};
  }

  void op(const ast::OpStmt& s, bool placed) {
    const LineColumn place = place_of(s.keyword);
    if (const auto gone = placements_.removed.find(place); gone != placements_.removed.end()) {
      after(s, "left out", fmt::format("Nothing needs it: pass '{}' left it out.", gone->second));
    }
    const auto found = placements_.ops.find(place);
    if (found == placements_.ops.end()) return;
    const Placement& p = found->second;
    for (const auto& [kind, ranks] : p.before) before(s, kind, ranks);
    if (!p.became.contains(s.op)) {
      std::string kinds;
      for (const OpKind kind : p.became) {
        kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", info(kind).name);
      }
      after(s, "in " + kinds, "The compiler has joined ops to this one.");
    }
    if (!placed) {
      after(s, "tb " + text_of(p.blocks), "The compiler has chosen the thread block.");
    }
    for (const auto& [kind, ranks] : p.after) {
      after(s, std::string(info(kind).name), added_text(ranks));
    }
  }

  /// Who uses a channel's sides: each serves one thread block.
  void channel(const ast::ChannelDecl& s) {
    const auto found = placements_.channels.find(place_of(tree_.ast.place(s.name)));
    if (found == placements_.channels.end()) return;
    const auto& [signals, waits] = found->second;
    std::string text;
    if (!signals.empty()) text += "signals: tb " + text_of(signals);
    if (!waits.empty())
      text += fmt::format("{}waits: tb {}", text.empty() ? "" : ", ", text_of(waits));
    if (!text.empty()) after(s, text, "The thread blocks that use the two sides of this end.");
  }

  std::string added_text(const Numbers& ranks) const {
    return ranks.size() == ranks_
               ? "Added by the compiler, on all ranks."
               : fmt::format("Added by the compiler, on rank {}.", text_of(ranks));
  }

  void before(const ast::Stmt& s, OpKind kind, const Numbers& ranks) {
    add(s.keyword.begin, std::string(info(kind).name), added_text(ranks), "paddingRight");
  }
  void after(const ast::Stmt& s, const std::string& label, const std::string& tooltip) {
    add(s.place.end, label, tooltip, "paddingLeft");
  }
  void add(uint32_t at, const std::string& label, const std::string& tooltip, const char* padding) {
    const auto bytes = tree_.bytes({at, at});
    if (!bytes || bytes->begin < begin_ || bytes->begin > end_) return;
    out_.push_back({{"position", to_json(document_.lines().position(bytes->begin))},
                    {"label", label},
                    {"tooltip", tooltip},
                    {padding, true}});
  }

  Document& document_;
  const Tree& tree_;
  const size_t begin_, end_;
  const size_t ranks_;
  Placements placements_;
  Json out_ = Json::array();
};

}  // namespace

Json hints(Document& document, const Range& range) {
  const bool known = document.is_current() && document.tree()->whole &&
                     document.checked().program && document.checked().program->split;
  return known ? Hints(document, range).list() : Json::array();
}

}  // namespace mscclc::lsp
