// A JSON document as a flat list of nodes in document order: 16 bytes a value, no pointers, no
// recursion. Strings are interned, so that keys and words are compared as numbers. Built by
// nlohmann_json's parser; memory is bounded by the size of the document.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// A string of a document, or a key: words.def's have fixed numbers.
using Word = uint32_t;
enum KnownWord : Word {
#define WORD(text) w_##text,
#include "plans/format/json/words.def"
  w_known
};

/// A set of known words.
class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(std::initializer_list<KnownWord> words) {
    for (const KnownWord w : words) add(w);
  }
  constexpr bool has(Word w) const { return w < kMax && (bits_[w / 64] >> (w % 64) & 1) != 0; }
  constexpr void add(Word w) { bits_[w / 64] |= uint64_t{1} << (w % 64); }
  constexpr void remove(Word w) {
    if (w < kMax) bits_[w / 64] &= ~(uint64_t{1} << (w % 64));
  }
  constexpr bool empty() const { return (bits_[0] | bits_[1] | bits_[2]) == 0; }
  constexpr KeySet operator|(const KeySet& other) const {
    KeySet both = *this;
    for (size_t i = 0; i < std::size(bits_); ++i) both.bits_[i] |= other.bits_[i];
    return both;
  }

  static constexpr Word kMax = 192;

 private:
  uint64_t bits_[kMax / 64] = {};
};
static_assert(w_known <= KeySet::kMax);

enum class JsonType : uint8_t { null, boolean, number, negative, real, string, array, object };

/// A value: `value` is the number (negative: its two's complement), boolean, word of a string, or
/// count of elements of an array or object.
struct JsonNode {
  uint64_t value = 0;
  uint32_t next = 0;  ///< index after the value and all it contains
  uint32_t key : 28 = 0;
  uint32_t type : 4 = 0;
  JsonType kind() const { return static_cast<JsonType>(type); }
};

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0xffffffffu;

class JsonTape {
 public:
  static constexpr size_t kMaxMessage = 1000;  ///< bytes: a text may repeat what a document says
  JsonTape();
  /// Parses `text`; reports what is not JSON, nested too deep, too long, or has a key twice.
  /// `name` is the document's, for messages.
  [[nodiscard]] bool parse(std::string_view text, const std::string& name,
                           Diagnostics& diagnostics);

  const JsonNode& operator[](NodeId node) const { return nodes_[node]; }
  size_t size() const { return nodes_.size(); }
  std::string_view text(Word word) const {
    return std::string_view(pool_).substr(ends_[word], ends_[word + 1] - ends_[word]);
  }
  /// "gpus[2].channels[0]"; "" for the root.
  std::string path(NodeId node) const;

 private:
  friend class TapeBuilder;
  Word intern(std::string_view text);
  void grow_table();

  std::vector<JsonNode> nodes_;
  std::string pool_;
  std::vector<uint32_t> ends_;  ///< of words in pool_, a leading 0
  std::vector<Word> table_;     ///< hash table of words + 1, a power of two long
};

/// What a content hash is of.
enum class HashOf : uint8_t {
  plan,        ///< all but where it comes from: the comment, files, sites, locations of ops
  everything,  ///< as plans had it that were written before there was a difference
};

/// The content hash of a parsed plan (content_hash.h). REQUIRES: no real numbers but in `proof`.
/// `unclaimed`, if it is there, is handed the canonical text of the plan, where it comes from
/// included, except for what it says of its target and its proof: the target is "", and there is no
/// proof.
std::string canonical_hash(const JsonTape& tape,
                           const std::function<bool(std::string_view)>* unclaimed = nullptr,
                           HashOf what = HashOf::plan);

}  // namespace mscclc
