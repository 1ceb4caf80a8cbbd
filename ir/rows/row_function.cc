#include "ir/rows/row_function.h"

namespace mscclc::rows {

std::string_view name_of(Type type) {
  switch (type) {
#define ROW_TYPE(name, bytes) \
  case Type::name:            \
    return #name;
#include "ir/rows/row_words.def"
#undef ROW_TYPE
  }
  return "";
}

std::string_view name_of(Kind kind) {
  switch (kind) {
#define ROW_KIND(name, ...) \
  case Kind::name:          \
    return #name;
#include "ir/rows/row_words.def"
#undef ROW_KIND
  }
  return "";
}

std::string_view name_of(Op op) {
  switch (op) {
#define ROW_OP(name, ...) \
  case Op::call_##name:   \
    return #name;
#include "ir/rows/row_words.def"
#undef ROW_OP
#define ROW_REDUCTION(name, ...) \
  case Op::reduce_##name:        \
    return #name;
#include "ir/rows/row_words.def"
#undef ROW_REDUCTION
    default:
      return "";
  }
}

uint32_t argument_count(Op op) {
  switch (op) {
    case Op::param:
    case Op::constant:
    case Op::columns:
      return 0;
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
      return 2;
    case Op::if_less:
    case Op::if_most:
    case Op::if_equal:
      return 4;
#define ROW_OP(name, arguments, text) \
  case Op::call_##name:               \
    return arguments;
#include "ir/rows/row_words.def"
#undef ROW_OP
    default:
      return 1;
  }
}

Spread spread_of(Kind kind) {
  switch (kind) {
#define ROW_KIND(name, spread, input, output) \
  case Kind::name:                            \
    return Spread::spread;
#include "ir/rows/row_words.def"
#undef ROW_KIND
  }
  return Spread::once;
}

bool can_be_input(Kind kind) {
  switch (kind) {
#define ROW_KIND(name, spread, input, output) \
  case Kind::name:                            \
    return input;
#include "ir/rows/row_words.def"
#undef ROW_KIND
  }
  return false;
}

bool can_be_output(Kind kind) {
  switch (kind) {
#define ROW_KIND(name, spread, input, output) \
  case Kind::name:                            \
    return output;
#include "ir/rows/row_words.def"
#undef ROW_KIND
  }
  return false;
}

uint32_t bytes_of(Type type, Dtype t) {
  switch (type) {
#define ROW_TYPE(name, size) \
  case Type::name:           \
    return size == 0 ? info(t).bytes : size;
#include "ir/rows/row_words.def"
#undef ROW_TYPE
  }
  return 0;
}

uint32_t fixed_bytes(Type type) { return type == Type::T ? 0 : bytes_of(type, Dtype::f32); }

uint64_t fixed_bytes(const Form& form, uint32_t columns) {
  return uint64_t{values_of(form.kind, form.group, columns)} * fixed_bytes(form.type);
}

std::string declared_text(const Form& form) {
  const std::string of = form.group == 0 ? "" : '(' + std::to_string(form.group) + ')';
  return std::string(name_of(form.kind)) + of + ' ' + std::string(name_of(form.type));
}

std::string text_of(const Form& form) {
  if (form.kind == Kind::row) return "rows of " + std::string(name_of(form.type));
  return "'" + declared_text(form) + "'";
}

uint32_t moved_param(const Function& function, size_t result) {
  const Stored& to = function.outputs[result];
  const Node& node = function.nodes[to.node];
  return node.op != Op::param || to.type == Type::T ? kNoNode : node.index;
}

bool keeps_form(const Function& function, size_t result, size_t param) {
  return form_of(function.outputs[result]) == form_of(function.params[param]);
}

uint32_t values_of(Kind kind, uint32_t group, uint32_t columns) {
  switch (spread_of(kind)) {
    case Spread::once:
      return 1;
    case Spread::groups:
      return (columns + group - 1) / group;
    case Spread::columns:
      return columns;
  }
  return 0;
}

}  // namespace mscclc::rows
