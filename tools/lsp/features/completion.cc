#include "tools/lsp/features/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "compiler/ast/symbols.h"
#include "compiler/resolve/options.h"
#include "ir/contract/collectives.h"
#include "ir/ops/dtypes.h"
#include "ir/ops/ops.h"
#include "tools/lsp/features/declaration_text.h"
#include "tools/lsp/features/word.h"

namespace mscclc::lsp {
namespace {

// The protocol's numbers of kinds of items.
enum ItemKind {
  kFunction = 3,
  kVariable = 6,
  kProperty = 10,
  kKeyword = 14,
  kConstant = 21,
  kOperator = 24
};

ItemKind item_kind(Kind kind) {
  switch (kind) {
    case Kind::function:
    case Kind::def:
    case Kind::row:
      return kFunction;
    case Kind::parameter:
      return kConstant;
    default:
      return kVariable;
  }
}

/// Where the cursor is, by the statement's text before it.
struct Cursor {
  std::string_view statement;  ///< from its first word to the word that is being typed
  std::string_view first;      ///< its first word; empty: a statement begins here
  bool in_block = false;       ///< else at the file's level
  bool after_dot = false;
  std::string_view option;  ///< "packets": its value is being typed
};

size_t statement_begin(std::string_view text, size_t byte) {
  size_t at = byte;
  while (at > 0) {
    const char c = text[at - 1];
    if (c == ';' || c == '{' || c == '}') break;
    if (c == '\n' && !goes_on(text.substr(0, at - 1))) break;
    --at;
  }
  return std::min(text.find_first_not_of(" \t\r\n", at), byte);
}

bool within_braces(std::string_view text, size_t byte) {
  int depth = 0;
  bool comment = false, string = false;
  for (const char c : text.substr(0, byte)) {
    if (c == '\n') comment = string = false;
    if (c == '"' && !comment) string = !string;
    if (c == '#' && !string) comment = true;
    if (comment || string) continue;
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  return depth > 0;
}

Cursor cursor_at(std::string_view text, size_t byte) {
  size_t word = byte;
  while (word > 0 && is_word_character(text[word - 1])) --word;
  Cursor out;
  const size_t begin = std::min(statement_begin(text, word), word);
  out.statement = text.substr(begin, word - begin);
  size_t end = 0;
  while (end < out.statement.size() && is_word_character(out.statement[end])) ++end;
  out.first = out.statement.substr(0, end);
  out.in_block = within_braces(text, byte);
  const std::string_view before = out.statement;
  out.after_dot = before.ends_with('.') && !before.ends_with("..");
  const size_t colon = before.find_last_not_of(" [,");
  if (colon != std::string_view::npos && before[colon] == ':') {
    size_t first = colon;
    while (first > 0 && is_word_character(before[first - 1])) --first;
    out.option = before.substr(first, colon - first);
  }
  return out;
}

class Items {
 public:
  void add(std::string_view label, ItemKind kind, std::string_view detail = {}) {
    if (!seen_.insert(std::string(label)).second) return;
    Json item = {{"label", label}, {"kind", kind}};
    if (!detail.empty()) item["detail"] = detail;
    list_.push_back(std::move(item));
  }
  Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
  std::set<std::string> seen_;
};

void add_ops(Items& items) {
  for (const OpInfo& op : op_table()) {
    if (op.kind != OpKind::pipeline) items.add(op.name, kOperator, op.summary);
  }
  items.add(info(OpKind::pipeline).name, kKeyword, info(OpKind::pipeline).summary);
}

/// Keywords that begin items, those that begin statements, and the rest.
void add_keywords(Items& items, bool begins, bool in_block) {
  const auto add = [&](ast::Word word, const char* text) {
    const bool item = word <= ast::w_let && word != ast::w_ir;
    const bool statement = word >= ast::w_let && word <= ast::w_if;
    const bool within = word > ast::w_if || word == ast::w_for || word == ast::w_if;
    if (begins ? (in_block ? statement : item) : within) items.add(text, kKeyword);
  };
#define KEYWORD(word) add(ast::w_##word, #word);
#define FUNCTION(word)
#include "ir/ops/words.def"
  if (begins) return;
#define KEYWORD(word)
#define FUNCTION(word) items.add(#word, kFunction, "function of the language");
#include "ir/ops/words.def"
}

void add_options(Items& items, OptionsOf of) {
  const auto add = [&](std::string_view word) {
    if (is_option(of, word)) items.add(word, kProperty, "option");
  };
#define WELL_KNOWN(word) add(#word);
#include "compiler/ast/words.def"
#undef WELL_KNOWN
}

std::optional<OptionsOf> options_of(std::string_view first) {
  if (first == "collective") return OptionsOf::collective;
  if (first == "select") return OptionsOf::select;
  if (first == "launch") return OptionsOf::launch;
  if (first == "buffer") return OptionsOf::buffer;
  if (first == "channel") return OptionsOf::channel;
  if (first == "pipeline") return OptionsOf::pipeline;
  if (find_op(first)) return OptionsOf::op;
  return std::nullopt;
}

/// Words that are the values of an option. False: it takes expressions.
bool add_option_words(Items& items, std::string_view option) {
  if (option == "packets") {
    for (const PacketFormatInfo& f : packet_formats()) items.add(f.name, kConstant, f.summary);
    return true;
  }
  if (option == "order") {
#define ORDER(name, summary) items.add(#name, kConstant, summary);
#include "ir/contract/orders.def"
#undef ORDER
    return true;
  }
  if (option == "ops" || option == "op") {
    for (const std::string_view name : reduce_names()) items.add(name, kConstant);
    return true;
  }
  if (option == "dtypes") {
#define DTYPE(name, ...) items.add(#name, kConstant);
#include "ir/ops/dtypes.def"
#undef DTYPE
    return true;
  }
  if (option == "policy") {
    for (const char* name : {"interleaved", "blocked"}) items.add(name, kConstant);
    return true;
  }
  return false;
}

template <class Filter>
void add_names(Items& items, Document& document, size_t byte, Filter wanted) {
  const Names* names = document.names();
  if (names == nullptr) return;
  std::vector<const Declared*> visible;
  if (document.is_current()) {
    visible = names->visible(byte);
  } else {
    for (const Declared& d : names->all()) visible.push_back(&d);
  }
  for (const Declared* d : visible) {
    if (!wanted(*d)) continue;
    const std::string detail = declaration_text(names->tree(), *d);
    items.add(names->tree().ast.text(d->symbol), item_kind(d->kind),
              detail.empty() ? name_of(d->kind) : detail);
  }
}

/// Buffers at a channel's far end: those of any rank, and what a def gets as one.
void add_far_buffers(Items& items, Document& document, size_t byte) {
  const Names* names = document.names();
  if (names == nullptr) return;
  for (const Declared& d : names->all()) {
    if (d.kind == Kind::buffer || d.kind == Kind::callers) {
      items.add(names->tree().ast.text(d.symbol), kVariable, name_of(d.kind));
    }
  }
  add_names(items, document, byte, [](const Declared& d) { return d.kind == Kind::argument; });
}

void add_statements(Items& items, Document& document, size_t byte, bool in_block) {
  add_keywords(items, true, in_block);
  if (!in_block) return;
  add_ops(items);
  add_names(items, document, byte, [](const Declared& d) { return d.kind == Kind::def; });
}

void add_collectives(Items& items) {
#define COLLECTIVE(name, ...) \
  if (CollectiveKind::name != CollectiveKind::none) items.add(#name, kConstant, "collective");
#include "ir/contract/collectives.def"
#undef COLLECTIVE
}

void add_within(Items& items, Document& document, size_t byte, const Cursor& cursor) {
  const bool argument = cursor.statement.find('(') != std::string_view::npos;
  if (cursor.first == "collective" && !argument) return add_collectives(items);
  const size_t last = cursor.statement.find_last_not_of(' ');
  if (cursor.first == "channel" && last != std::string_view::npos &&
      cursor.statement[last] == '=') {
    for (const char* kind : {"memory", "port", "switch"}) items.add(kind, kKeyword, "channel");
    return;
  }
  if (const auto of = options_of(cursor.first)) add_options(items, *of);
  add_keywords(items, false, cursor.in_block);
  add_names(items, document, byte, [](const Declared& d) { return d.kind != Kind::def; });
}

}  // namespace

Json completion(Document& document, const Position& position) {
  const std::string_view text = document.text();
  const size_t byte = document.lines().byte(position);
  Items items;
  if (in_comment(text, byte)) return items.take();
  const Cursor cursor = cursor_at(text, byte);
  if (cursor.after_dot) {
    add_far_buffers(items, document, byte);
  } else if (cursor.first.empty()) {
    add_statements(items, document, byte, cursor.in_block);
  } else if (cursor.option.empty() || !add_option_words(items, cursor.option)) {
    add_within(items, document, byte, cursor);
  } else if (cursor.option == "packets") {
    add_names(items, document, byte, [](const Declared& d) { return d.kind == Kind::parameter; });
  }
  return items.take();
}

}  // namespace mscclc::lsp
