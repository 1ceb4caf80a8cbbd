#include "plans/format/json/json_tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxText = 0xffff0000u;
constexpr Word kMaxWords = (1u << 28) - 1;

constexpr std::string_view kWords[] = {
#define WORD(text) #text,
#include "plans/format/json/words.def"
};

}  // namespace

/// What nlohmann_json's parser calls: puts nodes on the tape.
class TapeBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit TapeBuilder(JsonTape& tape) : tape_(tape) {}

  bool null() { return add(JsonType::null, 0); }
  bool boolean(bool value) { return add(JsonType::boolean, value ? 1 : 0); }
  bool number_integer(number_integer_t value) {
    return add(JsonType::negative, static_cast<uint64_t>(value));
  }
  bool number_unsigned(number_unsigned_t value) { return add(JsonType::number, value); }
  bool number_float(number_float_t, const string_t&) { return add(JsonType::real, 0); }
  bool string(string_t& value) { return add(JsonType::string, tape_.intern(value)); }
  bool binary(binary_t&) { return false; }

  bool start_object(size_t) { return open(JsonType::object); }
  bool start_array(size_t) { return open(JsonType::array); }
  bool end_object() { return check_other_keys() && close(); }
  bool end_array() { return close(); }

  bool key(string_t& text) {
    key_ = tape_.intern(text);
    Level& level = levels_.back();
    if (key_ >= w_known) {
      other_keys_.push_back(key_);
      return key_ <= kMaxWords || fail(level.node, "too many different strings");
    }
    if (level.keys.has(key_)) return twice(level.node, key_);
    level.keys.add(key_);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at …"
    const size_t begin = what.find("] ");
    if (begin != std::string_view::npos) what.remove_prefix(begin + 2);
    error_ = fmt::format("not JSON: {}", what);
    (void)position;
    return false;
  }

  const std::string& error() const { return error_; }
  NodeId error_node() const { return error_node_; }

 private:
  struct Level {
    NodeId node;
    KeySet keys;
    size_t other_keys;  ///< first of this object's in other_keys_
  };

  bool add(JsonType type, uint64_t value) {
    if (!levels_.empty()) ++tape_.nodes_[levels_.back().node].value;
    JsonNode node;
    node.value = value;
    node.next = static_cast<uint32_t>(tape_.nodes_.size() + 1);
    node.key = key_ & kMaxWords;
    node.type = static_cast<uint32_t>(type);
    tape_.nodes_.push_back(node);
    return true;
  }

  bool open(JsonType type) {
    add(type, 0);
    const NodeId node = static_cast<NodeId>(tape_.nodes_.size() - 1);
    tape_.nodes_[node].next = kNoNode;  // until it is closed
    levels_.push_back({node, {}, other_keys_.size()});
    return levels_.size() <= kMaxDepth || fail(node, "nested too deep");
  }

  bool close() {
    tape_.nodes_[levels_.back().node].next = static_cast<uint32_t>(tape_.nodes_.size());
    other_keys_.resize(levels_.back().other_keys);
    levels_.pop_back();
    return true;
  }

  /// Keys that no plan has: found twice by sorting them at the end of their object.
  bool check_other_keys() {
    const auto first = other_keys_.begin() + static_cast<ptrdiff_t>(levels_.back().other_keys);
    std::sort(first, other_keys_.end());
    const auto found = std::adjacent_find(first, other_keys_.end());
    return found == other_keys_.end() || twice(levels_.back().node, *found);
  }

  bool twice(NodeId object, Word key) {
    return fail(object, fmt::format("key '{}' appears twice", tape_.text(key)));
  }

  bool fail(NodeId node, std::string message) {
    error_node_ = node;
    error_ = std::move(message);
    return false;
  }

  JsonTape& tape_;
  std::vector<Level> levels_;
  std::vector<Word> other_keys_;
  Word key_ = 0;
  std::string error_;
  NodeId error_node_ = kNoNode;
};

JsonTape::JsonTape() : ends_(1, 0), table_(512, 0) {
  for (const std::string_view word : kWords) intern(word);
}

Word JsonTape::intern(std::string_view text) {
  const size_t mask = table_.size() - 1;
  size_t slot = std::hash<std::string_view>()(text) & mask;
  while (table_[slot] != 0) {
    const Word word = table_[slot] - 1;
    if (this->text(word) == text) return word;
    slot = (slot + 1) & mask;
  }
  const Word word = static_cast<Word>(ends_.size() - 1);
  table_[slot] = word + 1;
  pool_ += text;
  ends_.push_back(static_cast<uint32_t>(pool_.size()));
  if (2 * ends_.size() > table_.size()) grow_table();
  return word;
}

void JsonTape::grow_table() {
  table_.assign(2 * table_.size(), 0);
  const size_t mask = table_.size() - 1;
  for (Word word = 0; word + 1 < ends_.size(); ++word) {
    size_t slot = std::hash<std::string_view>()(text(word)) & mask;
    while (table_[slot] != 0) slot = (slot + 1) & mask;
    table_[slot] = word + 1;
  }
}

bool JsonTape::parse(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  if (text.size() > kMaxText) {
    diagnostics.error_at("too-long", name, "longer than 4 GiB");
    return false;
  }
  nodes_.reserve(text.size() / 8);
  TapeBuilder builder(*this);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return true;
  std::string path = name;
  if (builder.error_node() != kNoNode) {
    const std::string inside = this->path(builder.error_node());
    if (!inside.empty()) path += ": " + inside;
  }
  diagnostics.error_at("not-a-plan", path, beginning(builder.error(), kMaxMessage));
  return false;
}

std::string JsonTape::path(NodeId node) const {
  std::string out;
  NodeId at = 0;
  while (at != node && at < nodes_.size()) {
    const bool object = nodes_[at].kind() == JsonType::object;
    NodeId child = at + 1;
    size_t index = 0;
    while (nodes_[child].next <= node) {
      child = nodes_[child].next;
      ++index;
    }
    if (object) {
      if (!out.empty()) out += '.';
      out += beginning(text(nodes_[child].key), 80);
    } else {
      out += fmt::format("[{}]", index);
    }
    at = child;
  }
  return out;
}

}  // namespace mscclc

#undef WORD
