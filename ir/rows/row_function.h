// The IR of row functions: what a program computes of each row of its data, as numbers of f32 in a
// fixed order. docs/design/rows.md has the language, and what each bit of a result depends on.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/ops.h"

namespace mscclc::rows {

/// How values are stored. `T` is the call's type: f32, f16 or bf16.
enum class Type : uint8_t {
#define ROW_TYPE(name, bytes) name,
#include "ir/rows/row_words.def"
#undef ROW_TYPE
};

/// What an argument or a result has a value for.
///   row: each column of each row     columns: each column, for all rows the same
///   groups: each group of columns of each row    token: each row    scalar: the call
enum class Kind : uint8_t {
#define ROW_KIND(name, ...) name,
#include "ir/rows/row_words.def"
#undef ROW_KIND
};

/// Where in a row a value changes: nowhere, from group to group, from column to column.
enum class Spread : uint8_t { once, groups, columns };

/// Does T(x) round? `chain`: yes, as the unfused chain of kernels does, which stores each tensor in
/// T. `once`: no; f32 goes through, and only what is stored is rounded.
enum class Rounding : uint8_t { chain, once };

enum class Op : uint8_t {
  param,     ///< parameter `index`
  constant,  ///< value
  columns,   ///< how many columns a row has
  negate,
  add,
  sub,
  mul,
  div,
  if_less,   ///< args[0] < args[1] ? args[2] : args[3]
  if_most,   ///< <=
  if_equal,  ///< ==
  round,     ///< to `type`
#define ROW_OP(name, ...) call_##name,
#include "ir/rows/row_words.def"
#undef ROW_OP
#define ROW_REDUCTION(name, ...) reduce_##name,
#include "ir/rows/row_words.def"
#undef ROW_REDUCTION
};

inline constexpr uint32_t kNoNode = 0xffffffffu;
/// What a function has at most, and what sizes it takes: hostile input costs little.
inline constexpr uint32_t kMaxParams = 16, kMaxOutputs = 8, kMaxNodes = 1024, kMaxReductions = 32,
                          kMaxExprDepth = 64, kMaxColumns = 1u << 20, kMaxGroup = 4096;

/// A value. Arguments come before what is made of them.
struct Node {
  Op op = Op::constant;
  Type type = Type::f32;         ///< of round
  Spread spread = Spread::once;  ///< of the value
  uint32_t group = 0;            ///< columns of a group, where the value spreads over groups
  uint32_t over = 0;             ///< of a reduction: columns of a group; 0: the whole row
  uint32_t index = 0;            ///< of a parameter
  float value = 0;               ///< of a constant: finite
  std::array<uint32_t, 4> args = {kNoNode, kNoNode, kNoNode, kNoNode};
};

/// What lies in memory: a parameter or a result.
struct Stored {
  std::string name;
  Kind kind = Kind::row;
  Type type = Type::T;
  uint32_t group = 0;  ///< of groups
  uint32_t node = kNoNode;
};

/// What the rows of a buffer are: of each row the values of one kind.
struct Form {
  Kind kind = Kind::row;
  Type type = Type::T;
  uint32_t group = 0;  ///< of groups
  bool operator==(const Form&) const = default;
};
/// That of a Stored or an External.
template <class Value>
Form form_of(const Value& value) {
  return {value.kind, value.type, value.group};
}
/// "row e4m3", "groups(128) f32": as a declaration has it.
std::string declared_text(const Form& form);
/// "rows of e4m3", "'groups(128) f32'".
std::string text_of(const Form& form);

struct Let {
  std::string name;
  uint32_t node = kNoNode;
};

/// A row function, checked: the parser makes no other.
struct Function {
  std::string name;
  Rounding rounding = Rounding::chain;
  std::vector<Stored> params;
  std::vector<Node> nodes;
  std::vector<Let> lets;
  std::vector<Stored> outputs;
};

std::string_view name_of(Type type);
std::string_view name_of(Kind kind);
/// Of call_… and reduce_…: the word that programs write; "" of others.
std::string_view name_of(Op op);
/// How many arguments a value of this op is made of.
uint32_t argument_count(Op op);
inline bool is_reduction(Op op) { return op >= Op::reduce_sum; }
inline bool is_call(Op op) { return op >= Op::call_abs && !is_reduction(op); }
Spread spread_of(Kind kind);
bool can_be_input(Kind kind);
bool can_be_output(Kind kind);

/// The types that a call may have.
inline bool can_be_t(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}
/// Bytes of a stored value in a call of type `t`.
uint32_t bytes_of(Type type, Dtype t);
/// The same whatever the call's type; 0 of T, which is that type.
uint32_t fixed_bytes(Type type);
/// Of the narrowest type that a call may have.
inline constexpr uint32_t kLeastBytesOfT = 2;
/// Values that a row of an argument or result has.
uint32_t values_of(Kind kind, uint32_t group, uint32_t columns);
/// Bytes of a row of them, of a call of any type; 0 of rows of T.
uint64_t fixed_bytes(const Form& form, uint32_t columns);
/// The parameter that a result is, as it is: of values that functions have made, not of rows of T.
/// kNoNode: it is none.
uint32_t moved_param(const Function& function, size_t result);
/// Does a parameter that becomes a result keep its bits?
bool keeps_form(const Function& function, size_t result, size_t param);
/// Is there a value of this kind for each row, or only for the call?
inline bool is_per_row(Kind kind) { return kind != Kind::columns && kind != Kind::scalar; }
/// Bytes of one row of a Stored or an External; of what all rows share, of that.
template <class Value>
uint64_t bytes_of_row(const Value& value, Dtype t, uint32_t columns) {
  return uint64_t{values_of(value.kind, value.group, columns)} * bytes_of(value.type, t);
}

}  // namespace mscclc::rows
