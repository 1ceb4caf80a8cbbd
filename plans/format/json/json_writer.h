// Objects and lists as JSON text, on top of JsonOut: what stands between members, it writes.
//
//   json.object("id", rank, "ops", [&] { json.list(ops, [](const Op& op) { return op.name; }); });
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "plans/format/json/json_out.h"

namespace mscclc {

/// How JSON is laid out, as Python's json.dumps() does: `indent` spaces for each level, and none
/// but `compact` decides on spaces after commas and colons.
struct JsonLayout {
  int32_t indent = -1;   ///< -1: one line
  bool compact = false;  ///< no spaces at all in a line
};

class JsonWriter {
 public:
  /// `level`: how deep the text stands.
  explicit JsonWriter(JsonOut& out, JsonLayout layout = {.indent = -1, .compact = true},
                      uint32_t level = 0)
      : out_(out), layout_(layout), level_(level) {}

  /// One value: a truth value, a number, a character that needs no escape, a text, or what a
  /// function writes.
  template <class Value>
  void value(const Value& value) {
    if constexpr (std::is_invocable_v<Value>) {
      value();
    } else if constexpr (std::is_same_v<Value, bool>) {
      out_.text(value ? "true" : "false");
    } else if constexpr (std::is_same_v<Value, char>) {
      out_.need(3);
      out_.character('"');
      out_.character(value);
      out_.character('"');
    } else if constexpr (std::is_integral_v<Value>) {
      out_.need(kDigits);
      if constexpr (std::is_signed_v<Value>) {
        out_.integer(value);
      } else if constexpr (sizeof(Value) <= sizeof(uint32_t)) {
        out_.number(value);
      } else {
        out_.number64(value);
      }
    } else {
      out_.string(value);
    }
  }
  /// Members of the object that is open: names, which need no escapes, and values, in turn.
  template <size_t N, class Value, class... More>
  void members(const char (&name)[N], const Value& one, const More&... more) {
    element();
    out_.need(N + 4);
    out_.character('"');
    out_.literal(name);
    out_.literal("\": ");
    if (layout_.compact) out_.take_back();
    value(one);
    if constexpr (sizeof...(more) > 0) members(more...);
  }
  /// One with any name.
  template <class Value>
  void member(std::string_view name, const Value& one) {
    element();
    out_.string(name);
    out_.text(layout_.compact ? ":" : ": ");
    value(one);
  }
  template <class... Members>
  void object(const Members&... all) {
    open('{');
    members(all...);
    close('}');
  }
  /// What `write` gives, or writes, of each.
  template <class List, class Write>
  void list(const List& list, const Write& write) {
    open('[');
    for (const auto& one : list) element(one, write);
    close(']');
  }
  template <class List>
  void list(const List& values) {
    list(values, [](const auto& one) { return one; });
  }
  /// Elements of the list that is open.
  template <class... Values>
  void elements(const Values&... all) {
    ((element(), value(all)), ...);
  }
  /// One more: what `write` gives, or writes, of `one`.
  template <class One, class Write>
  void element(const One& one, const Write& write) {
    element();
    if constexpr (std::is_void_v<std::invoke_result_t<Write, One>>) {
      write(one);
    } else {
      value(write(one));
    }
  }
  void open(char bracket) {
    character(bracket);
    ++level_;
    empty_ = true;
  }
  void close(char bracket) {
    --level_;
    if (!empty_) new_line();
    character(bracket);
    empty_ = false;
  }

 private:
  static constexpr size_t kDigits = 32;  ///< of a number, with room to spare

  /// Comes before each element.
  void element() {
    if (!empty_) {
      out_.need(2);
      out_.character(',');
      if (!layout_.compact && layout_.indent < 0) out_.character(' ');
    }
    new_line();
    empty_ = false;
  }
  void character(char c) {
    out_.need(1);
    out_.character(c);
  }
  void new_line() {
    if (layout_.indent < 0) return;
    character('\n');
    for (uint64_t left = static_cast<uint64_t>(layout_.indent) * level_; left > 0; --left) {
      character(' ');
    }
  }

  JsonOut& out_;
  const JsonLayout layout_;
  uint32_t level_;
  bool empty_ = true;
};

}  // namespace mscclc
