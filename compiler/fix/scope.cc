#include "compiler/fix/scope.h"

#include <algorithm>
#include <utility>

namespace mscclc::fix {
namespace {

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

}  // namespace

Scope::Scope(const Outline& outline) : outline_(outline) {
  const auto size = static_cast<uint32_t>(outline.statements().size());
  for (uint32_t i = 0; i < size; ++i) declare(i);
  for (const Declared& channel : channels_) add_once(channel_operands_, channel.operand);
  for (uint32_t i = 0; i < size; ++i) read_operands(i);
}

const Declared* Scope::find(const std::vector<Declared>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Declared::name);
  return found == list.end() ? nullptr : &*found;
}

std::string Scope::text(uint32_t first, uint32_t end) const {
  if (first >= end) return "";
  const uint32_t begin = outline_.words()[first].begin;
  return outline_.text().substr(begin, outline_.words()[end - 1].end - begin);
}

uint32_t Scope::after(uint32_t word, uint32_t end) const {
  int depth = 0;
  for (uint32_t i = word; i < end; ++i) {
    const Tok kind = outline_.words()[i].kind;
    if (kind == Tok::lbracket || kind == Tok::lparen) ++depth;
    if (kind == Tok::rbracket || kind == Tok::rparen) --depth;
    if (depth == 0) return i + 1;
  }
  return end;
}

void Scope::declare(uint32_t i) {
  const std::string_view word = outline_.keyword(outline_.statements()[i]);
  auto* list = word == "channel"     ? &channels_
               : word == "buffer"    ? &buffers_
               : word == "semaphore" ? &semaphores_
                                     : nullptr;
  const Statement& s = outline_.statements()[i];
  if (list != nullptr && s.head > s.first + 1) list->push_back(declared(i));
}

/// `channel ch[p in others] = memory(p) to back` is named "ch[p] for p in others".
Declared Scope::declared(uint32_t i) const {
  const Statement& s = outline_.statements()[i];
  const auto& words = outline_.words();
  Declared found{std::string(outline_.text(words[s.first + 1])), i, "", ""};
  found.operand = found.partner = found.name;
  if (s.first + 2 < s.head && words[s.first + 2].kind == Tok::lbracket) {
    const uint32_t end = after(s.first + 2, s.head);
    const std::string keys = text(s.first + 3, end - 1);
    const bool binder = s.first + 4 < end && words[s.first + 4].kind == Tok::in_;
    found.operand = binder && keys.find(',') == std::string::npos
                        ? found.name + '[' + text(s.first + 3, s.first + 4) + "] for " + keys
                        : found.name;
  }
  for (uint32_t w = s.first; w + 1 < s.head; ++w) {
    if (outline_.text(words[w]) == "to") found.partner = outline_.text(words[w + 1]);
  }
  return found;
}

void Scope::read_operands(uint32_t i) {
  const Statement& s = outline_.statements()[i];
  const auto& words = outline_.words();
  if (words[s.first].kind != Tok::op || !outline_.in_body(i)) return;
  for (uint32_t w = s.first + 1; w < s.head; ++w) {
    if (channel(outline_.text(words[w])) == nullptr) continue;
    uint32_t end = w + 1;
    if (end < s.head && words[end].kind == Tok::lbracket) end = after(end, s.head);
    std::string operand = text(w, end);
    add_once(channel_operands_, operand);
    const bool loops = end < s.head && outline_.text(words[end]) == "for";
    if (!loops) continue;
    uint32_t last = end;
    while (last < s.head && words[last].kind != Tok::comma && words[last].kind != Tok::arrow &&
           outline_.text(words[last]) != "relaxed") {
      ++last;
    }
    add_once(channel_operands_, operand + ' ' + text(end, last));
  }
}

/// The names before 'in' of a statement's head, and those that a 'let' gives.
void Scope::add_binders(const Statement& s, std::vector<std::string>& names) const {
  const auto& words = outline_.words();
  const bool is_let = outline_.keyword(s) == "let";
  for (uint32_t w = s.first; w + 1 < s.head; ++w) {
    const Tok next = words[w + 1].kind;
    if (!words[w].is_word()) continue;
    if (next == Tok::in_ || (is_let && next == Tok::assign)) {
      add_once(names, std::string(outline_.text(words[w])));
    }
  }
}

std::vector<std::string> Scope::variables(uint32_t statement) const {
  std::vector<std::string> names;
  const auto& statements = outline_.statements();
  for (uint32_t s = statement; s != kNothing; s = statements[s].parent) {
    add_binders(statements[s], names);
    for (const uint32_t before : outline_.block_of(s)) {
      const bool visible = before < s && statements[s].parent != kNothing;
      if (visible && outline_.keyword(statements[before]) == "let") {
        add_binders(statements[before], names);
      }
    }
  }
  return names;
}

std::string Scope::ranks(uint32_t statement) const {
  const Statement& item = outline_.statements()[outline_.item_of(statement)];
  for (uint32_t w = item.first; w + 1 < item.head; ++w) {
    if (outline_.words()[w].kind == Tok::range) return text(w + 1, item.head);
  }
  return "";
}

}  // namespace mscclc::fix
