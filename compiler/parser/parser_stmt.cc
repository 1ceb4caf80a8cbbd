// Blocks and statements.
#include "compiler/parser/parser_state.h"

namespace mscclc {

using ast::Place;
using ast::Stmt;
using ast::StmtKind;

bool Parser::block(ast::Block& out) {
  if (!here(Tok::lbrace)) {
    Diagnostic& diagnostic = expected_but("'{'");
    if (here(Tok::assign)) diagnostic.notes.push_back({"a comparison is written '=='", {}});
    return false;
  }
  const Place open = tok_.place;
  if (blocks_ == ast::kMaxBlocks) {
    error("nested-too-deep", open,
          "blocks nest deeper than " + std::to_string(ast::kMaxBlocks) + " levels");
    skip_braces();
    return false;
  }
  const size_t mark = statements_.mark();
  ++blocks_;
  advance();
  const bool closed = statements(open);
  --blocks_;
  out.statements = statements_.take(mark, ast_.arena());
  out.place = since(open.begin);
  return closed;
}

/// The statements of a block and its '}'.
bool Parser::statements(Place open) {
  while (true) {
    fresh_ = false;
    const bool item = tok_.kind == Tok::keyword && tok_.symbol < ast::w_let;
    if (tok_.kind == Tok::end || (item && at_margin())) {
      missing_brace(open);
      return false;
    }
    if (tok_.kind == Tok::rbrace) {
      advance();
      return true;
    }
    if (tok_.kind == Tok::semicolon) {
      advance();
      continue;
    }
    const uint32_t before = tok_.place.begin;
    const Stmt* stmt = statement();
    if (unwinding_) return false;
    if (stmt != nullptr) statements_.push(stmt);
    if (stmt != nullptr && end_statement()) continue;
    recover(before);
    if (unwinding_) return false;
  }
}

const Stmt* Parser::statement() {
  switch (tok_.kind) {
    case Tok::op:
      if (tok_.symbol == ast::w_barrier) return barrier();
      if (tok_.symbol == ast::w_pipeline) return pipeline();
      return op();
    case Tok::keyword:
      return keyword_statement();
    case Tok::name:
      return peek().kind == Tok::lparen && !next_.newline ? call() : unknown_op();
    default:
      return no("a statement");
  }
}

const Stmt* Parser::keyword_statement() {
  const Place place = tok_.place;
  const ast::Symbol word = tok_.symbol;
  const bool unrolled = word == ast::w_let || word == ast::w_for || word == ast::w_if;
  if (unrolled && file_.is_ir) not_in_ir(place, "'" + std::string(ast_.text(place)) + "'");
  switch (word) {
    case ast::w_let:
      return let(StmtKind::let);
    case ast::w_buffer:
      return buffer();
    case ast::w_channel:
      return channel();
    case ast::w_semaphore:
      return semaphores();
    case ast::w_tb:
      return placed(StmtKind::tb);
    case ast::w_group:
      return group();
    case ast::w_for:
      return for_loop();
    case ast::w_if:
      return if_chain();
    default:
      return not_a_statement();
  }
}

/// A keyword that begins no statement.
const Stmt* Parser::not_a_statement() {
  if (tok_.symbol < ast::w_let) {
    error("misplaced", tok_.place,
          "'" + std::string(ast_.text(tok_.place)) + "' belongs at file level, not inside a block");
    return known_item();
  }
  if (tok_.symbol == ast::w_else) {
    error("misplaced", tok_.place, "'else' must follow the '}' of its 'if', on the same line");
  } else {
    expected("a statement");
  }
  return nullptr;
}

bool Parser::not_in_ir(Place place, const std::string& what) {
  error("not-in-ir", place, "IR text has no " + what);
  return false;
}

const Stmt* Parser::unknown_op() {
  std::vector<std::string_view> candidates = {"let", "buffer", "channel", "semaphore",
                                              "tb",  "group",  "for",     "if"};
  for (const OpInfo& op : op_table()) candidates.push_back(op.name);
  const std::string text(ast_.text(tok_.place));
  const std::string near = nearest(text, candidates);
  Diagnostic& diagnostic =
      error("unknown-op", tok_.place,
            "unknown op '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  if (peek().kind == Tok::assign) {
    diagnostic.notes.push_back({"a value gets its name by 'let " + text + " = ...'", {}});
  } else if (next_.kind == Tok::dot) {
    diagnostic.notes.push_back({"the op comes first, as in 'put ch.inbox <- input'", {}});
  }
  return nullptr;
}

/// rank, tb
const Stmt* Parser::placed(StmtKind kind) {
  ast::Placed* s = start<ast::Placed>(kind);
  advance();
  return binder_or_expr(s->at) && block(s->body) ? finish(s) : nullptr;
}

const Stmt* Parser::buffer() {
  ast::BufferDecl* s = start<ast::BufferDecl>(StmtKind::buffer);
  advance();
  if (!declared_name(s->name) || !index_list(s->dims)) return nullptr;
  if (at_word() && !options(s->options)) return nullptr;
  return finish(s);
}

/// `[ binders ]` or `[ expr, … ]`, or nothing.
bool Parser::keys(ast::Array<const ast::Binder>& out) {
  if (!here(Tok::lbracket)) return true;
  const Token opened = tok_;
  const size_t mark = binders_.mark();
  open_bracket();
  bool named = false;
  do {
    ast::Binder key;
    const bool first = binders_.mark() == mark;
    if (!(first || !named ? binder_or_expr(key) : binder(key))) return false;
    if (first) named = key.name.given();
    if (key.name.given() != named) {
      error("expected", key.place, "keys are all numbers or all of the form 'name in list'");
      return false;
    }
    binders_.push(key);
  } while (accept_comma());
  out = binders_.take(mark, ast_.arena());
  return close(Tok::rbracket, opened, "',' or ']'");
}

const Stmt* Parser::channel() {
  ast::ChannelDecl* s = start<ast::ChannelDecl>(StmtKind::channel);
  advance();
  if (!declared_name(s->name) || !keys(s->keys)) return nullptr;
  if (!here(Tok::assign)) return no("'='");
  advance_line();
  if (!here(Tok::name)) return no("'memory', 'port' or 'switch'");
  s->channel = take_name();
  const Token opened = tok_;
  if (!here(Tok::lparen)) return no("'('");
  open_bracket();
  if (!expr(s->peer) || !close(Tok::rparen, opened, "')'")) return nullptr;
  if (here(ast::w_to)) {
    advance();
    const uint32_t begin = tok_.place.begin;
    if (!here(Tok::name)) return no("the name of a channel");
    s->other = take_name();
    if (here(Tok::lbracket) && !index_list(s->other_keys)) return nullptr;
    s->other_place = since(begin);
  }
  if (at_word() && !options(s->options)) return nullptr;
  return finish(s);
}

const Stmt* Parser::semaphores() {
  ast::Semaphores* s = start<ast::Semaphores>(StmtKind::semaphore);
  const size_t mark = semaphores_.mark();
  advance();
  do {
    ast::SemaphoreDecl d;
    const uint32_t begin = tok_.place.begin;
    if (!declared_name(d.name) || !keys(d.keys)) return nullptr;
    if (here(Tok::assign)) {
      advance_line();
      if (!expr(d.initial)) return nullptr;
    }
    d.place = since(begin);
    semaphores_.push(d);
  } while (accept_comma());
  s->semaphores = semaphores_.take(mark, ast_.arena());
  return finish(s);
}

const Stmt* Parser::group() {
  ast::Group* s = start<ast::Group>(StmtKind::group);
  advance();
  return expr(s->blocks) && block(s->body) ? finish(s) : nullptr;
}

const Stmt* Parser::for_loop() {
  ast::For* s = start<ast::For>(StmtKind::for_);
  advance();
  return binders(s->binders) && block(s->body) ? finish(s) : nullptr;
}

const Stmt* Parser::pipeline() {
  ast::Pipeline* s = start<ast::Pipeline>(StmtKind::pipeline);
  advance();
  return options(s->options) && block(s->body) ? finish(s) : nullptr;
}

const Stmt* Parser::if_chain() {
  ast::If* s = start<ast::If>(StmtKind::if_);
  const size_t mark = arms_.mark();
  bool more = true;
  while (more) {
    ast::If::Arm arm;
    more = here(ast::w_if);  // else it is the block of a plain `else`
    if (more) {
      advance();
      if (!expr(arm.condition)) return nullptr;
    }
    if (!block(arm.body)) return nullptr;
    arms_.push(arm);
    more = more && here(ast::w_else);
    if (more) advance();
  }
  s->arms = arms_.take(mark, ast_.arena());
  return finish(s);
}

const Stmt* Parser::call() {
  if (file_.is_ir) not_in_ir(tok_.place, "calls");
  ast::Call* s = start<ast::Call>(StmtKind::call);
  s->def = take_name();
  const Token opened = tok_;
  const size_t mark = exprs_.mark();
  open_bracket();
  if (tok_.kind != Tok::rparen && !expr_list()) return nullptr;
  s->arguments = exprs_.take(mark, ast_.arena());
  return close(Tok::rparen, opened, "',' or ')'") ? finish(s) : nullptr;
}

}  // namespace mscclc
