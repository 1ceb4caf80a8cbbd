#include "tools/lsp/features/navigate.h"

#include <map>

#include "tools/lsp/protocol/uri.h"

namespace mscclc::lsp {
namespace {

/// Places of a tree as locations: of the document, and of the files that it imports.
class Locations {
 public:
  explicit Locations(const Document& document, const Tree& tree)
      : document_(document), tree_(tree) {}

  Json location(ast::TextRange place) {
    const ast::File& file = tree_.ast.file_of(place);
    const bool here = &file == tree_.main;
    const auto known = lines_.find(&file);
    const Lines& lines = here ? document_.lines()
                         : known != lines_.end()
                             ? known->second
                             : lines_.emplace(&file, Lines(file.text)).first->second;
    const Range range = lines.range(place.begin - file.base, place.end - file.base);
    const std::string uri = here ? document_.uri() : uri_of_path(tree_.sources.file(file.id).name);
    return {{"uri", uri}, {"range", to_json(range)}};
  }

 private:
  const Document& document_;
  const Tree& tree_;
  std::map<const ast::File*, Lines> lines_;
};

template <class Filter>
Json locations(Document& document, const Position& position, Filter wanted) {
  Json list = Json::array();
  const Use* use = document.use_at(position);
  if (use == nullptr) return list;
  Locations places(document, *document.tree());
  for (const Use& other : document.names()->uses_of(use->declared)) {
    if (wanted(other)) list.push_back(places.location(other.place));
  }
  return list;
}

// ---- symbols ---------------------------------------------------------------------------------

// The protocol's numbers of kinds of symbols.
enum SymbolKind {
  kMethod = 6,
  kFunctionSymbol = 12,
  kVariableSymbol = 13,
  kConstantSymbol = 14,
  kArraySymbol = 18,
  kNamespace = 3,
  kEvent = 24,
  kInterface = 11,
};

class Symbols {
 public:
  explicit Symbols(const Document& document, const Tree& tree) : document_(document), tree_(tree) {}

  Json list() const {
    Json out = Json::array();
    for (const Item& item : tree_.items) {
      if (!item.imported) add_item(out, *item.stmt);
    }
    return out;
  }

 private:
  void add(Json& out, const std::string& name, int kind, ast::TextRange whole,
           ast::TextRange name_place, Json children = Json::array()) const {
    const auto all = tree_.bytes(whole), selected = tree_.bytes(name_place);
    if (!all || !selected || name.empty()) return;
    out.push_back(
        {{"name", name},
         {"kind", kind},
         {"range", to_json(document_.lines().range(all->begin, all->end))},
         {"selectionRange", to_json(document_.lines().range(selected->begin, selected->end))},
         {"children", std::move(children)}});
  }
  void add(Json& out, const ast::Name& name, int kind, const ast::Stmt& s,
           Json children = Json::array()) const {
    add(out, std::string(tree_.ast.text(name)), kind, s.place, tree_.ast.place(name),
        std::move(children));
  }
  /// "rank r in 0..R": a statement with a block has no name of its own.
  void add_block(Json& out, int kind, const ast::Stmt& s, const ast::Block& block) const {
    const ast::TextRange head{s.place.begin, block.place.begin};
    std::string text(tree_.ast.text(head));
    text.erase(text.find_last_not_of(" \n") + 1);
    add(out, text, kind, s.place, s.keyword, within(block));
  }

  void add_item(Json& out, const ast::Stmt& s) const {
    switch (s.kind) {
      case ast::StmtKind::param:
      case ast::StmtKind::let:
        for (const ast::Definition& d : s.as<ast::Let>().definitions) {
          add(out, d.name,
              d.function                       ? kFunctionSymbol
              : s.kind == ast::StmtKind::param ? kConstantSymbol
                                               : kVariableSymbol,
              s);
        }
        break;
      case ast::StmtKind::def:
        add(out, s.as<ast::Def>().name, kMethod, s, within(s.as<ast::Def>().body));
        break;
      case ast::StmtKind::row:
        add(out, s.as<ast::RowItem>().name, kFunctionSymbol, s);
        break;
      case ast::StmtKind::external:
        for (const ast::ExternalDecl& e : s.as<ast::Externals>().externals) {
          add(out, e.name, kVariableSymbol, s);
        }
        break;
      case ast::StmtKind::flags:
        add(out, s.as<ast::FlagsDecl>().name, kEvent, s);
        break;
      case ast::StmtKind::rank:
        add_block(out, kNamespace, s, s.as<ast::Placed>().body);
        break;
      default:
        break;
    }
  }

  Json within(const ast::Block& block) const {
    Json out = Json::array();
    for (const ast::Stmt* s : block.statements) add_statement(out, *s);
    return out;
  }

  void add_statement(Json& out, const ast::Stmt& s) const {
    switch (s.kind) {
      case ast::StmtKind::buffer:
        return add(out, s.as<ast::BufferDecl>().name, kArraySymbol, s);
      case ast::StmtKind::channel:
        return add(out, s.as<ast::ChannelDecl>().name, kInterface, s);
      case ast::StmtKind::semaphore:
        for (const ast::SemaphoreDecl& d : s.as<ast::Semaphores>().semaphores) {
          add(out, d.name, kEvent, s);
        }
        return;
      case ast::StmtKind::tb:
        return add_block(out, kNamespace, s, s.as<ast::Placed>().body);
      case ast::StmtKind::group:
        return add_block(out, kNamespace, s, s.as<ast::Group>().body);
      default:
        return;
    }
  }

  const Document& document_;
  const Tree& tree_;
};

}  // namespace

Json definition(Document& document, const Position& position) {
  return locations(document, position, [](const Use& use) { return use.declares; });
}

Json references(Document& document, const Position& position, bool with_declaration) {
  return locations(document, position,
                   [&](const Use& use) { return with_declaration || !use.declares; });
}

Json highlights(Document& document, const Position& position) {
  Json list = Json::array();
  for (const Json& one : locations(document, position, [](const Use&) { return true; })) {
    if (one["uri"] == document.uri()) list.push_back({{"range", one["range"]}});
  }
  return list;
}

Json symbols(Document& document) {
  if (!document.is_current()) return Json::array();
  return Symbols(document, *document.tree()).list();
}

}  // namespace mscclc::lsp
