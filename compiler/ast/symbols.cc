#include "compiler/ast/symbols.h"

#include <cstring>
#include <iterator>

namespace mscclc::ast {
namespace {

constexpr std::string_view kWords[] = {
#define RESERVED(word) #word,
#include "ir/ops/words.def"
#define OP(name, ...) #name,
#include "ir/ops/ops.def"
#undef OP
#define WELL_KNOWN(word) #word,
#include "compiler/ast/words.def"
#undef WELL_KNOWN
};
static_assert(std::size(kWords) == w_count);

constexpr size_t kFirstTable = 512;  // entries; a power of two well above twice w_count

template <class T>
uint64_t load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Differs between runs, so that words that collide cannot be prepared. Nothing but the layout of
/// the table depends on it.
uint64_t seed() {
  static const int anchor = 0;
  static const uint64_t value = mix(reinterpret_cast<uintptr_t>(&anchor), 0x9e3779b97f4a7c15u);
  return value;
}

}  // namespace

uint32_t Names::hash(std::string_view word) {
  static const uint64_t kSeed = seed();
  const char* p = word.data();
  size_t n = word.size();
  uint64_t h = kSeed ^ n;
  for (; n > 16; n -= 16, p += 16) {
    h = mix(load<uint64_t>(p) ^ h, load<uint64_t>(p + 8) ^ 0xa0761d6478bd642fu);
  }
  uint64_t a = 0, b = 0;
  if (n >= 8) {
    a = load<uint64_t>(p);
    b = load<uint64_t>(p + n - 8);
  } else if (n >= 4) {
    a = load<uint32_t>(p);
    b = load<uint32_t>(p + n - 4);
  } else if (n > 0) {
    a = load<uint8_t>(p) | load<uint8_t>(p + n / 2) << 8 | load<uint8_t>(p + n - 1) << 16;
  }
  return static_cast<uint32_t>(mix(a ^ h, b ^ 0xe7037ed1a0b428dbu));
}

Names::Names() {
  static const Names fixed{FixedWords{}};
  *this = fixed;
}

Names::Names(FixedWords) : table_(kFirstTable, TableCell{0, kNoSymbol}) {
  for (const std::string_view word : kWords) intern(word);
}

Symbol Names::intern(std::string_view word, uint32_t hash) {
  const size_t mask = table_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    TableCell& entry = table_[i];
    if (entry.symbol == kNoSymbol) {
      entry = {hash, static_cast<Symbol>(texts_.size())};
      texts_.push_back(word);
      if (texts_.size() * 2 > table_.size()) grow();
      return static_cast<Symbol>(texts_.size() - 1);
    }
    if (entry.hash == hash && texts_[entry.symbol] == word) return entry.symbol;
  }
}

void Names::grow() {
  std::vector<TableCell> old(table_.size() * 2, TableCell{0, kNoSymbol});
  old.swap(table_);
  const size_t mask = table_.size() - 1;
  for (const TableCell& entry : old) {
    if (entry.symbol == kNoSymbol) continue;
    size_t i = entry.hash & mask;
    while (table_[i].symbol != kNoSymbol) i = (i + 1) & mask;
    table_[i] = entry;
  }
}

}  // namespace mscclc::ast

#undef RESERVED
