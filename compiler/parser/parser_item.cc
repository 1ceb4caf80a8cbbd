// Items: what stands at file level.
#include "compiler/parser/parser_state.h"

namespace mscclc {

using ast::Place;
using ast::Stmt;
using ast::StmtKind;

namespace {

constexpr std::string_view kItems[] = {"program", "import", "require", "let", "param", "collective",
                                       "ensure",  "select", "launch",  "def", "rank",  "language"};

}  // namespace

const Stmt* Parser::item() {
  const Stmt* stmt = known_item();
  if (stmt == nullptr || !file_.is_ir) return stmt;
  const StmtKind kind = stmt->kind;
  const bool banned = kind == StmtKind::param || kind == StmtKind::let || kind == StmtKind::def ||
                      kind == StmtKind::import;
  if (banned) not_in_ir(stmt->keyword, "'" + std::string(ast_.text(stmt->keyword)) + "'");
  return stmt;
}

const Stmt* Parser::known_item() {
  switch (tok_.symbol) {
    case ast::w_language:
      return version(StmtKind::language, last_end_ == 0);
    case ast::w_ir:
      return version(StmtKind::ir, last_end_ == 0);
    case ast::w_program:
      return program_item();
    case ast::w_import:
      return import();
    case ast::w_require:
      return require();
    case ast::w_param:
      return let(StmtKind::param);
    case ast::w_let:
      return let(StmtKind::let);
    case ast::w_collective:
      return collective();
    case ast::w_ensure:
      return ensure();
    case ast::w_select:
      return options_item(StmtKind::select);
    case ast::w_launch:
      return options_item(StmtKind::launch);
    case ast::w_def:
      return def();
    case ast::w_rank:
      return placed(StmtKind::rank);
    default:
      return no_item();
  }
}

/// Something at file level that is no item.
const Stmt* Parser::no_item() {
  const std::string text(ast_.text(tok_.place));
  if (begins_statement(tok_)) {
    error("misplaced", tok_.place, "'" + text + "' belongs inside a 'rank' body");
    return statement();
  }
  if (tok_.kind != Tok::name) return no("an item");
  if (peek().kind == Tok::lparen && !next_.newline) {
    error("misplaced", tok_.place, "the call of '" + text + "' belongs inside a 'rank' body");
    return nullptr;
  }
  const std::string near = nearest(text, {std::begin(kItems), std::end(kItems)});
  error("unknown-item", tok_.place,
        "unknown item '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  return nullptr;
}

/// Reports an item that stands a second time.
bool Parser::once(StmtKind kind) {
  Place& seen = seen_[static_cast<size_t>(kind)];
  if (seen.end != 0) {
    error("repeated-item", tok_.place, "a second '" + std::string(ast_.text(tok_.place)) + "' line")
        .notes.push_back({"the first is here", ast_.span(seen)});
    return false;
  }
  seen = tok_.place;
  return true;
}

const Stmt* Parser::version(StmtKind kind, bool first) {
  ast::Version* s = start<ast::Version>(kind);
  if (!first) {
    error("misplaced", tok_.place, "'" + std::string(ast_.text(tok_.place)) + "' must come first");
  }
  advance();
  if (!here(Tok::integer)) return no("a version number");
  s->number = static_cast<int64_t>(tok_.value);
  if (s->number != 1) {
    error("unknown-version", tok_.place,
          std::string(kind == StmtKind::ir ? "IR" : "language") + " version " +
              std::string(ast_.text(tok_.place)) + " is unknown; this compiler knows version 1");
  }
  advance();
  file_.is_ir = kind == StmtKind::ir;
  if (file_.is_ir && here(ast::w_from)) {
    advance();
    Place place;
    if (!string_value(s->from, place)) return nullptr;
  }
  return finish(s);
}

const Stmt* Parser::program_item() {
  ast::ProgramItem* s = start<ast::ProgramItem>(StmtKind::program);
  once(StmtKind::program);
  s->description = description(tok_.place.begin);
  advance();
  if (here(Tok::string)) {
    std::string_view name;
    Place place;
    if (!string_value(name, place)) return nullptr;
    s->name = {ast_.names().intern(name), place.begin + 1};
  } else if (at_word()) {
    s->name = take_name();
  } else
    return no("a name");
  return finish(s);
}

/// The comment lines directly above byte `begin`, without '# '.
std::string_view Parser::description(uint32_t begin) {
  const std::string_view text = file_.text;
  const auto line_begin = [&](size_t at) {
    const size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    return newline == std::string_view::npos ? 0 : newline + 1;
  };
  const size_t end = line_begin(begin - file_.base);
  size_t top = end;
  while (top > 0) {
    const size_t above = line_begin(top - 1);
    const size_t first = text.find_first_not_of(" \t", above);
    if (text[first] != '#') break;
    top = above;
  }
  char* out = static_cast<char*>(ast_.arena().allocate(end - top));
  char* at = out;
  while (top < end) {
    const size_t newline = text.find('\n', top);
    std::string_view line = text.substr(top, newline - top);
    line.remove_prefix(line.find('#') + 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
      line.remove_suffix(1);
    }
    if (at != out) *at++ = '\n';
    at = std::copy(line.begin(), line.end(), at);
    top = newline + 1;
  }
  return {out, static_cast<size_t>(at - out)};
}

const Stmt* Parser::import() {
  ast::Import* s = start<ast::Import>(StmtKind::import);
  advance();
  return string_value(s->path, s->path_place) ? finish(s) : nullptr;
}

const Stmt* Parser::require() {
  ast::Require* s = start<ast::Require>(StmtKind::require);
  advance();
  if (!expr(s->condition)) return nullptr;
  if (!accept_comma()) return no("',' and a message");
  return string_value(s->message, s->message_place) ? finish(s) : nullptr;
}

const Stmt* Parser::collective() {
  ast::Collective* s = start<ast::Collective>(StmtKind::collective);
  once(StmtKind::collective);
  advance();
  if (!at_word()) return no("a kind of collective");
  s->collective = take_name();
  const Token opened = tok_;
  if (!here(Tok::lparen)) return no("'('");
  open_bracket();
  if (!options(s->options) || !close(Tok::rparen, opened, "',' or ')'")) return nullptr;
  return finish(s);
}

const Stmt* Parser::options_item(StmtKind kind) {
  ast::Options* s = start<ast::Options>(kind);
  once(kind);
  advance();
  return options(s->options) ? finish(s) : nullptr;
}

bool Parser::term(ast::Term& out) {
  const uint32_t begin = tok_.place.begin;
  if (!here(Tok::name)) return expected("'input' or 'output'");
  out.buffer = take_name();
  if (!index_list(out.index) || !expect(ast::w_at) || !expr(out.rank)) return false;
  out.place = since(begin);
  return true;
}

const Stmt* Parser::ensure() {
  ast::Ensure* s = start<ast::Ensure>(StmtKind::ensure);
  advance();
  if (!term(s->left)) return nullptr;
  if (!here(Tok::assign)) return no("'='");
  advance_line();
  s->reduced = here(ast::w_reduce);
  if (!(s->reduced ? reduction(*s) : terms(*s))) return nullptr;
  if (here(ast::w_for)) {
    advance();
    if (!binders(s->binders)) return nullptr;
  }
  return finish(s);
}

/// `reduce( term, … for binders )`
bool Parser::reduction(ast::Ensure& out) {
  advance();
  const Token opened = tok_;
  if (!here(Tok::lparen)) return expected("'('");
  open_bracket();
  if (!terms(out)) return false;
  if (here(ast::w_for)) {
    advance();
    if (!binders(out.inner)) return false;
  }
  return close(Tok::rparen, opened, "',', 'for' or ')'");
}

/// One term, or of a reduction more.
bool Parser::terms(ast::Ensure& out) {
  const size_t mark = terms_.mark();
  do {
    ast::Term t;
    if (!term(t)) return false;
    terms_.push(t);
  } while (out.reduced && accept_comma());
  out.terms = terms_.take(mark, ast_.arena());
  return true;
}

const Stmt* Parser::def() {
  ast::Def* s = start<ast::Def>(StmtKind::def);
  advance();
  callable_name(tok_);
  if (!declared_name(s->name)) return nullptr;
  if (!here(Tok::lparen)) return no("'('");
  return names_list(s->parameters) && block(s->body) ? finish(s) : nullptr;
}

/// `( names )`, perhaps empty. REQUIRES: at '('.
bool Parser::names_list(ast::Array<const ast::Name>& out) {
  const Token opened = tok_;
  const size_t mark = names_.mark();
  open_bracket();
  if (tok_.kind != Tok::rparen) {
    do {
      ast::Name name;
      if (!declared_name(name)) return false;
      names_.push(name);
    } while (accept_comma());
  }
  out = names_.take(mark, ast_.arena());
  return close(Tok::rparen, opened, "',' or ')'");
}

const Stmt* Parser::let(StmtKind kind) {
  ast::Let* s = start<ast::Let>(kind);
  advance();
  const size_t mark = definitions_.mark();
  do {
    if (!definition(kind)) return nullptr;
  } while (accept_comma());
  s->definitions = definitions_.take(mark, ast_.arena());
  return finish(s);
}

bool Parser::definition(StmtKind kind) {
  ast::Definition d;
  const Token name = tok_;
  const Place place = name.place;
  if (!declared_name(d.name)) return false;
  if (kind == StmtKind::let && here(Tok::lparen)) {
    if (blocks_ > 0) {
      error("misplaced", place,
            "the function '" + std::string(ast_.text(place)) + "' must be defined at file level");
    }
    d.function = true;
    callable_name(name);
    if (!names_list(d.parameters)) return false;
  }
  if (!here(Tok::assign)) return expected("'='");
  advance_line();
  if (!(d.function && here(Tok::lbrace) ? function_body(d) : expr(d.value))) return false;
  definitions_.push(d);
  return true;
}

/// `{ let y = … ; … ; value }`. REQUIRES: at '{'.
bool Parser::function_body(ast::Definition& out) {
  ++blocks_;
  advance();
  const bool good = function_values(out);
  --blocks_;
  if (!good) skip_body();
  return good;
}

bool Parser::function_values(ast::Definition& out) {
  const size_t mark = definitions_.mark();
  while (true) {
    fresh_ = false;
    if (tok_.kind == Tok::semicolon) {
      advance();
    } else if (tok_.symbol == ast::w_let) {
      advance();
      do {
        if (!definition(StmtKind::let)) return false;
      } while (accept_comma());
      if (!end_statement()) return false;
    } else {
      break;
    }
  }
  out.locals = definitions_.take(mark, ast_.arena());
  if (tok_.kind == Tok::rbrace) return expected("the value of the function");
  if (!expr(out.value) || !end_statement()) return false;
  while (tok_.kind == Tok::semicolon) advance();
  fresh_ = false;
  return expect(Tok::rbrace, "'}'");
}

/// After a mistake in the body of a function: to what follows its '}'.
void Parser::skip_body() {
  brackets_ = depth_ = 0;
  while (tok_.kind != Tok::end && tok_.kind != Tok::rbrace) {
    const bool item = tok_.kind == Tok::keyword && tok_.symbol < ast::w_let;
    if (item && at_margin()) return;
    tok_.kind == Tok::lbrace ? skip_braces() : advance();
  }
  if (tok_.kind == Tok::rbrace) advance();
}

}  // namespace mscclc
