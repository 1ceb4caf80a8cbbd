#include "ir/print/print_parts.h"

#include <algorithm>

namespace mscclc {
namespace {

constexpr std::string_view kReserved[] = {
#define RESERVED(word) #word,
#include "ir/ops/words.def"
#undef RESERVED
};

bool is_free_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !digit(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); }) &&
         std::find(std::begin(kReserved), std::end(kReserved), name) == std::end(kReserved) &&
         !find_op(name);
}

}  // namespace

void print_string(TextWriter& out, std::string_view text) {
  out << '"';
  for (const char c : text) {
    if (c == '\n') {
      out << "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out << '\\';
    out << c;
  }
  out << '"';
}

void print_name(TextWriter& out, std::string_view name) {
  if (is_free_name(name)) {
    out << name;
  } else {
    print_string(out, name);
  }
}

void print_bytes(TextWriter& out, uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  out.number(bytes) << kUnits[unit];
}

void print_list(TextWriter& out, std::span<const int64_t> values) {
  out << '[';
  Separator items(out);
  for (const int64_t v : values) items.next().number(v);
  out << ']';
}

void print_set(TextWriter& out, std::span<const int64_t> values) {
  bool consecutive = !values.empty();
  for (size_t i = 1; i < values.size(); ++i) consecutive &= values[i] == values[i - 1] + 1;
  if (consecutive) {
    out.number(values.front()) << "..";
    out.number(values.back() + 1);
  } else {
    print_list(out, values);
  }
}

}  // namespace mscclc
