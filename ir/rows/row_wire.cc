#include "ir/rows/row_wire.h"

#include <iterator>

namespace mscclc::rows {
namespace {

constexpr std::string_view kNames[] = {
    "param", "constant", "columns", "negate",  "add",      "sub",
    "mul",   "div",      "if_less", "if_most", "if_equal", "round",
#define ROW_OP(name, ...) #name,
#include "ir/rows/row_words.def"
#undef ROW_OP
#define ROW_REDUCTION(name, ...) "reduce_" #name,
#include "ir/rows/row_words.def"
#undef ROW_REDUCTION
};
static_assert(kNames[static_cast<size_t>(Op::round)] == "round");

}  // namespace

std::string_view wire_name(Op op) { return kNames[static_cast<size_t>(op)]; }

std::optional<Op> find_wire_op(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Op>(i);
  }
  return {};
}

std::optional<Type> find_type(std::string_view text) {
#define ROW_TYPE(name, bytes) \
  if (text == #name) return Type::name;
#include "ir/rows/row_words.def"
#undef ROW_TYPE
  return {};
}

std::vector<std::string_view> type_names() {
  return {
#define ROW_TYPE(name, bytes) #name,
#include "ir/rows/row_words.def"
#undef ROW_TYPE
  };
}

std::optional<Kind> find_kind(std::string_view text) {
#define ROW_KIND(name, ...) \
  if (text == #name) return Kind::name;
#include "ir/rows/row_words.def"
#undef ROW_KIND
  return {};
}

}  // namespace mscclc::rows
