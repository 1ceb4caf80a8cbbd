#include "plans/format/json/json_read.h"

#include <fmt/format.h>

#include <utility>

#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

constexpr std::string_view kTypeNames[] = {
    "null",          "a boolean", "a number", "a negative number",
    "a real number", "a string",  "an array", "an object"};

std::string_view type_name(JsonType type) { return kTypeNames[static_cast<size_t>(type)]; }

}  // namespace

bool JsonReader::fail(NodeId node, std::string code, std::string message) const {
  const std::string inside = tape_.path(node);
  diagnostics_.error_at(std::move(code), inside.empty() ? name_ : name_ + ": " + inside,
                        beginning(message, JsonTape::kMaxMessage));
  return false;
}

bool JsonReader::fail(NodeId node, std::string message) const {
  return fail(node, code_, std::move(message));
}

bool JsonReader::wrong_type(NodeId node, JsonType wanted) const {
  return fail(
      node, fmt::format("expected {}, found {}", type_name(wanted), type_name(tape_[node].kind())));
}

bool JsonReader::too_large(NodeId node, uint64_t value, uint64_t most) const {
  return fail(node, fmt::format("{} is too large; at most {}", value, most));
}

bool JsonReader::i64(NodeId node, int64_t& out) const {
  if (tape_[node].kind() == JsonType::negative) {
    out = static_cast<int64_t>(tape_[node].value);
    return true;
  }
  return number(node, out, INT64_MAX);
}

bool JsonReader::boolean(NodeId node, bool& out) const {
  if (!expect(node, JsonType::boolean)) return false;
  out = tape_[node].value != 0;
  return true;
}

bool JsonReader::string(NodeId node, std::string_view& out) const {
  Word w = 0;
  if (!word(node, w)) return false;
  out = tape_.text(w);
  return true;
}

bool JsonReader::numbers(NodeId node, std::vector<uint32_t>& out, uint64_t most) const {
  if (!expect(node, JsonType::array)) return false;
  out.clear();
  for (NodeId e = first(node); e != end(node); e = next(e)) {
    uint32_t value = 0;
    if (!number(e, value, most)) return false;
    out.push_back(value);
  }
  return true;
}

bool JsonReader::integers(NodeId node, std::vector<int64_t>& out) const {
  if (!expect(node, JsonType::array)) return false;
  out.clear();
  for (NodeId e = first(node); e != end(node); e = next(e)) {
    int64_t value = 0;
    if (!i64(e, value)) return false;
    out.push_back(value);
  }
  return true;
}

bool Members::read(const JsonReader& reader, NodeId object, KeySet required, KeySet optional) {
  count_ = 0;
  if (!reader.expect(object, JsonType::object)) return false;
  const JsonTape& tape = reader.tape();
  KeySet missing = required;
  for (NodeId m = object + 1; m != tape[object].next; m = tape[m].next) {
    const Word key = tape[m].key;
    if (!required.has(key) && !optional.has(key)) return report_unknown(reader, object, m);
    missing.remove(key);
    keys_[count_] = key;  // each key is there once, and no caller knows more than kMax
    nodes_[count_] = m;
    ++count_;
  }
  return missing.empty() || report_missing(reader, object, missing);
}

bool Members::report_unknown(const JsonReader& reader, NodeId object, NodeId member) const {
  return reader.fail(
      object, "unknown-key",
      fmt::format("unknown key '{}'", reader.tape().text(reader.tape()[member].key)));
}

bool Members::report_missing(const JsonReader& reader, NodeId object, KeySet missing) const {
  Word key = 0;
  while (!missing.has(key)) ++key;
  return reader.fail(object, "missing-key",
                     fmt::format("key '{}' is missing", reader.tape().text(key)));
}

}  // namespace mscclc
