#include "compiler/rows/row_types.h"

namespace mscclc::rows {
namespace {

void append(std::string& list, std::string_view word) {
  list += (list.empty() ? "'" : ", '") + std::string(word) + "'";
}

}  // namespace

std::string function_words() {
  std::string list;
#define ROW_OP(name, ...) append(list, #name);
#include "ir/rows/row_words.def"
#undef ROW_OP
  append(list, "sum");
  append(list, "mean");
  return list + " and the types, which round";
}

std::string type_words() {
  std::string list;
#define ROW_TYPE(name, bytes) append(list, #name);
#include "ir/rows/row_words.def"
#undef ROW_TYPE
  return list;
}

std::string kind_words(bool input) {
  std::string list;
#define ROW_KIND(name, spread, in, out) \
  if (input ? in : out) append(list, #name);
#include "ir/rows/row_words.def"
#undef ROW_KIND
  return list;
}

}  // namespace mscclc::rows
