#include "compiler/parser/statement_parser.h"

#include <algorithm>

#include "compiler/parser/item_parser.h"

namespace mscclc {

using ast::Stmt;
using ast::StmtKind;
using ast::TextRange;

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

bool StatementParser::block(ast::Block& out) {
  if (!in_.here(Tok::lbrace)) {
    Diagnostic& diagnostic = in_.expected_but("'{'");
    if (in_.here(Tok::assign)) diagnostic.notes.push_back({"a comparison is written '=='", {}});
    return false;
  }
  const TextRange open = in_.tok().place;
  if (definitions_.blocks() == ast::kMaxBlocks) {
    in_.error("nested-too-deep", open,
              "blocks nest deeper than " + std::to_string(ast::kMaxBlocks) + " levels");
    in_.skip_braces();
    return false;
  }
  const size_t mark = statements_.mark();
  definitions_.enter_block();
  in_.advance();
  const bool closed = statements(open);
  definitions_.leave_block();
  out.statements = statements_.take(mark, ast_.arena());
  out.place = in_.since(open.begin);
  return closed;
}

/// The statements of a block and its '}'.
bool StatementParser::statements(TextRange open) {
  while (true) {
    in_.set_fresh(false);
    const bool item = in_.tok().kind == Tok::keyword && in_.tok().symbol < ast::w_let;
    if (in_.tok().kind == Tok::end || (item && in_.at_margin())) {
      missing_brace(open);
      return false;
    }
    if (in_.tok().kind == Tok::rbrace) {
      in_.advance();
      return true;
    }
    if (in_.tok().kind == Tok::semicolon) {
      in_.advance();
      continue;
    }
    const uint32_t before = in_.tok().place.begin;
    const Stmt* stmt = statement();
    if (unwinding_) return false;
    if (stmt != nullptr) statements_.push(stmt);
    if (stmt != nullptr && in_.end_statement()) continue;
    recover(before);
    if (unwinding_) return false;
  }
}

const Stmt* StatementParser::statement() {
  switch (in_.tok().kind) {
    case Tok::op:
      if (in_.tok().symbol == ast::w_barrier) return ops_.barrier();
      if (in_.tok().symbol == ast::w_pipeline) return pipeline();
      return ops_.op();
    case Tok::keyword:
      return keyword_statement();
    case Tok::name:
      return in_.peek().kind == Tok::lparen && !in_.next().newline ? call() : unknown_op();
    default:
      return in_.no("a statement");
  }
}

const Stmt* StatementParser::keyword_statement() {
  const TextRange place = in_.tok().place;
  const ast::Symbol word = in_.tok().symbol;
  const bool unrolled = word == ast::w_let || word == ast::w_for || word == ast::w_if;
  if (unrolled && file_.is_ir) in_.not_in_ir(place, "'" + std::string(ast_.text(place)) + "'");
  switch (word) {
    case ast::w_let:
      return definitions_.let(StmtKind::let);
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
const Stmt* StatementParser::not_a_statement() {
  if (in_.tok().symbol < ast::w_let) {
    in_.error("misplaced", in_.tok().place,
              "'" + std::string(ast_.text(in_.tok().place)) +
                  "' belongs at file level, not inside a block");
    return items_.known_item();
  }
  if (in_.tok().symbol == ast::w_else) {
    in_.error("misplaced", in_.tok().place, "'else' must follow the '}' of its 'if'");
  } else {
    in_.expected("a statement");
  }
  return nullptr;
}

const Stmt* StatementParser::unknown_op() {
  std::vector<std::string_view> candidates = {"let", "buffer", "channel", "semaphore",
                                              "tb",  "group",  "for",     "if"};
  for (const OpInfo& op : op_table()) candidates.push_back(op.name);
  const std::string text(ast_.text(in_.tok().place));
  const std::string_view remedy = neighbour_remedy(text);
  const std::string called = called_op();
  const std::string near =
      remedy.empty() && called.empty() ? nearest(text, candidates) : std::string();
  Diagnostic& diagnostic = in_.error(
      "unknown-op", in_.tok().place,
      "unknown op '" + text + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  if (!called.empty()) {
    diagnostic.notes.push_back({"the op comes first: '" + called + "'", {}});
  } else if (!remedy.empty()) {
    diagnostic.notes.push_back({std::string(remedy), {}});
  } else if (in_.peek().kind == Tok::assign) {
    diagnostic.notes.push_back({"name a value with 'let " + text + " = ...'", {}});
  } else if (in_.next().kind == Tok::dot) {
    diagnostic.notes.push_back({"the op comes first, as in 'put ch.inbox <- input'", {}});
  }
  return nullptr;
}

/// For `ch[p].put(...)`, as other languages write it: how it is written here. Empty for others.
std::string StatementParser::called_op() const {
  const std::string_view text(file_.text);
  const size_t head = in_.tok().place.begin - file_.base;
  size_t at = in_.tok().place.end - file_.base;
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
const Stmt* StatementParser::placed(StmtKind kind) {
  ast::Placed* s = in_.start<ast::Placed>(kind);
  in_.advance();
  return exprs_.binder_or_expr(s->at) && block(s->body) ? in_.finish(s) : nullptr;
}

const Stmt* StatementParser::buffer() {
  ast::BufferDecl* s = in_.start<ast::BufferDecl>(StmtKind::buffer);
  in_.advance();
  if (!in_.declared_name(s->name) || !dimensions(*s)) return nullptr;
  if (in_.at_word() && !ops_.options(s->options)) return nullptr;
  return in_.finish(s);
}

/// `[ dimension, … ]`, each a number, a list, or `name in list`.
bool StatementParser::dimensions(ast::BufferDecl& out) {
  const Token opened = in_.tok();
  const size_t mark = binders_.mark();
  if (!in_.here(Tok::lbracket)) return in_.expected("'['");
  in_.open_bracket();
  do {
    ast::Binder dim;
    if (!exprs_.binder_or_expr(dim)) return false;
    binders_.push(dim);
  } while (in_.accept_comma());
  out.dims = binders_.take(mark, ast_.arena());
  if (!in_.close(Tok::rbracket, opened, "',' or ']'")) return false;
  out.dims_place = in_.since(opened.place.begin);
  return true;
}

/// `[ binders ]` or `[ expr, … ]`, or nothing.
bool StatementParser::keys(ast::Array<const ast::Binder>& out) {
  if (!in_.here(Tok::lbracket)) return true;
  const Token opened = in_.tok();
  const size_t mark = binders_.mark();
  in_.open_bracket();
  bool named = false;
  do {
    ast::Binder key;
    const bool first = binders_.mark() == mark;
    if (!(first || !named ? exprs_.binder_or_expr(key) : exprs_.binder(key))) return false;
    if (first) named = key.name.given();
    if (key.name.given() != named) {
      in_.error("expected", key.place, "keys are all numbers or all of the form 'name in list'");
      return false;
    }
    binders_.push(key);
  } while (in_.accept_comma());
  out = binders_.take(mark, ast_.arena());
  return in_.close(Tok::rbracket, opened, "',' or ']'");
}

const Stmt* StatementParser::channel() {
  ast::ChannelDecl* s = in_.start<ast::ChannelDecl>(StmtKind::channel);
  in_.advance();
  if (!in_.declared_name(s->name) || !keys(s->keys)) return nullptr;
  if (!in_.here(Tok::assign)) return in_.no("'='");
  in_.advance_line();
  if (!in_.here(Tok::name)) return in_.no("'memory', 'port' or 'switch'");
  s->channel = in_.take_name();
  const Token opened = in_.tok();
  if (!in_.here(Tok::lparen)) return in_.no("'('");
  in_.open_bracket();
  if (!exprs_.expr(s->peer) || !in_.close(Tok::rparen, opened, "')'")) return nullptr;
  if (in_.here(ast::w_to)) {
    in_.advance();
    const uint32_t begin = in_.tok().place.begin;
    if (!in_.at_name()) return in_.no("the name of a channel");
    s->other = in_.take_name();
    if (in_.here(Tok::lbracket) && !exprs_.index_list(s->other_keys)) return nullptr;
    s->other_place = in_.since(begin);
  }
  if (in_.here(ast::w_where)) {
    in_.advance();
    ast::Expr* condition = ast_.arena().make<ast::Expr>();
    if (!exprs_.expr(*condition)) return nullptr;
    s->where = condition;
  }
  if (in_.at_word() && !ops_.options(s->options)) return nullptr;
  return in_.finish(s);
}

const Stmt* StatementParser::semaphores() {
  ast::Semaphores* s = in_.start<ast::Semaphores>(StmtKind::semaphore);
  const size_t mark = semaphores_.mark();
  in_.advance();
  do {
    ast::SemaphoreDecl d;
    const uint32_t begin = in_.tok().place.begin;
    if (!in_.declared_name(d.name) || !keys(d.keys)) return nullptr;
    if (in_.here(Tok::assign)) {
      in_.advance_line();
      if (!exprs_.expr(d.initial)) return nullptr;
    }
    d.place = in_.since(begin);
    semaphores_.push(d);
  } while (in_.accept_comma());
  s->semaphores = semaphores_.take(mark, ast_.arena());
  return in_.finish(s);
}

const Stmt* StatementParser::group() {
  ast::Group* s = in_.start<ast::Group>(StmtKind::group);
  in_.advance();
  return exprs_.expr(s->blocks) && block(s->body) ? in_.finish(s) : nullptr;
}

const Stmt* StatementParser::for_loop() {
  ast::For* s = in_.start<ast::For>(StmtKind::for_);
  in_.advance();
  return exprs_.binders(s->binders) && block(s->body) ? in_.finish(s) : nullptr;
}

const Stmt* StatementParser::pipeline() {
  ast::Pipeline* s = in_.start<ast::Pipeline>(StmtKind::pipeline);
  in_.advance();
  return ops_.options(s->options) && block(s->body) ? in_.finish(s) : nullptr;
}

const Stmt* StatementParser::if_chain() {
  ast::If* s = in_.start<ast::If>(StmtKind::if_);
  const size_t mark = arms_.mark();
  bool more = true;
  while (more) {
    ast::If::Arm arm;
    more = in_.here(ast::w_if);  // else it is the block of a plain `else`
    if (more) {
      in_.advance();
      if (!exprs_.expr(arm.condition)) return nullptr;
    }
    if (!block(arm.body)) return nullptr;
    arms_.push(arm);
    more = more && in_.tok().symbol == ast::w_else;  // which may begin a line
    if (more) in_.advance();
  }
  s->arms = arms_.take(mark, ast_.arena());
  return in_.finish(s);
}

const Stmt* StatementParser::call() {
  if (file_.is_ir) in_.not_in_ir(in_.tok().place, "calls");
  ast::DefCall* s = in_.start<ast::DefCall>(StmtKind::call);
  s->def = in_.take_name();
  const Token opened = in_.tok();
  in_.open_bracket();
  if (!exprs_.expressions(s->arguments, Tok::rparen)) return nullptr;
  return in_.close(Tok::rparen, opened, "',' or ')'") ? in_.finish(s) : nullptr;
}

}  // namespace mscclc
