#include "compiler/parser/item_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "compiler/rows/row_parser.h"
#include "compiler/rows/row_types.h"

namespace mscclc {

using ast::Stmt;
using ast::StmtKind;
using ast::TextRange;

namespace {

constexpr std::string_view kItems[] = {"program",    "import",   "require", "let",     "param",
                                       "collective", "ensure",   "select",  "launch",  "def",
                                       "rank",       "language", "row",     "external"};

}  // namespace

bool ItemParser::file() {
  in_.advance();
  while (in_.tok().kind != Tok::end) {
    statements_.stop_unwinding();
    in_.set_fresh(false);
    const uint32_t before = in_.tok().place.begin;
    if (in_.tok().kind == Tok::semicolon) {
      in_.advance();
    } else if (in_.tok().kind == Tok::rbrace) {
      in_.error("unmatched-brace", in_.tok().place, "'}' without a '{'");
      in_.advance();
    } else if (const ast::Stmt* stmt = item()) {
      items_.push(stmt);
      if (!in_.end_statement()) statements_.recover(before);
    } else if (!statements_.unwinding()) {
      statements_.recover(before);
    }
  }
  file_.items = items_.take(0, ast_.arena());
  return in_.errors() == 0;
}

const Stmt* ItemParser::item() {
  const Stmt* stmt = known_item();
  if (stmt == nullptr || !file_.is_ir) return stmt;
  const StmtKind kind = stmt->kind;
  const bool banned = kind == StmtKind::param || kind == StmtKind::let || kind == StmtKind::def ||
                      kind == StmtKind::import;
  if (banned) in_.not_in_ir(stmt->keyword, "'" + std::string(ast_.text(stmt->keyword)) + "'");
  return stmt;
}

const Stmt* ItemParser::known_item() {
  switch (in_.tok().symbol) {
    case ast::w_language:
      return version(StmtKind::language, in_.last_end() == 0);
    case ast::w_ir:
      return version(StmtKind::ir, in_.last_end() == 0);
    case ast::w_program:
      return program_item();
    case ast::w_import:
      return import();
    case ast::w_require:
      return require();
    case ast::w_param:
      return definitions_.let(StmtKind::param);
    case ast::w_let:
      return definitions_.let(StmtKind::let);
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
    case ast::w_row:
      return row();
    case ast::w_external:
      return externals();
    case ast::w_rank:
      return statements_.placed(StmtKind::rank);
    default:
      return no_item();
  }
}

/// Something at file level that is no item.
const Stmt* ItemParser::no_item() {
  const std::string text(ast_.text(in_.tok().place));
  if (in_.begins_statement(in_.tok())) {
    in_.error("misplaced", in_.tok().place, "'" + text + "' belongs inside a 'rank' body");
    return statements_.statement();
  }
  if (in_.tok().kind != Tok::name) return in_.no("an item");
  if (in_.peek().kind == Tok::lparen && !in_.next().newline) {
    in_.error("misplaced", in_.tok().place,
              "the call of '" + text + "' belongs inside a 'rank' body");
    return nullptr;
  }
  const std::string near = nearest(text, {std::begin(kItems), std::end(kItems)});
  in_.error("unknown-item", in_.tok().place,
            "unknown item '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  return nullptr;
}

/// Reports an item that stands a second time.
bool ItemParser::once(StmtKind kind) {
  TextRange& seen = seen_[static_cast<size_t>(kind)];
  if (seen.end != 0) {
    in_.error("repeated-item", in_.tok().place,
              "a second '" + std::string(ast_.text(in_.tok().place)) + "' line")
        .notes.push_back({"the first is here", ast_.span(seen)});
    return false;
  }
  seen = in_.tok().place;
  return true;
}

const Stmt* ItemParser::version(StmtKind kind, bool first) {
  ast::Version* s = in_.start<ast::Version>(kind);
  if (!first) {
    in_.error("misplaced", in_.tok().place,
              "'" + std::string(ast_.text(in_.tok().place)) + "' must come first");
  }
  in_.advance();
  if (!in_.here(Tok::integer)) return in_.no("a version number");
  s->number = static_cast<int64_t>(in_.tok().value);
  if (s->number != 1) {
    in_.error("unknown-version", in_.tok().place,
              std::string(kind == StmtKind::ir ? "IR" : "language") + " version " +
                  std::string(ast_.text(in_.tok().place)) +
                  " is unknown; this compiler knows version 1");
  }
  in_.advance();
  file_.is_ir = kind == StmtKind::ir;
  if (file_.is_ir && in_.here(ast::w_from)) {
    in_.advance();
    TextRange place;
    if (!in_.string_value(s->from, place)) return nullptr;
  }
  return in_.finish(s);
}

const Stmt* ItemParser::program_item() {
  ast::ProgramItem* s = in_.start<ast::ProgramItem>(StmtKind::program);
  once(StmtKind::program);
  s->description = description(in_.tok().place.begin);
  in_.advance();
  if (in_.here(Tok::string)) {
    std::string_view name;
    TextRange place;
    if (!in_.string_value(name, place)) return nullptr;
    s->name = {ast_.names().intern(name), place.begin + 1};
  } else if (in_.at_word()) {
    s->name = in_.take_name();
  } else
    return in_.no("a name");
  return in_.finish(s);
}

/// The comment lines directly above byte `begin`, without '# '.
std::string_view ItemParser::description(uint32_t begin) {
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

const Stmt* ItemParser::import() {
  ast::Import* s = in_.start<ast::Import>(StmtKind::import);
  in_.advance();
  return in_.string_value(s->path, s->path_place) ? in_.finish(s) : nullptr;
}

const Stmt* ItemParser::require() {
  ast::Require* s = in_.start<ast::Require>(StmtKind::require);
  in_.advance();
  if (!exprs_.expr(s->condition)) return nullptr;
  if (!in_.accept_comma()) return in_.no("',' and a message");
  return in_.string_value(s->message, s->message_place) ? in_.finish(s) : nullptr;
}

const Stmt* ItemParser::collective() {
  ast::Collective* s = in_.start<ast::Collective>(StmtKind::collective);
  once(StmtKind::collective);
  in_.advance();
  if (!in_.at_word()) return in_.no("a kind of collective");
  s->collective = in_.take_name();
  const Token opened = in_.tok();
  if (!in_.here(Tok::lparen)) return in_.no("'('");
  in_.open_bracket();
  if (!ops_.options(s->options) || !in_.close(Tok::rparen, opened, "',' or ')'")) return nullptr;
  return in_.finish(s);
}

const Stmt* ItemParser::options_item(StmtKind kind) {
  ast::Options* s = in_.start<ast::Options>(kind);
  once(kind);
  in_.advance();
  return ops_.options(s->options) ? in_.finish(s) : nullptr;
}

bool ItemParser::term(ast::Term& out) {
  const uint32_t begin = in_.tok().place.begin;
  if (!in_.here(Tok::name)) return in_.expected("'input' or 'output'");
  out.buffer = in_.take_name();
  if (!exprs_.index_list(out.index) || !in_.expect(ast::w_at) || !exprs_.expr(out.rank))
    return false;
  out.place = in_.since(begin);
  return true;
}

const Stmt* ItemParser::ensure() {
  ast::Ensure* s = in_.start<ast::Ensure>(StmtKind::ensure);
  in_.advance();
  if (!term(s->left)) return nullptr;
  if (!in_.here(Tok::assign)) return in_.no("'='");
  in_.advance_line();
  s->reduced = in_.here(ast::w_reduce);
  if (!(s->reduced ? reduction(*s) : terms(*s))) return nullptr;
  if (in_.here(ast::w_for)) {
    in_.advance();
    if (!exprs_.binders(s->binders)) return nullptr;
  }
  return in_.finish(s);
}

/// `reduce( term, … for binders )`
bool ItemParser::reduction(ast::Ensure& out) {
  in_.advance();
  const Token opened = in_.tok();
  if (!in_.here(Tok::lparen)) return in_.expected("'('");
  in_.open_bracket();
  if (!terms(out)) return false;
  if (in_.here(ast::w_for)) {
    in_.advance();
    if (!exprs_.binders(out.inner)) return false;
  }
  return in_.close(Tok::rparen, opened, "',', 'for' or ')'");
}

/// One term, or of a reduction more.
bool ItemParser::terms(ast::Ensure& out) {
  const size_t mark = terms_.mark();
  do {
    ast::Term t;
    if (!term(t)) return false;
    terms_.push(t);
  } while (out.reduced && in_.accept_comma());
  out.terms = terms_.take(mark, ast_.arena());
  return true;
}

const Stmt* ItemParser::def() {
  ast::Def* s = in_.start<ast::Def>(StmtKind::def);
  in_.advance();
  in_.callable_name(in_.tok());
  if (!in_.declared_name(s->name)) return nullptr;
  if (!in_.here(Tok::lparen)) return in_.no("'('");
  return definitions_.names_list(s->parameters) && statements_.block(s->body) ? in_.finish(s)
                                                                              : nullptr;
}

/// A row function: what is wrong in it has been reported, and it is over.
const Stmt* ItemParser::row() {
  ast::RowItem* s = in_.start<ast::RowItem>(StmtKind::row);
  rows::RowParser parser(ast_, in_, diagnostics_);
  std::optional<rows::Function> function = parser.declaration();
  s->name = parser.name();
  s->function = ast_.add_function(function ? *std::move(function) : rows::Function());
  return in_.finish(s);
}

/// `external name: kind type use holding, …`, or flags.
const Stmt* ItemParser::externals() {
  ast::Externals* s = in_.start<ast::Externals>(StmtKind::external);
  in_.advance();
  if (in_.here(ast::w_flags) && in_.peek().kind == Tok::name) {
    ast::FlagsDecl* declared = in_.start<ast::FlagsDecl>(StmtKind::flags);
    declared->keyword = s->keyword;
    return flags(*declared) ? in_.finish(declared) : nullptr;
  }
  do {
    ast::ExternalDecl declared{};
    if (!external(declared)) return nullptr;
    externals_.push(declared);
  } while (in_.accept_comma());
  s->externals = externals_.take(0, ast_.arena());
  return in_.finish(s);
}

/// `flags name[count] of: input, …`
bool ItemParser::flags(ast::FlagsDecl& out) {
  in_.advance();
  return in_.declared_name(out.name) && exprs_.index_list(out.count) && ops_.options(out.options);
}

bool ItemParser::external(ast::ExternalDecl& out) {
  if (!in_.declared_name(out.name)) return false;
  rows::Stored stored{.name = std::string(ast_.text(out.name))};
  if (!rows::read_stored(ast_, in_, stored, std::nullopt)) return false;
  out.kind = stored.kind;
  out.type = stored.type;
  out.group = stored.group;
  const auto word = [&] { return in_.at_word() ? ast_.text(in_.tok().symbol) : ""; };
  if (in_.here(ast::w_in)) {
    in_.advance();
  } else if (const auto use = rows::find_use(word())) {
    out.use = *use;
    in_.advance();
  }
  if (const auto holding = rows::find_holding(word())) {
    out.holding = *holding;
    in_.advance();
  }
  if (word().empty() || in_.fresh()) return true;
  return in_.expected("'in', 'out' or 'inout', then 'local', 'replicated' or 'sharded'");
}

}  // namespace mscclc
