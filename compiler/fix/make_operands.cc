// Keys, indices, ranges and operands: names, numbers and signs that stand where others should.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

/// Makes the changes of one statement's head.
class Changes {
 public:
  Changes(Case& c, uint32_t statement)
      : c_(c),
        s_(c.outline().statements()[statement]),
        variables_(c.scope().variables(statement)),
        ranks_(c.scope().ranks(statement)) {}

  void keys() {
    for (uint32_t w = s_.first + 1; w < s_.head; ++w) {
      if (is_declared(w) && c_.kind(w + 1) != Tok::lbracket) add_key(w);
      if (c_.kind(w) == Tok::lbracket) widen(w);
    }
  }

  void all() {
    for (uint32_t w = s_.first + 1; w < s_.head; ++w) {
      if (is_variable(w)) variable(w);
      if (is_declared(w)) head(w);
      if (c_.kind(w) == Tok::integer) number(w);
      if (c_.kind(w) == Tok::add || c_.kind(w) == Tok::sub) sign(w);
      if (c_.kind(w) == Tok::except) exception(w);
      if (c_.kind(w) == Tok::mod) without(w, w + 2);
      if (c_.kind(w) == Tok::lbracket) swap_indices(w);
    }
    bounds();
    swap_sides();
  }

 private:
  bool is_variable(uint32_t w) const {
    const bool known = std::ranges::find(variables_, c_.word(w)) != variables_.end();
    return c_.outline().words()[w].is_word() && c_.kind(w + 1) != Tok::in_ && !is_declaration(w) &&
           (known || c_.word(w) == ranks_);
  }
  /// Is it what the statement declares?
  bool is_declaration(uint32_t w) const {
    static constexpr std::string_view kWords[] = {"buffer", "channel", "semaphore", "let"};
    const bool declares = std::ranges::find(kWords, c_.word(s_.first)) != std::end(kWords);
    return declares && w == s_.first + 1;
  }
  bool is_declared(uint32_t w) const {
    if (is_declaration(w)) return false;
    return c_.scope().channel(c_.word(w)) != nullptr || is_buffer(w);
  }
  bool is_buffer(uint32_t w) const {
    return c_.word(w) == "input" || c_.word(w) == "output" ||
           c_.scope().buffer(c_.word(w)) != nullptr;
  }

  void variable(uint32_t w) {
    for (const std::string& other : variables_) {
      if (other != c_.word(w)) c_.replace(w, other);
    }
    const std::string name(c_.word(w));
    for (const char* by : {" + 1", " - 1"}) {
      c_.put_after(w, by);
      if (ranks_.empty()) continue;
      c_.replace(w, "(" + name + by + ") % " + ranks_);
    }
  }

  /// A channel or buffer: another one.
  void head(uint32_t w) {
    if (!is_buffer(w)) {
      for (const Declared& other : c_.scope().channels()) {
        if (other.name != c_.word(w)) c_.replace(w, other.name);
      }
      return;
    }
    for (const Declared& other : c_.scope().buffers()) {
      if (other.name != c_.word(w)) c_.replace(w, other.name);
    }
    for (const char* other : {"input", "output"}) {
      if (other != c_.word(w)) c_.replace(w, other);
    }
  }

  void number(uint32_t w) {
    const std::string text(c_.word(w));
    if (text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) return;
    const int value = std::stoi(text);
    c_.replace(w, std::to_string(value + 1));
    if (value > 0) c_.replace(w, std::to_string(value - 1));
  }

  void sign(uint32_t w) {
    c_.replace(w, c_.kind(w) == Tok::add ? "-" : "+");
    if (c_.kind(w + 1) == Tok::integer) without(w, w + 2);
  }

  /// `except r`: without it.
  void exception(uint32_t w) { without(w, w + 2); }

  /// Leaves words [first, end) out.
  void without(uint32_t first, uint32_t end) {
    if (end > s_.head) return;
    const auto& words = c_.outline().words();
    const uint32_t begin = words[first - 1].end;
    const std::string text = c_.outline().text().substr(begin, words[end - 1].end - begin);
    c_.add("leave out '" + text + "'", {{0, begin, words[end - 1].end, ""}});
  }

  /// A range or list without `except`, where the head ends or a bracket closes: with it; and a
  /// number of ranks after '..' one less.
  void bounds() {
    bool range = false;
    for (uint32_t w = s_.first; w < s_.head; ++w) {
      range |= c_.kind(w) == Tok::range;
      const bool ends = w + 1 == s_.head || c_.kind(w + 1) == Tok::rbracket ||
                        c_.kind(w + 1) == Tok::comma || c_.kind(w + 1) == Tok::arrow;
      if (!ends || !range) continue;
      for (const std::string& v : variables_) c_.put_after(w, " except " + v);
      range = false;
    }
    for (uint32_t w = s_.first; w + 1 < s_.head; ++w) {
      if (c_.kind(w) != Tok::range || c_.kind(w + 1) == Tok::integer) continue;
      c_.put_after(w + 1, " - 1");
      c_.put_after(w + 1, " + 1");
    }
  }

  void add_key(uint32_t w) {
    for (const std::string& v : variables_) c_.put_after(w, "[" + v + "]");
    c_.put_after(w, "[0]");
  }

  /// One more index, before or after.
  void widen(uint32_t w) {
    for (const std::string& v : variables_) {
      c_.put_after(w, v + ", ");
      if (const uint32_t end = closing(w); end < s_.head) c_.put_before(end, ", " + v);
    }
  }

  uint32_t closing(uint32_t w) const {
    int depth = 0;
    for (; w < s_.head; ++w) {
      if (c_.kind(w) == Tok::lbracket) ++depth;
      if (c_.kind(w) == Tok::rbracket && --depth == 0) break;
    }
    return w;
  }

  /// `[a, b]`: `[b, a]`, and without either.
  void swap_indices(uint32_t w) {
    const uint32_t end = closing(w);
    uint32_t comma = w;
    while (comma < end && c_.kind(comma) != Tok::comma) ++comma;
    if (end >= s_.head || comma >= end) return;
    const auto& words = c_.outline().words();
    const std::string& text = c_.outline().text();
    const auto between = [&](uint32_t first, uint32_t last) {
      return text.substr(words[first].begin, words[last].end - words[first].begin);
    };
    const std::string a = between(w + 1, comma - 1), b = between(comma + 1, end - 1);
    for (const std::string& list : {b + ", " + a, a, b}) {
      c_.add("replace '[" + a + ", " + b + "]' with '[" + list + "]'",
             {{0, words[w].end, words[end].begin, list}});
    }
  }

  /// `put ch.a <- b`: the operands swapped.
  void swap_sides() {
    const auto& words = c_.outline().words();
    for (uint32_t w = s_.first + 2; w + 1 < s_.head; ++w) {
      if (c_.kind(w) != Tok::arrow) continue;
      const std::string& text = c_.outline().text();
      const uint32_t begin = words[s_.first + 1].begin, end = words[s_.head - 1].end;
      const std::string left = text.substr(begin, words[w - 1].end - begin);
      const std::string right = text.substr(words[w + 1].begin, end - words[w + 1].begin);
      c_.add("swap the sides of '<-'", {{0, begin, end, right + " <- " + left}});
    }
  }

  Case& c_;
  const Statement& s_;
  const std::vector<std::string> variables_;
  const std::string ranks_;
};

/// Ops that are written in one another's place.
void other_ops(Case& c, uint32_t w) {
  static const std::vector<std::vector<std::string>> kAlike = {
      {"put", "put_packets", "get"},
      {"copy", "unpack_packets", "copy_packets"},
      {"reduce", "reduce_packets", "read_reduce"},
      {"read_put_packets", "put_packets"},
      {"reduce_send", "reduce_send_packets", "reduce"},
      {"signal", "wait"},
      {"acquire", "release"},
      {"put", "put_with_signal", "put_with_signal_and_flush"},
      {"switch_reduce", "switch_reduce_broadcast"},
      {"switch_broadcast", "switch_broadcast_packets"},
  };
  for (const std::vector<std::string>& ops : kAlike) {
    if (std::ranges::find(ops, c.word(w)) == ops.end()) continue;
    for (const std::string& op : ops) {
      if (op != c.word(w)) c.replace(w, op);
    }
  }
}

}  // namespace

void add_keys(Case& c) {
  for (const uint32_t s : c.around()) Changes(c, s).keys();
}

void change_op(Case& c) {
  for (const uint32_t s : c.anchors()) other_ops(c, c.outline().statements()[s].first);
  for (const uint32_t s : c.all()) other_ops(c, c.outline().statements()[s].first);
}

void change_operands(Case& c) {
  for (const uint32_t s : c.around()) Changes(c, s).all();
}

void change_everywhere(Case& c) {
  for (const uint32_t s : c.neighbours()) Changes(c, s).all();
  for (const uint32_t s : c.all()) {
    Changes changes(c, s);
    changes.all();
    changes.keys();
  }
}

}  // namespace mscclc::fix
