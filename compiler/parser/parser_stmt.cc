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
    error("misplaced", tok_.place, "'else' must follow the '}' of its 'if'");
  } else {
    expected("a statement");
  }
  return nullptr;
}

bool Parser::not_in_ir(Place place, const std::string& what) {
  error("not-in-ir", place, "IR text has no " + what);
  return false;
}

namespace {

/// What this language has for a statement that others have.
std::string_view neighbour_remedy(std::string_view word) {
  struct Row {
    std::string_view word, remedy;
  };
  static constexpr std::string_view kSend =
      "to send, write 'put ch.inbox[0] <- input[0]' and then 'signal ch'";
  static constexpr std::string_view kReceive =
      "to receive, write 'wait ch'; what the sender put is then in this rank's buffer";
  static constexpr Row kRows[] = {
      {"send", kSend},
      {"isend", kSend},
      {"recv", kReceive},
      {"irecv", kReceive},
      {"receive", kReceive},
      {"write", "to write, use 'put ch.inbox[0] <- input[0]'"},
      {"read", "to read, use 'get output[0] <- ch.input[0]'"},
      {"add", "to add up, write 'reduce output[0] <- input[0], inbox[0]'"},
      {"while", "every number is known when the program is compiled: 'for i in 0..n { ... }'"},
      {"return", "the value of a function is its last line, without a keyword"},
      {"var", "name a value with 'let n = ...'"},
      {"const", "name a value with 'let n = ...'"},
  };
  for (const Row& row : kRows) {
    if (row.word == word) return row.remedy;
  }
  return {};
}

}  // namespace

const Stmt* Parser::unknown_op() {
  std::vector<std::string_view> candidates = {"let", "buffer", "channel", "semaphore",
                                              "tb",  "group",  "for",     "if"};
  for (const OpInfo& op : op_table()) candidates.push_back(op.name);
  const std::string text(ast_.text(tok_.place));
  const std::string_view remedy = neighbour_remedy(text);
  const std::string called = called_op();
  const std::string near =
      remedy.empty() && called.empty() ? nearest(text, candidates) : std::string();
  Diagnostic& diagnostic =
      error("unknown-op", tok_.place,
            "unknown op '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  if (!called.empty()) {
    diagnostic.notes.push_back({"the op comes first: '" + called + "'", {}});
  } else if (!remedy.empty()) {
    diagnostic.notes.push_back({std::string(remedy), {}});
  } else if (peek().kind == Tok::assign) {
    diagnostic.notes.push_back({"name a value with 'let " + text + " = ...'", {}});
  } else if (next_.kind == Tok::dot) {
    diagnostic.notes.push_back({"the op comes first, as in 'put ch.inbox <- input'", {}});
  }
  return nullptr;
}

/// For `ch[p].put(...)`, as other languages write it: how it is written here. Empty for others.
std::string Parser::called_op() const {
  const std::string_view text(file_.text);
  const size_t head = tok_.place.begin - file_.base;
  size_t at = tok_.place.end - file_.base;
  const size_t line = std::min(text.find('\n', at), text.size());
  if (at < line && text[at] == '[') at = std::min(text.find(']', at), line - 1) + 1;
  if (at >= line || text[at] != '.') return {};
  const size_t begin = at + 1, end = std::min(text.find('(', begin), line);
  const auto op = find_op(text.substr(begin, end - begin));
  if (end == line || !op) return {};
  const std::string owner(text.substr(head, at - head));
  const OpInfo& row = info(*op);
  const std::string name(row.name);
  if (row.dsts.count == 0) return name;
  if (row.dsts.slot[0].kind == SlotKind::channel) return name + " " + owner;
  if (row.dsts.slot[0].kind == SlotKind::remote)
    return name + " " + owner + ".inbox[0] <- input[0]";
  return name + " output[0] <- " + owner + ".input[0]";
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
  if (!declared_name(s->name) || !dimensions(*s)) return nullptr;
  if (at_word() && !options(s->options)) return nullptr;
  return finish(s);
}

/// `[ dimension, … ]`, each a number, a list, or `name in list`.
bool Parser::dimensions(ast::BufferDecl& out) {
  const Token opened = tok_;
  const size_t mark = binders_.mark();
  if (!here(Tok::lbracket)) return expected("'['");
  open_bracket();
  do {
    ast::Binder dim;
    if (!binder_or_expr(dim)) return false;
    binders_.push(dim);
  } while (accept_comma());
  out.dims = binders_.take(mark, ast_.arena());
  if (!close(Tok::rbracket, opened, "',' or ']'")) return false;
  out.dims_place = since(opened.place.begin);
  return true;
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
    if (!at_name()) return no("the name of a channel");
    s->other = take_name();
    if (here(Tok::lbracket) && !index_list(s->other_keys)) return nullptr;
    s->other_place = since(begin);
  }
  if (here(ast::w_where)) {
    advance();
    ast::Expr* condition = ast_.arena().make<ast::Expr>();
    if (!expr(*condition)) return nullptr;
    s->where = condition;
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
    more = more && tok_.symbol == ast::w_else;  // which may begin a line
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
