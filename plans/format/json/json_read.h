// Strict reading of a JsonTape: every access checks the type and reports an error with the JSON
// path. All functions return false after reporting, so that reading ends at the first mistake.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "plans/format/json/json_tape.h"

namespace mscclc {

class JsonReader {
 public:
  /// `code`: of mistakes that have none of their own.
  JsonReader(const JsonTape& tape, std::string name, Diagnostics& diagnostics,
             std::string code = "not-a-plan")
      : tape_(tape), name_(std::move(name)), diagnostics_(diagnostics), code_(std::move(code)) {}

  const JsonTape& tape() const { return tape_; }
  Diagnostics& diagnostics() const { return diagnostics_; }

  /// Reports a mistake at `node`, and returns false.
  bool fail(NodeId node, std::string message) const;
  bool fail(NodeId node, std::string code, std::string message) const;

  bool expect(NodeId node, JsonType type) const {
    return tape_[node].kind() == type || wrong_type(node, type);
  }
  bool u64(NodeId node, uint64_t& out) const {
    if (!expect(node, JsonType::number)) return false;
    out = tape_[node].value;
    return true;
  }
  /// A number of at most `most`.
  template <class Number>
  bool number(NodeId node, Number& out, uint64_t most = 0xffffffffu) const {
    uint64_t value = 0;
    if (!u64(node, value)) return false;
    if (value > most) return too_large(node, value, most);
    out = static_cast<Number>(value);
    return true;
  }
  bool i64(NodeId node, int64_t& out) const;
  bool boolean(NodeId node, bool& out) const;
  /// A string as its number: compare it with w_….
  bool word(NodeId node, Word& out) const {
    if (!expect(node, JsonType::string)) return false;
    out = static_cast<Word>(tape_[node].value);
    return true;
  }
  bool string(NodeId node, std::string_view& out) const;
  /// An array of numbers of at most `most`; replaces what `out` held.
  bool numbers(NodeId node, std::vector<uint32_t>& out, uint64_t most = 0xffffffffu) const;
  bool integers(NodeId node, std::vector<int64_t>& out) const;

  /// Elements of an array: `for (NodeId e = first(a); e != end(a); e = next(e))`.
  NodeId first(NodeId array) const { return array + 1; }
  NodeId end(NodeId array) const { return tape_[array].next; }
  NodeId next(NodeId node) const { return tape_[node].next; }
  uint32_t count(NodeId array) const { return static_cast<uint32_t>(tape_[array].value); }

 private:
  bool wrong_type(NodeId node, JsonType wanted) const;
  bool too_large(NodeId node, uint64_t value, uint64_t most) const;

  const JsonTape& tape_;
  std::string name_;
  Diagnostics& diagnostics_;
  const std::string code_;
};

/// The members of an object. Reports keys that are not `allowed` and `required` ones that are not
/// there.
class Members {
 public:
  bool read(const JsonReader& reader, NodeId object, KeySet required, KeySet optional = {});
  /// The member's value, or kNoNode.
  NodeId operator[](KnownWord key) const {
    for (uint32_t i = 0; i < count_; ++i) {
      if (keys_[i] == key) return nodes_[i];
    }
    return kNoNode;
  }
  bool has(KnownWord key) const { return (*this)[key] != kNoNode; }

 private:
  bool report_unknown(const JsonReader& reader, NodeId object, NodeId member) const;
  bool report_missing(const JsonReader& reader, NodeId object, KeySet missing) const;

  static constexpr uint32_t kMax = 32;
  std::array<Word, kMax> keys_;
  std::array<NodeId, kMax> nodes_;
  uint32_t count_ = 0;
};

}  // namespace mscclc
